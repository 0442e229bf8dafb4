// SPDX-License-Identifier: Apache-2.0

// Package test holds the rules of the house: what no compiler checks and no reviewer should have to.
package test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

const (
	module       = "github.com/machine-functions/machine-functions/"
	license      = "SPDX-License-Identifier: Apache-2.0"
	maxFunc      = 80  // lines of a body
	maxFile      = 400 // lines; what is longer is two ideas
	maxTestFile  = 600 // lines; what is longer belongs in testdata
	longestNames = 3   // folders from the root to a package
)

// rules are all rules of the house. Each says what is wrong, where, in one line.
var rules = []struct {
	name  string
	check func(tree) []string
}{
	{"license", licensed},
	{"names", named},
	{"docs", documented},
	{"length", short},
	{"rings", ringed},
	{"purity", pure},
	{"parts", complete},
	{"contracts", contracted},
}

func TestArchitecture(t *testing.T) {
	t.Parallel()
	house := load(t, os.DirFS(".."))
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			for _, message := range r.check(house) {
				t.Error(message)
			}
		})
	}
}

// tree is a checked-out repository.
type tree struct {
	fsys  fs.FS
	fset  *token.FileSet
	files []source // sorted by path
}

// source is one file. Go is nil unless it is a Go file.
type source struct {
	path string
	text []byte
	Go   *ast.File
}

func (s source) dir() string  { return path.Dir(s.path) }
func (s source) test() bool   { return strings.HasSuffix(s.path, "_test.go") }
func (s source) lines() int   { return bytes.Count(s.text, []byte("\n")) }
func (s source) made() bool   { return s.Go != nil && ast.IsGenerated(s.Go) }
func (s source) head() string { return string(s.text[:min(len(s.text), 200)]) }

// load reads the Go files, manifests and scripts of a repository; testdata, hidden and built files are left out.
func load(tb testing.TB, fsys fs.FS) tree {
	tb.Helper()
	tr := tree{fsys: fsys, fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "build" || name == "bin" || strings.HasPrefix(name, ".") && name != "."):
			return fs.SkipDir
		case d.IsDir() || !d.Type().IsRegular():
			return nil
		case !slices.Contains([]string{".go", ".yaml", ".sh", ""}, path.Ext(name)) || name == "LICENSE":
			return nil
		}
		text, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		s := source{path: p, text: text}
		if path.Ext(p) == ".go" {
			if s.Go, err = parser.ParseFile(tr.fset, p, text, parser.ParseComments); err != nil {
				return err
			}
		}
		tr.files = append(tr.files, s)
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return tr
}

// golang returns the Go files.
func (tr tree) golang() []source {
	return slices.DeleteFunc(slices.Clone(tr.files), func(s source) bool { return s.Go == nil })
}

// at returns path and line of a node.
func (tr tree) at(n ast.Node) string {
	p := tr.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// has reports whether a file or folder exists.
func (tr tree) has(p string) bool {
	_, err := fs.Stat(tr.fsys, p)
	return err == nil
}

// licensed wants the license in the first lines of every file that takes a comment.
func licensed(tr tree) (wrong []string) {
	for _, s := range tr.files {
		if !strings.Contains(s.head(), license) {
			wrong = append(wrong, s.path+": does not begin with "+license)
		}
	}
	return wrong
}

// named wants packages named after what they are about.
func named(tr tree) (wrong []string) {
	empty := []string{"util", "utils", "common", "helper", "helpers", "misc", "types", "interfaces"}
	seen := map[string]bool{}
	for _, s := range tr.golang() {
		dir, pkg := s.dir(), s.Go.Name.Name
		if seen[dir] {
			continue
		}
		seen[dir] = true
		if slices.Contains(empty, path.Base(dir)) || slices.Contains(empty, pkg) {
			wrong = append(wrong, fmt.Sprintf("%s: package %s: the name says nothing about what is inside", dir, pkg))
		}
		if strings.HasPrefix(dir, "shared/") && strings.Count(dir, "/") >= longestNames {
			wrong = append(wrong, fmt.Sprintf("%s: lies deeper than shared/provider/aws", dir))
		}
	}
	return wrong
}

// documented wants one sentence about every package.
func documented(tr tree) (wrong []string) {
	told := map[string]bool{}
	for _, s := range tr.golang() {
		name := strings.TrimSuffix(s.Go.Name.Name, "_test")
		doc := s.Go.Doc.Text()
		ok := strings.HasPrefix(doc, "Package "+name+" ") || name == "main" && strings.HasPrefix(doc, "Command ")
		told[s.dir()+" "+name] = told[s.dir()+" "+name] || ok
	}
	for p, ok := range told {
		dir, name, _ := strings.Cut(p, " ")
		want := "Package " + name
		if name == "main" {
			want = "Command " + path.Base(dir)
		}
		if !ok {
			wrong = append(wrong, fmt.Sprintf("%s: no package comment begins with %q", dir, want))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// short wants functions and files that fit a head.
func short(tr tree) (wrong []string) {
	for _, s := range tr.golang() {
		most := maxFile
		if s.test() {
			most = maxTestFile
		}
		if s.made() {
			continue
		}
		if n := s.lines(); n > most {
			wrong = append(wrong, fmt.Sprintf("%s: %d lines, more than %d", s.path, n, most))
		}
		for _, d := range s.Go.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || s.test() {
				continue
			}
			if n := tr.fset.Position(f.End()).Line - tr.fset.Position(f.Body.Lbrace).Line - 1; n > maxFunc {
				wrong = append(wrong, fmt.Sprintf("%s: %s has %d lines, more than %d", tr.at(f), f.Name.Name, n, maxFunc))
			}
		}
	}
	return wrong
}
