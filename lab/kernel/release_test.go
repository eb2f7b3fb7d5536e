package kernel

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReleases(t *testing.T) {
	names := []string{
		"linux-image-6.1.0-9-cloud-amd64",
		"linux-image-6.1.0-57-cloud-amd64",
		"linux-image-6.1.0-57-cloud-amd64-unsigned",
		"linux-image-6.1.0-57-cloud-amd64-dbg",
		"linux-image-6.1.0-58-cloud-arm64",
		"linux-image-6.1.0-60-rt-amd64",
		"linux-image-6.12-cloud-amd64-dbg",
		"linux-image-6.12-cloud-amd64",
		"linux-image-6.12.99+deb12-cloud-amd64",
		"linux-image-6.12.117+deb12-cloud-amd64-unsigned",
		"linux-image-cloud-amd64",
		"linux-binary-7.3.4+deb13-cloud-amd64",
		"linux-image-7.2.12+deb13-cloud-amd64",
		"linux-headers-9.9.9+deb13-cloud-amd64",
	}
	for _, tc := range []struct {
		name, series string
		want         []string
	}{
		{"the higher number is newer, not the higher text", "6.1", []string{"6.1.0-57-cloud-amd64", "6.1.0-9-cloud-amd64"}},
		{"a series does not swallow one that begins alike", "6.12", []string{"6.12.117+deb12-cloud-amd64", "6.12.99+deb12-cloud-amd64"}},
		{"a series nobody has is empty", "5.10", nil},
		{"no series means the newest of all, image or binary", "", []string{
			"7.3.4+deb13-cloud-amd64", "7.2.12+deb13-cloud-amd64", "6.12.117+deb12-cloud-amd64",
			"6.12.99+deb12-cloud-amd64", "6.1.0-57-cloud-amd64", "6.1.0-9-cloud-amd64"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, Releases(names, tc.series)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestPackages(t *testing.T) {
	for _, tc := range []struct {
		name, release string
		names, want   []string
	}{
		{"a signed image wins over the unsigned one", "6.1.0-57-cloud-amd64",
			[]string{"linux-image-6.1.0-57-cloud-amd64-unsigned", "linux-image-6.1.0-57-cloud-amd64", "linux-image-6.1.0-57-cloud-amd64-dbg"},
			[]string{"linux-image-6.1.0-57-cloud-amd64"}},
		{"an unsigned image will do", "6.12.117+deb12-cloud-amd64",
			[]string{"linux-image-6.12.117+deb12-cloud-amd64-unsigned"},
			[]string{"linux-image-6.12.117+deb12-cloud-amd64-unsigned"}},
		{"a split kernel is image, binary and modules", "7.3.4+deb13-cloud-amd64",
			[]string{"linux-modules-7.3.4+deb13-cloud-amd64", "linux-binary-7.3.4+deb13-cloud-amd64", "linux-image-7.3.4+deb13-cloud-amd64", "linux-base-7.3.4+deb13-cloud-amd64"},
			[]string{"linux-image-7.3.4+deb13-cloud-amd64", "linux-binary-7.3.4+deb13-cloud-amd64", "linux-modules-7.3.4+deb13-cloud-amd64"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, Packages(tc.names, tc.release)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestLoadOrder(t *testing.T) {
	for _, tc := range []struct {
		name    string
		wanted  []string
		depends map[string][]string
		want    []string
	}{
		{"what is needed comes first, whatever the order of wishes",
			[]string{"virtio_pci", "virtio_blk"},
			map[string][]string{"virtio_pci": {"virtio", "virtio_ring"}, "virtio_blk": {"virtio"}, "virtio": {"virtio_ring"}, "virtio_ring": nil},
			[]string{"virtio_ring", "virtio", "virtio_pci", "virtio_blk"}},
		{"what is built in is left out",
			[]string{"virtio_pci", "zram"},
			map[string][]string{"zram": {"zsmalloc"}},
			[]string{"zram"}},
		{"a circle ends", []string{"a"}, map[string][]string{"a": {"b"}, "b": {"a"}}, []string{"b", "a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, loadOrder(tc.wanted, tc.depends)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestParseDepends(t *testing.T) {
	for _, tc := range []struct {
		name, modinfo string
		want          []string
	}{
		{"a list is split", "license=GPL\x00depends=a,b\x00name=x\x00", []string{"a", "b"}},
		{"an empty list is none", "depends=\x00name=x\x00", nil},
		{"a softdep is no dependency", "softdep=pre: c\x00name=x\x00", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, parseDepends(tc.modinfo)); d != "" {
				t.Error(d)
			}
		})
	}
}
