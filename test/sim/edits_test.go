// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"testing"
)

// Every call of a story in which people also relabel, pause, annotate, spoil, release and make objects by hand fails, loses its
// answer, sees what is old, or is the last of its process.
func TestEveryCallAmidEditsIsStruck(t *testing.T) { //nolint:paralleltest // it uses all cores
	var all []at
	for level := range Level(2) {
		for _, w := range worlds {
			c := Config{Level: level, Steps: 2000, Edits: true}
			s := newNoted()
			p, err := play(c, &Script{Given: w, Strategy: s})
			if err != nil {
				t.Fatalf("the story itself: %s", keep(c, p.Vector(), err))
			}
			if last := slices.Max(slices.Collect(maps.Keys(edited))); p.story < last {
				t.Errorf("%s: %d rounds of the story in %d steps, the last edit is in round %d", level, p.story, c.Steps, last)
			}
			all = append(all, s.strikes(c, w, 1+int(level)*3)...)
		}
	}
	strikeAll(t, "struck edits", 520, 0, all)
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
