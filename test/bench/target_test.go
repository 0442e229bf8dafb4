// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
)

// targets are what the plan for each workload may cost above its proven bound at most, in percent, and how many Nodes a
// scale-down names at least. docs/performance.md has the figures and where they come from.
var targets = map[string]struct {
	over    float64
	left    int
	removed int
	large   bool
}{
	"W1a": {}, "W1b": {}, "W1c": {left: 196}, "W2": {},
	"W3": {over: 0.6}, "W3p": {over: 0.6}, "W3s": {over: 0.3},
	"W4-1000": {over: 3, large: true}, "W4-5000": {over: 1.6, large: true},
	"W5a": {}, "W5b": {}, "W5c": {}, "W5d": {},
	"W6a": {removed: 490, large: true}, "W6b": {removed: 2700, large: true},
}

// What is planned is the same on every machine, so that its distance from the optimum is a test, unlike its time.
func TestPlansStayAsCloseToTheBoundAsTheyAre(t *testing.T) {
	t.Parallel()
	files, err := Files("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(titleOf(file), func(t *testing.T) {
			t.Parallel()
			want, ok := targets[titleOf(file)]
			if !ok {
				t.Fatal("a workload without a target")
			}
			if testing.Short() && want.large {
				t.Skip("needs seconds for its objects alone")
			}
			w, err := Load(file)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Measure(w, 1)
			if err != nil {
				t.Fatal(err)
			}
			if r.Over > want.over+1e-6 || r.Unserved != want.left {
				t.Errorf("%.2f %% above the bound with %d pods left, want at most %.2f %% with %d", r.Over, r.Unserved, want.over, want.left)
			}
			if want.removed > 0 && r.Removed < want.removed {
				t.Errorf("%d nodes can go, want at least %d", r.Removed, want.removed)
			}
		})
	}
}
