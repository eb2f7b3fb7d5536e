package telemetry

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// named are the names of rules and bounds that rooms give in their source,
// under what they are for: wish, bound, lend, node, mems.
type named map[string]map[string]bool

// kebab is what the name of a rule looks like.
var kebab = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)

func (n named) add(what string, e ast.Expr) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return
	}
	if s, err := strconv.Unquote(lit.Value); err == nil && kebab.MatchString(s) {
		if n[what] == nil {
			n[what] = map[string]bool{}
		}
		n[what][s] = true
	}
}

// scan collects the names in the source files of a room: what is assigned to,
// returned as or written into something that is called a rule or clipped.
func (n named) scan(t *testing.T, room string) {
	t.Helper()
	files, err := filepath.Glob("../" + room + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no source: %v", room, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		n.file(f, wishOf(room, filepath.Base(name)))
	}
}

// wishOf is what the rules in a file are for, where their place does not tell.
func wishOf(room, file string) string {
	switch {
	case room == "numapolicy" && strings.HasPrefix(file, "mems"):
		return "mems"
	case room == "numapolicy":
		return "node"
	}
	return "wish"
}

// slot is what a name is for, by what it is put into; "" where that holds no
// name of a rule.
func slot(e ast.Expr, wish string) string {
	name := ""
	switch e := e.(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		if name = e.Sel.Name; name == "Rule" {
			if of, ok := e.X.(*ast.SelectorExpr); ok && of.Sel.Name == "Mems" {
				return "mems"
			}
		}
	}
	switch name {
	case "Rule", "rule":
		return wish
	case "Clipped", "clipped":
		return "bound"
	case "NodeRule":
		return "node"
	}
	return ""
}

func (n named) file(f *ast.File, wish string) {
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.AssignStmt:
			for i, to := range node.Lhs {
				if what := slot(to, wish); what != "" && len(node.Rhs) == len(node.Lhs) {
					n.add(what, node.Rhs[i])
				}
			}
		case *ast.CompositeLit:
			as := wish
			if of, ok := node.Type.(*ast.Ident); ok && of.Name == "lendMove" {
				as = "lend"
			}
			for _, e := range node.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					if what := slot(kv.Key, as); what != "" {
						n.add(what, kv.Value)
					}
				}
			}
		case *ast.CallExpr:
			if to, ok := node.Fun.(*ast.SelectorExpr); ok && to.Sel.Name == "orHeadroom" {
				n.add(wish, node.Args[1])
			}
		case *ast.ValueSpec:
			n.values(node, wish)
		case *ast.FuncDecl:
			n.returns(node, wish)
		}
		return true
	})
}

// values collects the tables and constants whose entries become names of rules.
func (n named) values(spec *ast.ValueSpec, wish string) {
	for i, v := range spec.Values {
		name := spec.Names[i].Name
		list, table := v.(*ast.CompositeLit)
		switch {
		case name == "costly" || strings.HasPrefix(name, "Why"):
			n.add("node", v)
		case !table:
		case name == "giveBackNames":
			n.all("lend", list)
		case name == "memsModes" && wish == "mems":
			n.all("mems", list)
		}
	}
}

func (n named) all(what string, list *ast.CompositeLit) {
	for _, e := range list.Elts {
		n.add(what, e)
	}
}

// returns collects what a function returns as a rule: a result of that name, or
// one without a name beside an Intent.
func (n named) returns(f *ast.FuncDecl, wish string) {
	if f.Type.Results == nil || f.Body == nil {
		return
	}
	var slots []string
	intent := false
	for _, field := range f.Type.Results.List {
		typ, _ := field.Type.(*ast.Ident)
		what := ""
		if typ != nil && typ.Name == "Intent" {
			intent = true
		} else if typ != nil && typ.Name == "string" && intent {
			what = wish
		}
		for _, id := range field.Names {
			slots = append(slots, slot(id, wish))
		}
		if len(field.Names) == 0 {
			slots = append(slots, what)
		}
	}
	ast.Inspect(f.Body, func(node ast.Node) bool {
		if _, ok := node.(*ast.FuncLit); ok {
			return false
		}
		if ret, ok := node.(*ast.ReturnStmt); ok && len(ret.Results) == len(slots) {
			for i, e := range ret.Results {
				if slots[i] != "" {
					n.add(slots[i], e)
				}
			}
		}
		return true
	})
}

func TestEveryRuleAndBoundHasASentence(t *testing.T) {
	n := named{"lend": {}}
	for _, room := range []string{"workingset", "numapolicy", "controller"} {
		n.scan(t, room)
	}
	// Those that are not written out: verdicts and kinds that are rules too.
	for _, name := range []string{"throttled", "limit-bound", "move-anon", "move-file", "move-anon-trial", "move-file-trial"} {
		n["wish"][name] = true
	}
	for what, list := range map[string]map[string]string{"wish": wishRules, "lend": lendRules, "bound": bounds, "node": nodeRules, "mems": memsRules} {
		if len(n[what]) < 4 {
			t.Errorf("only %d names for %s were found; has the source changed its ways?", len(n[what]), what)
		}
		given, told := slices.Sorted(maps.Keys(n[what])), slices.Sorted(maps.Keys(list))
		if diff := cmp.Diff(told, given); diff != "" {
			t.Errorf("%s: names with a sentence in rules.go (-), names that the rooms give (+):\n%s", what, diff)
		}
		for name, text := range list {
			if len(text) < 20 || strings.HasSuffix(text, ".") || strings.ToLower(text[:1]) != text[:1] && !strings.HasPrefix(text, "Senpai") {
				t.Errorf("%s: %q is no clause to follow on \"rule %s: \"", what, text, name)
			}
		}
	}
}

func TestEachRuleOfADecisionIsExplained(t *testing.T) {
	r := &Record{Verdict: "file-thrash", Rule: "recall-idle", NodeRule: "drawn", Clipped: "node", Want: 1 << 20, Acted: true,
		Lending: Lending{On: true, Rule: "recall-idle"}, Mems: Mems{Rule: "no-room"}}
	text := strings.Join(r.Explain(), "\n")
	for _, want := range []string{
		"Rule recall-idle: it has been idle for 2 min or longer, so what was lent",
		"For its nodes, rule drawn: one node was drawn,",
		"For its cpuset.mems, rule no-room: what would move does not fit",
		`the bound "node" clipped it: the drawn node has no more to give.`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Count(text, "recall-idle: it") != 1 {
		t.Errorf("a rule is told twice:\n%s", text)
	}
	r.Rule, r.Clipped, r.Lending.Rule = "of-tomorrow", "swap write budget of the host", "trim"
	text = strings.Join(r.Explain(), "\n")
	for _, want := range []string{"Rule of-tomorrow.\n", "the bound \"swap write budget of the host\" clipped it.\n", "For lending, rule trim: part of"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}
