package kernel

import (
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// flavour is the build of Debian's kernel the lab uses: the smallest one, made for virtual machines.
const flavour = "cloud-amd64"

// releasePattern matches the packages that can hold a kernel image. Debug symbols (-dbg) and
// meta packages without a full version do not match.
var releasePattern = regexp.MustCompile(`^linux-(?:image|binary)-([0-9]+\.[0-9]+[.-][0-9].*-` + flavour + `)(?:-unsigned)?$`)

// Releases returns the kernel releases (uname -r) that package names offer, newest first.
// A series such as "6.12" keeps only its own; an empty series keeps all.
func Releases(names []string, series string) []string {
	seen := map[string]bool{}
	var out []string
	for _, n := range names {
		m := releasePattern.FindStringSubmatch(n)
		if m == nil || seen[m[1]] {
			continue
		}
		if series != "" && !strings.HasPrefix(m[1], series+".") && !strings.HasPrefix(m[1], series+"-") {
			continue
		}
		seen[m[1]] = true
		out = append(out, m[1])
	}
	sort.SliceStable(out, func(i, j int) bool { return older(out[j], out[i]) })
	return out
}

// Packages returns which of names together hold a release: the image and, where Debian splits it,
// the kernel binary and the modules. A signed image wins over the unsigned one.
func Packages(names []string, release string) []string {
	have := map[string]bool{}
	for _, n := range names {
		have[n] = true
	}
	var out []string
	for _, prefix := range []string{"linux-image-", "linux-binary-", "linux-modules-"} {
		for _, suffix := range []string{"", "-unsigned"} {
			if n := prefix + release + suffix; have[n] {
				out = append(out, n)
				break
			}
		}
	}
	return out
}

var numbers = regexp.MustCompile(`[0-9]+`)

// older compares two releases number by number: 6.12.99+deb12 is older than 6.12.117+deb12.
func older(a, b string) bool {
	x, y := numbers.FindAllString(a, -1), numbers.FindAllString(b, -1)
	for i := 0; i < len(x) && i < len(y); i++ {
		m, errM := strconv.Atoi(x[i])
		n, errN := strconv.Atoi(y[i])
		if errM != nil || errN != nil || m == n {
			continue
		}
		return m < n
	}
	return len(x) < len(y)
}
