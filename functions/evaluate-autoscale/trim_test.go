// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// What lists that are kept leave out of Pods and Nodes changes no decision.
func TestTrimmedObjectsLeadToTheSamePlan(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("scenarios: %v", err)
	}
	for _, file := range files {
		s, _, err := scenario.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		same(t, file, s)
	}
	for seed := range uint64(1000) {
		same(t, "random world", scenario.Random(seed))
	}
}

func same(t *testing.T, title string, s scenario.Scenario) {
	t.Helper()
	decided := func(s scenario.Scenario) string {
		seen, _, err := scenario.Observe(Function, s)
		if err != nil {
			t.Fatalf("%s: %v", title, err)
		}
		return Decide(seen).String()
	}
	want := decided(s)
	var c snapshot.Commons
	trimmed := s.World.Clone()
	for o := range s.World.Objects() {
		if k := plan.KindOf(o); k == "Pod" || k == "Node" {
			o, _ = o.DeepCopyObject().(plan.Object)
			c.Trim(o)
			trimmed.Add(o)
		}
	}
	s.World = trimmed
	if got := decided(s); got != want {
		t.Errorf("%s (-whole +trimmed):\n%s", title, cmp.Diff(want, got))
	}
}
