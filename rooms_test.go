package memagent_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/memagent/memagent/"

// rooms says which room may import which others of this module. A room is a
// top-level folder and everything below it; cmd/* are rooms of their own. A
// room may always import itself. docs/architecture.md tells the reasons.
const rooms = `
	memcg        <
	config       < memcg
	telemetry    < memcg
	cgroupfs     < memcg
	workingset   < memcg
	numapolicy   < memcg
	sim          < memcg
	container    < memcg
	journal      < memcg
	units        < memcg journal
	recording    < memcg
	report       < memcg telemetry
	controller   < memcg config telemetry cgroupfs workingset journal numapolicy container recording
	cmd/memagent < memcg config telemetry cgroupfs controller journal units container recording report
	lab          <
	cmd/memlab   < lab
	packaging    <
`

// testsMay lists what a room's tests may import beyond that.
const testsMay = `
	sim        < controller workingset journal config telemetry
	controller < sim
	cgroupfs   < sim
	lab        < journal
	packaging  < memcg config telemetry
`

// bans are packages that only some rooms may use, each with its reason.
var bans = []struct {
	pkg    string
	except []string
	reason string
}{
	{"os/exec", []string{"lab", "cmd/memlab"}, "the agent starts no other program; a shell between it and the kernel loses the errno"},
	{"golang.org/x/sys/unix", []string{"cgroupfs", "lab", "telemetry", "config", "journal", "container", "cmd/memagent"}, "system calls live at the edges, pure rooms have none"},
	{"math/rand", []string{"lab"}, "randomness is passed in, with a seed"},
	{"math/rand/v2", []string{"lab", "sim", "cmd/memagent"}, "randomness is passed in, with a seed"},
	{"unsafe", []string{"cgroupfs", "lab"}, "only where the kernel's structures are read"},
}

// clockless rooms must give the same answer for the same input: they may
// neither read the clock nor start goroutines nor open files.
var clockless = []string{"memcg", "workingset", "numapolicy"}

type source struct {
	path string // slash-separated, from the module's root
	room string
	test bool
	file *ast.File
}

func TestImportsPointOneWay(t *testing.T) {
	may, mayInTests := parseArrows(t, rooms), parseArrows(t, testsMay)
	for _, src := range sources(t) {
		allowed, ok := may[src.room]
		if !ok {
			t.Errorf("%s: room %q is not in the table of rooms; say what it may import", src.path, src.room)
			continue
		}
		for _, imp := range imports(src.file) {
			rest, ours := strings.CutPrefix(imp, module)
			if !ours {
				continue
			}
			to := roomOf(rest + "/x.go")
			if to == src.room || allowed[to] || src.test && mayInTests[src.room][to] {
				continue
			}
			t.Errorf("%s imports %s: room %s may only import %v", src.path, imp, src.room, slices.Sorted(maps.Keys(allowed)))
		}
	}
}

func TestEveryRoomInTheTableExists(t *testing.T) {
	for _, table := range []string{rooms, testsMay} {
		for room, allowed := range parseArrows(t, table) {
			for _, r := range append(slices.Sorted(maps.Keys(allowed)), room) {
				if _, err := os.Stat(filepath.FromSlash(r)); err != nil {
					t.Errorf("the table names room %s: %v", r, err)
				}
			}
		}
	}
}

func TestBannedPackagesStayOut(t *testing.T) {
	for _, src := range sources(t) {
		if src.test {
			continue
		}
		for _, imp := range imports(src.file) {
			for _, ban := range bans {
				if imp == ban.pkg && !slices.Contains(ban.except, src.room) {
					t.Errorf("%s imports %s: %s (allowed in %v)", src.path, imp, ban.reason, ban.except)
				}
			}
		}
	}
}

func TestPureRoomsHaveNoClockFilesOrGoroutines(t *testing.T) {
	for _, src := range sources(t) {
		if src.test || !slices.Contains(clockless, src.room) {
			continue
		}
		for _, imp := range imports(src.file) {
			if imp == "os" || strings.HasPrefix(imp, "os/") || imp == "sync" || imp == "io/fs" {
				t.Errorf("%s imports %s: a pure room has no files and shares nothing", src.path, imp)
			}
		}
		ast.Inspect(src.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine in a pure room", src.path)
			case *ast.SelectorExpr:
				if id, ok := n.X.(*ast.Ident); ok && id.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "NewTimer", "NewTicker", "Tick"}, n.Sel.Name) {
					t.Errorf("%s uses time.%s in a pure room", src.path, n.Sel.Name)
				}
			}
			return true
		})
	}
}

func TestEveryPackageHasOnePackageComment(t *testing.T) {
	comments, seen := map[string][]string{}, map[string]bool{}
	for _, src := range sources(t) {
		if src.test {
			continue
		}
		dir := filepath.Dir(src.path)
		seen[dir] = true
		if src.file.Doc != nil {
			comments[dir] = append(comments[dir], src.path)
		}
	}
	for dir := range seen {
		if n := len(comments[dir]); n != 1 {
			t.Errorf("%s has %d package comments, want exactly one: %v", dir, n, comments[dir])
		}
	}
}

func sources(t *testing.T) []source {
	t.Helper()
	var list []source
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != "." && (name == "testdata" || name == "bin" || strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || !strings.Contains(path, string(filepath.Separator)) {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		slash := filepath.ToSlash(path)
		list = append(list, source{slash, roomOf(slash), strings.HasSuffix(path, "_test.go"), f})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Fatal("no Go files found; the test must run in the module's root")
	}
	return list
}

func roomOf(path string) string {
	first, rest, _ := strings.Cut(path, "/")
	if first == "cmd" {
		second, _, _ := strings.Cut(rest, "/")
		return first + "/" + second
	}
	return first
}

func imports(f *ast.File) []string {
	var list []string
	for _, imp := range f.Imports {
		if path, err := strconv.Unquote(imp.Path.Value); err == nil {
			list = append(list, path)
		}
	}
	return list
}

func parseArrows(t *testing.T, table string) map[string]map[string]bool {
	t.Helper()
	m := map[string]map[string]bool{}
	for line := range strings.Lines(table) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		from, to, ok := strings.Cut(line, "<")
		if !ok {
			t.Fatalf("no < in %q", line)
		}
		allowed := map[string]bool{}
		for _, r := range strings.Fields(to) {
			allowed[r] = true
		}
		m[strings.TrimSpace(from)] = allowed
	}
	return m
}
