// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// ring is a line of the dependency rule: what a package may import of this module, beside the standard library and
// other modules. Arrows point up the list only.
type ring struct {
	packages string // a pattern of folders
	core     bool   // decides and touches nothing
	imports  []string
}

var (
	vocabulary = []string{"shared/machine", "shared/autoscaling", "shared/provider", "shared/providerspec"}
	core       = append(slices.Clone(vocabulary), "shared/binpack", "shared/scheduling", "shared/plan", "shared/snapshot", "shared/function")

	rings = []ring{
		{"shared/machine", true, nil},
		{"shared/autoscaling", true, nil},
		{"shared/provider", true, nil},
		{"shared/providerspec", true, nil},
		{"shared/binpack", true, nil},
		{"shared/scheduling", true, append(slices.Clone(vocabulary), "shared/binpack")},
		{"shared/plan", true, vocabulary},
		{"shared/snapshot", true, append(slices.Clone(vocabulary), "shared/plan")},
		{"shared/function", true, []string{"shared/snapshot", "shared/plan"}},
		{"functions/" + sink, false, []string{"shared/events"}},
		{"functions/*", true, core},
		// From here on the world may be touched.
		{"shared/events", false, []string{"shared/plan", "shared/snapshot"}},
		{"shared/beside", false, nil},
		{"shared/cluster", false, core},
		{"shared/flights", false, []string{"shared/beside"}},
		{"shared/webhook", false, nil},
		{"shared/cluster/*", false, append(slices.Clone(core), "shared/cluster", "shared/flights", "shared/webhook")},
		{"shared/provider/drivers", false, append(slices.Clone(vocabulary), "shared/provider/*")}, // the table of drivers
		{"shared/provider/kubeapi", false, append(slices.Clone(vocabulary), "shared/webhook")},
		{"shared/provider/throttle", false, vocabulary},
		{"shared/provider/*", false, append(slices.Clone(vocabulary), "shared/provider/kubeapi", "shared/provider/throttle", "shared/beside")},
		{"shared/metrics", false, core},
		{"shared/runner", false, append(slices.Clone(core), "shared/beside", "shared/events", "shared/cluster", "shared/cluster/kube", "shared/flights", "shared/metrics")},
		{".", false, []string{"functions/*", "shared/*", "shared/*/*"}},
	}
)

// Of other modules the core knows data only; of the standard library, nothing that touches the world, waits or rolls
// dice.
var (
	coreModules = []string{"github.com/openshift/api", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/component-helpers", "sigs.k8s.io/json", "sigs.k8s.io/yaml"}
	notInCore   = []string{
		"context", "crypto/rand", "log", "math/rand", "net", "os", "plugin", "runtime", "sync", "syscall", "testing", "unsafe",
		"k8s.io/apimachinery/pkg/util/clock", "k8s.io/apimachinery/pkg/util/rand", "k8s.io/apimachinery/pkg/util/uuid",
		"k8s.io/apimachinery/pkg/util/wait", "k8s.io/apimachinery/pkg/watch",
	}
	notCalled = map[string][]string{
		"time":                                 {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
		"k8s.io/apimachinery/pkg/apis/meta/v1": {"Now", "NowMicro"},
		"fmt":                                  {"Print", "Printf", "Println"},
	}
)

// ringOf returns the ring of the package in dir. Tests and programs under test/ are in none: they may import all. Nor are the modules
// of tools/.
func ringOf(dir string) (ring, bool) {
	i := slices.IndexFunc(rings, func(r ring) bool { return match(r.packages, dir) })
	if i < 0 {
		return ring{}, false
	}
	return rings[i], true
}

func match(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// within reports whether import path p is one of, or below one of, the given paths.
func within(p string, paths []string) bool {
	return slices.ContainsFunc(paths, func(q string) bool { return p == q || strings.HasPrefix(p, q+"/") })
}

// ringed wants every package of the product in a ring and every import to point inwards.
func ringed(tr tree) (wrong []string) {
	for _, s := range tr.golang() {
		if s.test() || within(s.dir(), []string{"test", "tools"}) {
			continue
		}
		r, ok := ringOf(s.dir())
		if !ok {
			wrong = append(wrong, fmt.Sprintf("%s: is in no ring: name it in test/rings_test.go", s.path))
			continue
		}
		for _, spec := range s.Go.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				wrong = append(wrong, err.Error())
				continue
			}
			if why := r.refuses(s.dir(), p); why != "" {
				wrong = append(wrong, fmt.Sprintf("%s: %s imports %s: %s", tr.at(spec), s.dir(), strings.TrimPrefix(p, module), why))
			}
		}
	}
	return wrong
}

// refuses says why a package of ring r in dir may not import p, or "".
func (r ring) refuses(dir, p string) string {
	std := !strings.Contains(strings.Split(p, "/")[0], ".")
	switch own, ours := strings.CutPrefix(p, module); {
	case ours && match("functions/*", dir) && match("functions/*", own):
		return "functions never import each other"
	case ours && !slices.ContainsFunc(r.imports, func(pattern string) bool { return match(pattern, own) }):
		return "arrows point up the list of rings only"
	case ours || !r.core:
		return ""
	case p == "context" && dir == "shared/provider": // the contract of drivers speaks of calls
		return ""
	case p == "net/netip": // how an address is written
		return ""
	case within(p, notInCore):
		return "the core touches nothing"
	case dir == "shared/binpack" && !std:
		return "binpack knows numbers only"
	case !std && !within(p, coreModules):
		return "the core knows data only"
	}
	return ""
}

// pure wants a core that is the same every time: no clock, no goroutine, no output, no panic, nothing run at start.
func pure(tr tree) (wrong []string) {
	for _, s := range tr.golang() {
		if r, _ := ringOf(s.dir()); !r.core || s.test() {
			continue
		}
		packages := importNames(s.Go)
		for _, d := range s.Go.Decls {
			f, _ := d.(*ast.FuncDecl)
			if f != nil && f.Recv == nil && f.Name.Name == "init" {
				wrong = append(wrong, tr.at(f)+": init: nothing runs at start")
			}
			must := f != nil && strings.HasPrefix(strings.ToLower(f.Name.Name), "must")
			ast.Inspect(d, func(n ast.Node) bool {
				if why := impure(n, packages); why != "" && (!must || why != panics) {
					wrong = append(wrong, tr.at(n)+": "+why)
				}
				return true
			})
		}
	}
	return wrong
}

const panics = "panic: a bad object is a decision"

func impure(n ast.Node, packages map[string]string) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "go: the core has no goroutines"
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok && slices.Contains(notCalled[packages[x.Name]], n.Sel.Name) {
			return fmt.Sprintf("%s.%s: the core has no clock and no voice", x.Name, n.Sel.Name)
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "panic" {
			return panics
		}
	}
	return ""
}

// importNames maps the names that imports have in a file to their paths.
func importNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range f.Imports {
		p := strings.Trim(spec.Path.Value, `"`)
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = p
	}
	return names
}
