package cgroupfs

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

const someMeminfo = "MemTotal: 1000 kB\nMemFree: 300 kB\nMemAvailable: 500 kB\nSwapTotal: 64 kB\nSwapFree: 0 kB\nHugePages_Total: 0\n"

func TestHostSample(t *testing.T) {
	host := hostOf(t, "c10/possible-0-8",
		"proc/meminfo", someMeminfo,
		"proc/swaps", "Filename Type Size Used Priority\n/dev/zram0 partition 64 0 100\n",
		"sys/class/block/zram0/size", "128\n",
		"proc/pressure/memory", "some avg10=1.50 avg60=0.25 avg300=0.00 total=12\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n")
	h := memcg.HostSample{MemTotal: memcg.Value(1), Nodes: make([]memcg.Node, 7)}
	for range 2 { // the second reading reuses the first
		if err := host.HostSample(&h); err != nil {
			t.Fatal(err)
		}
		if h.MemTotal != memcg.Value(1000*kib) || h.MemFree != memcg.Value(300*kib) || h.MemAvailable != memcg.Value(500*kib) ||
			h.SwapTotal != memcg.Value(64*kib) || h.SwapFree != memcg.Value(0) {
			t.Errorf("sizes: %+v", h)
		}
		if h.PageSize != uint64(os.Getpagesize()) || h.Swap != memcg.SwapZram || len(h.Nodes) != 2 || h.Nodes[1].ID != 8 {
			t.Errorf("page %d, swap %v, nodes %+v", h.PageSize, h.Swap, h.Nodes)
		}
		if h.Pressure.Some.Total != memcg.Value(12) || h.Pressure.Some.Avg10 != 1.5 || h.Pressure.Full.Total != memcg.Value(9) {
			t.Errorf("pressure: %+v", h.Pressure)
		}
	}
}

func TestC05AHostWithoutMemoryIsRejected(t *testing.T) {
	for name, host := range map[string]*FS{
		"a total of zero": hostOf(t, "c05/zero-total"),
		"no total":        hostOf(t, "", "proc/meminfo", "MemFree: 1 kB\n"),
		"a negative size": hostOf(t, "", "proc/meminfo", "MemTotal: -1 kB\n"),
		"no unit we know": hostOf(t, "", "proc/meminfo", "MemTotal: 1 MB\n"),
	} {
		t.Run(name, func(t *testing.T) {
			var h memcg.HostSample
			if err := host.HostSample(&h); !errors.Is(err, memcg.ErrInvalid) {
				t.Errorf("err = %v, want memcg.ErrInvalid", err)
			}
			if h.MemTotal.Known() {
				t.Errorf("MemTotal = %v can be used", h.MemTotal)
			}
		})
	}
}

func TestAbsentKeysOfMeminfoAreNotZero(t *testing.T) {
	var h memcg.HostSample
	if err := hostOf(t, "", "proc/meminfo", "MemTotal: 1 kB\nSwapTotal: 0 kB\n").HostSample(&h); err != nil {
		t.Fatal(err)
	}
	if h.MemAvailable.State() != memcg.Unsupported || h.SwapFree.State() != memcg.Unsupported || h.SwapTotal != memcg.Value(0) {
		t.Errorf("%+v", h)
	}
	if h.Swap != memcg.SwapNone {
		t.Errorf("swap = %v on a host with none", h.Swap)
	}
}

func TestWithoutMeminfoThereIsNoSample(t *testing.T) {
	var h memcg.HostSample
	if err := hostOf(t, "").HostSample(&h); !errors.Is(err, memcg.ErrUnsupported) || h.MemTotal.State() != memcg.Missing {
		t.Errorf("err = %v, MemTotal = %v", err, h.MemTotal)
	}
}

func TestC24HostPressureIsMissingInDifferentWays(t *testing.T) {
	ok := "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"
	for _, tt := range []struct {
		name   string
		base   string // of faults.txt's paths
		extra  []string
		faults []fault
		want   memcg.State
		err    error
	}{
		{name: "there", extra: []string{"proc/pressure/memory", ok}, want: memcg.Present},
		{name: "not built in", want: memcg.Unsupported},
		{name: "built in and off", extra: []string{"proc/pressure/memory", ok}, faults: faultsOf(t, "c24"), base: "disabled", want: memcg.Unsupported},
		{name: "not to be read", extra: []string{"proc/pressure/memory", ok},
			faults: []fault{{op: "open", path: "proc/pressure/memory", errno: unix.EACCES}}, want: memcg.Missing, err: memcg.ErrDenied},
		{name: "garbled", extra: []string{"proc/pressure/memory", "some avg10=x\nfull avg10=x\n"}, want: memcg.Invalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var files []string
			for i, s := range append(tt.extra, "proc/meminfo", "MemTotal: 1 kB\nSwapTotal: 0 kB\n", "sys/fs/cgroup/cgroup.controllers", "memory\n") {
				if i%2 == 0 && tt.base != "" {
					s = tt.base + "/" + s
				}
				files = append(files, s)
			}
			top := fixtureCopy(t, "", files...)
			host := openHost(t, top+"/"+tt.base, withKernel(withFaults(t, top, tt.faults)))
			var h memcg.HostSample
			err := host.HostSample(&h)
			if !errors.Is(err, tt.err) {
				t.Errorf("err = %v, want %v", err, tt.err)
			}
			if got := h.Pressure.Some.Total.State(); got != tt.want {
				t.Errorf("some is %v, want %v", got, tt.want)
			}
			if got := h.Pressure.Full.Total.State(); got != tt.want {
				t.Errorf("full is %v, want %v", got, tt.want)
			}
			if !h.MemTotal.Known() {
				t.Error("the rest of the sample is lost")
			}
		})
	}
}

func TestTheHostTellsWhichLRUItRuns(t *testing.T) {
	for name, c := range map[string]struct {
		files   []string
		want    memcg.Field
		classic bool
		kind    error
	}{
		"the multi-gen LRU is on":           {[]string{lruGenEnabled, "0x0007\n"}, memcg.Value(7), false, nil},
		"built in and switched off":         {[]string{lruGenEnabled, "0x0000\n"}, memcg.Value(0), true, nil},
		"not built in":                      {nil, memcg.Absent(memcg.Unsupported), true, nil},
		"what cannot be read is not either": {[]string{lruGenEnabled, "yes\n"}, memcg.Absent(memcg.Invalid), false, memcg.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			var h memcg.HostSample
			err := hostOf(t, "", append([]string{"proc/meminfo", "MemTotal: 1 kB\nSwapTotal: 0 kB\n"}, c.files...)...).HostSample(&h)
			if !errors.Is(err, c.kind) {
				t.Errorf("error %v", err)
			}
			if h.LRUGen != c.want || h.ClassicLRU() != c.classic {
				t.Errorf("got %v, classic %v", h.LRUGen, h.ClassicLRU())
			}
		})
	}
}

func TestWhetherTheKernelDemotesIsReadAndNotGuessed(t *testing.T) {
	for name, c := range map[string]struct {
		files   []string
		want    memcg.Field
		demotes bool
		kind    error
	}{
		"switched on":                {[]string{demotionEnabled, "true\n"}, memcg.Value(1), true, nil},
		"switched off":               {[]string{demotionEnabled, "false\n"}, memcg.Value(0), false, nil},
		"a kernel without tiers":     {nil, memcg.Absent(memcg.Unsupported), false, nil},
		"what is neither is invalid": {[]string{demotionEnabled, "maybe\n"}, memcg.Absent(memcg.Invalid), false, memcg.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			var h memcg.HostSample
			err := hostOf(t, "", append([]string{"proc/meminfo", "MemTotal: 1 kB\nSwapTotal: 0 kB\n"}, c.files...)...).HostSample(&h)
			if !errors.Is(err, c.kind) {
				t.Errorf("error %v", err)
			}
			if h.Demotion != c.want || h.Demotes() != c.demotes {
				t.Errorf("got %v, demotes %v", h.Demotion, h.Demotes())
			}
		})
	}
}
