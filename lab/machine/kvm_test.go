package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestKVMWorksWhereAKernelEndsInItsPanic(t *testing.T) {
	for _, tc := range []struct {
		name, script, want string
		within             time.Duration
	}{
		{"a machine that ends in order", "exit 0", "", time.Minute},
		{"a CPU that cannot be set up", "echo 'qemu: warning: 4 CPUs' >&2; echo 'failed to set MSR 0x10a to 0x69' >&2; echo 'Assertion failed' >&2; exit 134", "exit status 134; QEMU says: failed to set MSR 0x10a to 0x69", time.Minute},
		{"a machine that stands still", "exec sleep 1000", "did not come up within 10ms", 10 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, Program), []byte("#!/bin/sh\n"+tc.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			err := tryBoot("vmlinuz", tc.within)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
