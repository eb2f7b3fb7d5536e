package kernel

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// keyrings are the places Debian keeps the keys of its archive in, newest name first.
var keyrings = []string{
	"/usr/share/keyrings/debian-archive-keyring.pgp",
	"/usr/share/keyrings/debian-archive-keyring.gpg",
}

// findKeyring returns the file with the keys of Debian's archive.
func findKeyring() (string, error) {
	for _, k := range keyrings {
		if _, err := os.Stat(k); err == nil {
			return k, nil
		}
	}
	return "", fmt.Errorf("no Debian archive keyring (looked for %s): install debian-archive-keyring", strings.Join(keyrings, ", "))
}

// SourcesList is the text of a sources.list with suites of the archive this machine gets Debian from.
func (s Store) SourcesList(suites []string) (string, error) {
	m, err := s.mirror()
	if err != nil {
		return "", err
	}
	keyring, err := findKeyring()
	if err != nil {
		return "", err
	}
	return sourcesList(m, suites, keyring), nil
}

// aptState is one view of the package archive: the machine's own (no options), or a private one
// with its own sources and lists. Signatures are always verified, by apt.
type aptState struct {
	name    string   // for messages
	options []string // -o Key=Value pairs, in front of every command
	private bool
}

// machineState is apt as the machine is set up.
func machineState() aptState { return aptState{name: "this machine's apt sources"} }

// privateState writes a sources.list for suites below dir and returns the view of it. Nothing
// outside dir is written by apt when it is used.
func privateState(dir string, m Mirror, suites []string) (aptState, error) {
	keyring, err := findKeyring()
	if err != nil {
		return aptState{}, err
	}
	for _, d := range []string{"lists/partial", "cache/archives/partial", "preferences"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return aptState{}, fmt.Errorf("making a private apt state: %w", err)
		}
	}
	list := filepath.Join(dir, "sources.list")
	if err := os.WriteFile(list, []byte(sourcesList(m, suites, keyring)), 0o644); err != nil {
		return aptState{}, fmt.Errorf("making a private apt state: %w", err)
	}
	return aptState{name: "suites " + strings.Join(suites, ", "), private: true, options: []string{
		"-o", "Dir::Etc::sourcelist=" + list,
		"-o", "Dir::Etc::sourceparts=/dev/null",
		"-o", "Dir::Etc::preferencesparts=" + filepath.Join(dir, "preferences"),
		"-o", "Dir::State::Lists=" + filepath.Join(dir, "lists"),
		"-o", "Dir::State::status=/dev/null",
		"-o", "Dir::Cache=" + filepath.Join(dir, "cache"),
		"-o", "Dir::Cache::pkgcache=",
		"-o", "Dir::Cache::srcpkgcache=",
	}}, nil
}

// sourcesList is the text of a sources.list with those suites. A suite of the security archive
// is left out when the machine has no URI for it.
func sourcesList(m Mirror, suites []string, keyring string) string {
	var b strings.Builder
	for _, s := range suites {
		uri := m.Main
		if strings.HasSuffix(s, "-security") {
			uri = m.Security
		}
		if uri == "" {
			continue
		}
		fmt.Fprintf(&b, "deb [signed-by=%s] %s %s main\n", keyring, uri, s)
	}
	return b.String()
}

// names asks for every package whose name begins with linux-.
func (a aptState) names(ctx context.Context) ([]string, error) {
	out, err := a.run(ctx, "", "apt-cache", "pkgnames", "linux-")
	if err != nil {
		return nil, err
	}
	return strings.Fields(out), nil
}

// update fetches the lists of the state. Of the machine's own sources some may be out of reach
// without any harm here; of a private state all are needed.
func (a aptState) update(ctx context.Context) error {
	args := []string{"-q", "update"}
	if a.private {
		args = append(args, "-o", "APT::Update::Error-Mode=any")
	}
	_, err := a.run(ctx, "", "apt-get", args...)
	return err
}

// download fetches packages into dir.
func (a aptState) download(ctx context.Context, dir string, packages []string) error {
	_, err := a.run(ctx, dir, "apt-get", append([]string{"-q", "download"}, packages...)...)
	return err
}

func (a aptState) run(ctx context.Context, dir, name string, args ...string) (string, error) {
	args = append(append([]string{}, a.options...), args...)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s with %s: %w: %s", name, a.name, err, lastLines(stderr.String(), 4))
	}
	return stdout.String(), nil
}

// lastLines is the end of a command's output, on one line.
func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "; ")
}
