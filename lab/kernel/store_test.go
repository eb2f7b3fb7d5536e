package kernel

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ulikunitz/xz"
)

// module is a small ELF file with a .modinfo section.
func module(t *testing.T, modinfo string) []byte {
	t.Helper()
	const ehsize, shsize = 64, 64
	names := "\x00.modinfo\x00.shstrtab\x00"
	var b bytes.Buffer
	put := func(v any) {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	b.WriteString("\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9))
	put([]uint16{1, 62}) // relocatable, x86-64
	put(uint32(1))
	put([]uint64{0, 0, uint64(ehsize + len(modinfo) + len(names))})
	put(uint32(0))
	put([]uint16{ehsize, 0, 0, shsize, 3, 2})
	b.WriteString(modinfo + names)
	section := func(name, kind uint32, off, size int) {
		put([]uint32{name, kind})
		put([]uint64{0, 0, uint64(off), uint64(size)})
		put([]uint32{0, 0})
		put([]uint64{1, 0})
	}
	section(0, 0, 0, 0)
	section(1, 1, ehsize, len(modinfo))
	section(10, 3, ehsize+len(modinfo), len(names))
	return b.Bytes()
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func compressed(t *testing.T, raw []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := xz.NewWriter(&b)
	if err == nil {
		_, err = w.Write(raw)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCollectTakesTheImageAndModulesWithWhatTheyDependOn(t *testing.T) {
	const release = "9.9.9-cloud-amd64"
	for _, tc := range []struct{ name, image, modules string }{
		{"a whole package", "boot/vmlinuz-" + release, "lib/modules/" + release},
		{"a split one, in /usr", "usr/lib/modules/" + release + "/vmlinuz", "usr/lib/modules/" + release},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tree, out := t.TempDir(), t.TempDir()
			write(t, filepath.Join(tree, tc.image), []byte("image"))
			write(t, filepath.Join(tree, tc.modules, "kernel/zram.ko.xz"), compressed(t, module(t, "depends=zsmalloc\x00")))
			write(t, filepath.Join(tree, tc.modules, "kernel/mm/zsmalloc.ko"), module(t, "depends=\x00"))
			write(t, filepath.Join(tree, tc.modules, "kernel/other.ko"), module(t, "depends=\x00"))
			if err := os.Mkdir(filepath.Join(out, "modules"), 0o755); err != nil {
				t.Fatal(err)
			}
			k := Kernel{Release: release}
			if err := k.collect(tree, out); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]string{"zsmalloc", "zram"}, k.Present); d != "" {
				t.Error(d)
			}
			for _, f := range []string{"vmlinuz", "modules/zram.ko", "modules/zsmalloc.ko"} {
				if _, err := os.Stat(filepath.Join(out, f)); err != nil {
					t.Error(err)
				}
			}
			if _, err := os.Stat(filepath.Join(out, "modules/other.ko")); err == nil {
				t.Error("a module nobody asked for was kept")
			}
		})
	}
}

func TestReadModuleRefusesWhatAKernelWould(t *testing.T) {
	for _, tc := range []struct {
		name, file string
		content    []byte
		want       string
	}{
		{"a file that is no ELF", "a.ko", []byte("text"), "not an ELF file"},
		{"a broken archive", "a.ko.xz", []byte("text"), "uncompressing"},
		{"an unknown compression", "a.ko.zst", []byte("text"), "not understood"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), tc.file)
			write(t, path, tc.content)
			if _, err := readModule(path); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestCached(t *testing.T) {
	const release = "6.12.1-cloud-amd64"
	whole := map[string]string{
		"kernels/6.12.release":            release + "\n",
		"kernels/" + release + "/vmlinuz": "image",
		"kernels/" + release + "/kernel.json": func() string {
			raw, err := json.Marshal(Kernel{Release: release, Considered: Modules})
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}(),
	}
	without := func(drop string, replace ...string) map[string]string {
		m := map[string]string{}
		for k, v := range whole {
			if k != drop {
				m[k] = v
			}
		}
		for i := 0; i+1 < len(replace); i += 2 {
			m[replace[i]] = replace[i+1]
		}
		return m
	}
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  bool
	}{
		{"a whole kernel counts", whole, true},
		{"one without its image does not", without("kernels/" + release + "/vmlinuz"), false},
		{"one that was never finished does not", without("kernels/" + release + "/kernel.json"), false},
		{"one unpacked for fewer modules does not", without("", "kernels/"+release+"/kernel.json", `{"release":"`+release+`","considered":["zram"]}`), false},
		{"a release that leads out of the cache does not", without("", "kernels/6.12.release", "../"+release), false},
		{"an empty cache has none", nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range tc.files {
				write(t, filepath.Join(dir, name), []byte(text))
			}
			k, ok := Store{Dir: dir}.Cached("6.12")
			if ok != tc.want {
				t.Fatalf("cached is %v, want %v", ok, tc.want)
			}
			if ok && (k.Release != release || k.Name != "6.12") {
				t.Errorf("got %+v", k)
			}
		})
	}
}

func TestUpdateNamesTheKernelsThereAre(t *testing.T) {
	_, err := Store{Dir: t.TempDir()}.Update(context.Background(), "5.10", false)
	if err == nil || !strings.Contains(err.Error(), "6.1, 6.12, latest") {
		t.Errorf("got %v", err)
	}
}
