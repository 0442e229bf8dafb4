// SPDX-License-Identifier: Apache-2.0

package guards

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	position "go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What stands there without a guard compiles: a removal that does not says nothing, and is noticed only by the commit whose share it is in.
func TestEveryRemovalCompiles(t *testing.T) {
	t.Parallel()
	var dirs []string
	for _, g := range All() {
		if dir := "./" + filepath.Dir(g.File); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	c := checker{positions: position.NewFileSet(), listed: map[string]*build.Package{}, parsed: map[string]*ast.File{}}
	c.imports = importer.ForCompiler(c.positions, "gc", exported(t, dirs))
	for _, g := range All() {
		text, err := os.ReadFile(filepath.Join(root, g.File))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.check(g.File, strings.Replace(string(text), g.Text, g.Gone, 1)); err != nil {
			t.Errorf("without %s: %v", g.Name, err)
		}
	}
}

// exported returns what go compiled of what packages import.
func exported(t *testing.T, dirs []string) importer.Lookup {
	t.Helper()
	//nolint:gosec // the packages are those of the list
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Export"}, dirs...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		files[p.ImportPath] = p.Export
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
}

// checker checks the types of packages of which one file is another.
type checker struct {
	positions *position.FileSet
	imports   types.Importer
	listed    map[string]*build.Package // by directory
	parsed    map[string]*ast.File
}

func (c checker) check(file, text string) error {
	dir := filepath.Join(root, filepath.Dir(file))
	if c.listed[dir] == nil {
		var err error
		if c.listed[dir], err = build.ImportDir(dir, 0); err != nil {
			return err
		}
	}
	var files []*ast.File
	for _, name := range c.listed[dir].GoFiles {
		path := filepath.Join(dir, name)
		if name == filepath.Base(file) {
			changed, err := parser.ParseFile(c.positions, file, text, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files = append(files, changed)
			continue
		}
		if c.parsed[path] == nil {
			var err error
			if c.parsed[path], err = parser.ParseFile(c.positions, path, nil, parser.SkipObjectResolution); err != nil {
				return err
			}
		}
		files = append(files, c.parsed[path])
	}
	_, err := (&types.Config{Importer: c.imports}).Check(c.listed[dir].ImportPath, c.positions, files, nil)
	return err
}
