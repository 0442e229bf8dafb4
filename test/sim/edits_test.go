// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// Every call of a story in which people also relabel, pause, annotate, spoil, release and make objects by hand fails, loses its
// answer, sees what is old, or is the last of its process.
func TestEveryCallAmidEditsIsStruck(t *testing.T) { //nolint:paralleltest // it uses all cores
	type at struct {
		Config
		Strike
	}
	var all []at
	for level := range Level(2) {
		for _, w := range worlds {
			c := Config{Level: level, Steps: 2000, Edits: true}
			p, err := play(c, &Script{Given: w})
			if err != nil {
				t.Fatalf("the story itself: %s", keep(c, p.Vector(), err))
			}
			if last := slices.Max(slices.Collect(maps.Keys(edited))); p.story < last {
				t.Errorf("%s: %d rounds of the story in %d steps, the last edit is in round %d", level, p.story, c.Steps, last)
			}
			for call := 0; call < p.calls; call += 1 + int(level)*3 {
				for v := fails; v < numVerdicts; v++ {
					all = append(all, at{c, Strike{World: w, Call: call, Verdict: v}})
				}
			}
		}
	}
	stride := max(1, int(float64(len(all))/600 / *times))
	campaign(t, fmt.Sprintf("struck edits 1/%d", stride), int(float64(len(all)/stride) / *times), 0, func(i uint64) (Config, *Script) {
		a := all[(int(i)*stride+int(i)%stride)%len(all)]
		return a.Config, &Script{Strategy: &a.Strike}
	})
}

// The schedules of two invocations at the same time, right after people changed something.
func TestAllSchedulesAmidEdits(t *testing.T) { //nolint:paralleltest // it uses all cores
	var bouts []*Bout
	for _, w := range worlds {
		for _, stage := range slices.Sorted(maps.Keys(edited)) {
			for _, functions := range [][]int{{0, 0}, {0, 1}, {1, 1}, {1, 3}} {
				bouts = append(bouts, &Bout{Config: Config{Level: Machines, Edits: true}, World: w, Stage: stage, Functions: functions})
			}
		}
	}
	tally, end := counted.begin("exhaustive edits", 0)
	defer end()
	exhaustAll(t, bouts, 1, max(1, int(60**times)), tally)
}
