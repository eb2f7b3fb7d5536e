package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
)

// oneKnob is a host with one cgroup whose knobs are in memory.
type oneKnob map[memcg.Knob]string

var pg = memcg.ID{Path: "/pg", Inode: 1234}

func (h oneKnob) ReadKnob(_ memcg.ID, k memcg.Knob) (string, error) { return h[k], nil }

func (h oneKnob) WriteKnob(_ context.Context, _ memcg.ID, k memcg.Knob, value string) error {
	if h["refuse"] != "" {
		return memcg.ErrDenied
	}
	h[k] = value
	return nil
}

func (h oneKnob) EffectiveMems(memcg.ID) (own, parent memcg.NodeMask, err error) {
	return own, parent, memcg.ErrUnsupported
}

// left returns a state directory with one limit left behind, and its host.
func left(t *testing.T) (dir string, host oneKnob) {
	t.Helper()
	dir, host = t.TempDir(), oneKnob{memcg.KnobHigh: "max"}
	store, keeper := keep(t, dir, host)
	if _, err := keeper.Set(t.Context(), pg, memcg.KnobHigh, "1610612736", "lend"); err != nil {
		t.Fatal(err)
	}
	store.Close()
	return dir, host
}

func keep(t *testing.T, dir string, host oneKnob) (*journal.Store, *journal.Keeper) {
	t.Helper()
	store, err := journal.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	keeper, err := journal.NewKeeper(store, host, journal.Options{Boot: "boot", PageSize: 4096})
	if err != nil {
		t.Fatal(err)
	}
	return store, keeper
}

func TestRestoreWithNothingToUndoIsQuietAndExits0(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "memagent")
	for name, dir := range map[string]string{"no state directory": missing, "no journal": t.TempDir()} {
		code, out, errs := command(t, "restore", "--state-dir", dir, "--root", t.TempDir())
		if code != exitOK || !strings.HasPrefix(out, "nothing to undo") || errs != "" {
			t.Errorf("%s: exit %d, %q, %q", name, code, out, errs)
		}
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("a directory was made to find nothing in")
	}
}

func TestRestoreFindsTheStateDirectoryInTheConfig(t *testing.T) {
	dir, _ := left(t)
	code, _, errs := command(t, "restore", "-c", configFile(t, "state_dir: "+dir+"\n"+enforcing), "--root", host(t))
	if code != exitHost || !strings.Contains(errs, "1 entries of "+dir+" are not undone") {
		t.Errorf("exit %d, %q", code, errs)
	}
	code, _, errs = command(t, "restore", "-c", configFile(t, enforcing), "--state-dir", dir)
	if code != exitConfig || !strings.Contains(errs, "-c and --state-dir both say") {
		t.Errorf("both: exit %d, %q", code, errs)
	}
}

func TestAWrongConfigKeepsNothingFromBeingPutBack(t *testing.T) {
	dir, _ := left(t)
	for name, file := range map[string]string{
		"bad":     configFile(t, "mode: perhaps\n"),
		"missing": filepath.Join(t.TempDir(), "memagent.yaml"),
	} {
		var out, errs bytes.Buffer
		e := env{out: &out, err: &errs}
		f := restoreFlags{config: file, stateDir: dir, root: host(t)}
		err := f.restoreAsConfigured(t.Context(), e)
		if err == nil || !strings.Contains(err.Error(), "1 entries of "+dir) || !strings.Contains(errs.String(), file) || !strings.Contains(errs.String(), "looked for in "+dir) {
			t.Errorf("%s: %v, %q", name, err, errs.String())
		}
		f.stateDir = t.TempDir()
		if err := f.restoreAsConfigured(t.Context(), e); err != silent(exitConfig) || !strings.HasPrefix(out.String(), "nothing to undo") {
			t.Errorf("%s, with nothing to undo: %v, %q", name, err, out.String())
		}
	}
}

func TestRestoreLeavesARunningAgentAlone(t *testing.T) {
	dir, host := left(t)
	keep(t, dir, host)
	code, _, errs := command(t, "restore", "--state-dir", dir, "--root", "/")
	if code != exitHost || !strings.Contains(errs, "in use by another memagent") || !strings.Contains(errs, "systemctl stop memagent") {
		t.Errorf("exit %d, %q", code, errs)
	}
}

func TestRestoreSaysWhatItCannotUndo(t *testing.T) {
	dir, _ := left(t)
	code, _, errs := command(t, "restore", "--state-dir", dir, "--root", host(t))
	if code != exitHost || !strings.Contains(errs, "1 entries of "+dir+" are not undone") || !strings.Contains(errs, "plain files") {
		t.Errorf("a recorded tree: exit %d, %q", code, errs)
	}
	if err := os.WriteFile(filepath.Join(dir, "journal"), []byte("memagent-journal 1 99 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs = command(t, "restore", "--state-dir", dir, "--root", host(t))
	if code != exitHost || !strings.Contains(errs, "truncated") || !strings.Contains(errs, "journal.corrupt-1") {
		t.Errorf("a damaged journal: exit %d, %q", code, errs)
	}
}

func TestWhatBecameOfEachEntryIsSaid(t *testing.T) {
	for _, tt := range []struct {
		name      string
		now       string
		refuse    string
		out, errs string
		all       bool
	}{
		{"put back", "1610612736", "", "/pg/memory.high: restored, it holds \"max\"\n", "", true},
		{"as before already", "max", "", "/pg/memory.high: was as before already, it holds \"max\"\n", "", true},
		{"somebody else's", "4096", "", "/pg/memory.high: left to somebody else, it holds \"4096\"\n", "", true},
		{"refused", "1610612736", "yes", "", "memagent: restore /pg/memory.high to \"max\": access denied\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, host := left(t)
			host[memcg.KnobHigh], host["refuse"] = tt.now, tt.refuse
			_, keeper := keep(t, dir, host)
			var out, errs bytes.Buffer
			all := printReport(&out, &errs, keeper.RestoreAll(t.Context(), restoreWithin))
			if all != tt.all || out.String() != tt.out || errs.String() != tt.errs {
				t.Errorf("%v, %q, %q", all, out.String(), errs.String())
			}
		})
	}
}

func TestTheStateDirectoryIsTheSameEverywhere(t *testing.T) {
	if config.DefaultStateDir != journal.DefaultDir || config.Default().StateDir != journal.DefaultDir {
		t.Errorf("config has %q, the journal %q", config.Default().StateDir, journal.DefaultDir)
	}
}
