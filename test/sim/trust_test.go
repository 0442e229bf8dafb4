// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// The short way on which most schedules store objects leaves the same behind as the long one, and the same schedule is
// the same every time.
func TestSchedulesAreRepeated(t *testing.T) {
	t.Parallel()
	for seed := range uint64(24) {
		level := Level(seed % numLevels)
		var ends []string
		var vector []byte
		for i, exact := range []bool{false, false, true} {
			c := Config{Level: level, Steps: 80, Exact: exact}
			s := &Script{Given: vector}
			if i == 0 {
				s.Strategy = NewSwarm(seed)
			}
			p := NewPlay(c, s)
			if err := p.Run(); err != nil {
				t.Fatal(err)
			}
			if p.tampered { // a backup is taken on the short way only
				break
			}
			vector = p.Vector()
			ends = append(ends, end(t, p))
		}
		for _, other := range ends[min(1, len(ends)):] {
			if diff := cmp.Diff(strings.Split(ends[0], "\n"), strings.Split(other, "\n")); diff != "" {
				t.Fatalf("seed %d (-first +again):\n%s", seed, diff)
			}
		}
	}
}

// end is everything that a schedule leaves behind, but for who held claims, and how often Events were told.
func end(t *testing.T, p *Play) string {
	t.Helper()
	var b strings.Builder
	show := func(o plan.Object) {
		o.SetResourceVersion("")
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s\n", plan.NameOf(o), strip(string(text)))
	}
	for _, m := range memory.List[*machine.Machine](p.API) {
		show(m.DeepCopy())
	}
	for _, s := range memory.List[*machine.MachineSet](p.API) {
		show(s.DeepCopy())
	}
	fmt.Fprintln(&b, p.calls, p.clock, len(p.Cloud.History()))
	return b.String()
}
