package container

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/memagent/memagent/memcg"
)

// TestWhatTheManifestsMountIsEnough looks a container of each runtime up in a
// root that has nothing but the folders mounted by the DaemonSet.
func TestWhatTheManifestsMountIsEnough(t *testing.T) {
	text, err := os.ReadFile("../packaging/kubernetes/base/daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	mounts := regexp.MustCompile(`mountPath: /host(/(?:run|var)/[^,]+),`).FindAllSubmatch(text, -1)
	if len(mounts) < 3 {
		t.Fatalf("%d folders of runtimes are mounted", len(mounts))
	}
	for _, c := range []struct{ name, path string }{
		{"containerd", podDir + "/cri-containerd-" + hash("c0") + ".scope"},
		{"crio", podDir + "/crio-" + hash("0c") + ".scope"},
	} {
		host := t.TempDir()
		for _, m := range mounts {
			to := filepath.Join(host, string(m[1]))
			if err := os.MkdirAll(to, 0o755); err != nil { // DirectoryOrCreate
				t.Fatal(err)
			}
			from := filepath.Join("testdata", c.name, string(m[1]))
			if _, err := os.Stat(from); err == nil {
				if err := os.CopyFS(to, os.DirFS(from)); err != nil {
					t.Fatal(err)
				}
			}
		}
		d, settled := open(t, host).Describe(memcg.ID{Path: c.path, Inode: 1})
		if !settled || d.Label() != "shop/cart-7d9/app" || len(d.Faults) > 0 {
			t.Errorf("%s: %q, settled %v, %v", c.name, d.Label(), settled, d.Faults)
		}
	}
}
