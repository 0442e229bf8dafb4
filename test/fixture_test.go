// SPDX-License-Identifier: Apache-2.0

package test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// TestRules breaks the rules one by one. Every testdata/*.txtar but house.txtar is a change to that house, which is in
// order: files are added or replaced, empty ones are removed. Its section want lists what the rules then say.
func TestRules(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 2 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			change, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			house, err := txtar.ParseFile("testdata/house.txtar")
			if err != nil {
				t.Fatal(err)
			}
			want := rebuild(house, change)
			fsys, err := txtar.FS(house)
			if err != nil {
				t.Fatal(err)
			}
			changed := load(t, fsys)
			var got strings.Builder
			for _, r := range rules {
				for _, message := range r.check(changed) {
					got.WriteString(r.name + ": " + message + "\n")
				}
			}
			if diff := cmp.Diff(want, got.String()); diff != "" {
				t.Errorf("%s(-want +got):\n%s", change.Comment, diff)
			}
		})
	}
}

// rebuild applies a change to a house and returns what it wants to be said about it.
func rebuild(house, change *txtar.Archive) (want string) {
	for _, f := range change.Files {
		if f.Name == "want" {
			want = string(f.Data)
			continue
		}
		house.Files = slices.DeleteFunc(house.Files, func(old txtar.File) bool { return old.Name == f.Name })
		if len(f.Data) > 0 {
			house.Files = append(house.Files, f)
		}
	}
	return want
}
