// SPDX-License-Identifier: Apache-2.0

package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testDefined = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`)
	testNamed   = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*…?`)
	fileNamed   = regexp.MustCompile(`[a-z_]+_test\.go`)
)

// A test, or a file of tests, that a document names is there: who reads that something is tested can look.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	files, tests := set{}, set{}
	if err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", "build", "testdata"}, d.Name()) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		files[d.Name()] = true
		for _, m := range testDefined.FindAllSubmatch(source, -1) {
			tests[string(m[1])] = true
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	documents, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../docs/*.md")
	if err != nil || len(more) < 10 {
		t.Fatalf("%d documents, error %v", len(more), err)
	}
	for _, document := range append(documents, more...) {
		words := text(t, document)
		for _, name := range fileNamed.FindAllString(words, -1) {
			if !files[name] {
				t.Errorf("%s: there is no %s", document, name)
			}
		}
		for _, name := range testNamed.FindAllString(words, -1) {
			begun, several := strings.CutSuffix(name, "…")
			if !tests[name] && (!several || !slices.ContainsFunc(tests.sorted(), func(one string) bool { return strings.HasPrefix(one, begun) })) {
				t.Errorf("%s: there is no %s", document, name)
			}
		}
	}
}
