// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// Whatever a function decided can be replayed from its recording, word for word.
func TestRecordingsReplay(t *testing.T) {
	t.Parallel()
	w := machineLayer()
	if err := w.API.Put(Set("worker", 2)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	byName := map[string]function.Function{}
	for range 6 {
		w.Pass(10e9)
		if err := w.Kubelets(); err != nil {
			t.Fatal(err)
		}
		for _, f := range w.Functions {
			byName[f.Name] = f
			r := w.Runner(f)
			r.Record = dir
			if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(files) < 8 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		s, _, err := scenario.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range byName {
			if !strings.HasPrefix(filepath.Base(file), name) {
				continue
			}
			seen, _, err := scenario.Observe(f, s)
			if err != nil {
				t.Fatal(err)
			}
			// Holders of claims are random per invocation; the rest must be what it was.
			got, want := strip(f.Decide(seen).String()), strip(s.Plan)
			if got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", filepath.Base(file), got, want)
			}
		}
	}
}

// strip removes the holder of a claim.
func strip(text string) string {
	for {
		i := strings.Index(text, `"holder":"`)
		if i < 0 {
			return text
		}
		j := strings.Index(text[i+10:], `"`)
		text = text[:i] + text[i+10+j+1:]
	}
}
