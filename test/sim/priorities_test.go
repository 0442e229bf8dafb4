// SPDX-License-Identifier: Apache-2.0

package sim

import "testing"

// observed looks on while priorities choose.
type observed struct {
	*Priorities
	calls, beside int // beside other invocations that could go on
	last          int // the step of the last call
	falls         int
	wrong         []string
}

// Pick implements [Strategy]. A call is made when it is asked what becomes of it.
func (o *observed) Pick(p *Play, k Kind, n int) int {
	if k == KindFault {
		o.calls++
		o.last = p.steps
		if len(p.procs) > 1 {
			o.beside++
		}
		given := map[int]bool{}
		for _, q := range p.procs {
			priority, known := o.order[q.id]
			if q != p.turn && priority >= o.order[p.turn.id] || !known || given[priority] {
				o.wrong = append(o.wrong, "a call of "+p.turn.String()+" before one of "+q.String())
			}
			given[priority] = true
		}
	}
	falls := o.Priorities.falls
	choice := o.Priorities.Pick(p, k, n)
	if falls != nil && o.Priorities.falls != falls {
		o.falls++
		for id, priority := range o.order {
			if id != falls.id && priority <= o.order[falls.id] {
				o.wrong = append(o.wrong, falls.String()+" did not fall behind all others")
			}
		}
	}
	return choice
}

// Whoever makes a call has the highest priority of those that could, and no two have the same; at each of the d-1 points of change
// that a call follows, whoever makes that falls behind all others.
func TestPrioritiesAreKept(t *testing.T) {
	t.Parallel()
	calls, beside, falls, points := 0, 0, 0, 0
	for seed := range uint64(150) {
		c := Config{Level: levelOf(seed), Steps: steps(seed)}
		d := 3 + int(seed%3)
		o := &observed{Priorities: NewPriorities(seed, d, c.Steps)}
		changes := o.changes
		if len(changes) != d-1 {
			t.Fatalf("%d points of change, want %d", len(changes), d-1)
		}
		if _, err := play(c, &Script{Strategy: o}); err != nil {
			t.Fatal(err)
		}
		for _, what := range o.wrong {
			t.Errorf("seed %d: %s", seed, what)
		}
		want := 0 // each has a call of its own
		for i, at := range changes {
			if i > 0 && at == changes[i-1] {
				t.Errorf("seed %d: two points of change at %d", seed, at)
			}
			if at <= o.last {
				want++
			}
		}
		if o.falls > want || o.falls+o.due+len(o.changes) < d-2 {
			t.Errorf("seed %d: %d fell at %v, the last call was at %d", seed, o.falls, changes, o.last)
		}
		calls, beside, falls, points = calls+o.calls, beside+o.beside, falls+o.falls, points+want
	}
	t.Logf("%d calls, %d of them beside others; %d fell at %d points of change", calls, beside, falls, points)
	if beside < calls/2 || falls < points*95/100 {
		t.Errorf("of %d calls %d were beside others, of %d points of change %d were used", calls, beside, points, falls)
	}
}
