// SPDX-License-Identifier: Apache-2.0

package sim

import "slices"

// Priorities is probabilistic concurrency testing (Burckhardt and others, ASPLOS 2010): each invocation has a random priority, no two
// the same, and whenever a call is made it is by the one of the highest that can make it. A few times whoever made one falls behind all
// others, those that have fallen before too. What is no call, an event, people, time, comes between as in a swarm.
type Priorities struct {
	Swarm
	order   map[int]int // by invocation: the priority
	changes []int       // of what is left of the points of change: at which step each is, or at the first call after it
	due     int         // points of change that are reached, each of which waits for a call
	falls   *proc       // made its call at one
	fallen  int
	who     int // makes the next call, if not the one that began last
}

// NewPriorities returns the strategy of one seed that finds what is d moments deep: d-1 points of change, all distinct, in so many steps.
func NewPriorities(seed uint64, d, steps int) *Priorities {
	s := &Priorities{Swarm: *NewSwarm(seed), order: map[int]int{}}
	s.changes = s.rng.Perm(steps)[:min(d-1, steps)]
	slices.Sort(s.changes)
	s.what[whatOther] = 0
	return s
}

// Pick implements [Strategy].
func (s *Priorities) Pick(p *Play, k Kind, n int) int {
	switch {
	case k == KindWho && s.who > 0:
		return s.who - 1
	case k != KindWhat:
		return s.Swarm.Pick(p, k, n)
	}
	s.who = 0
	s.fall()
	for len(s.changes) > 0 && s.changes[0] <= p.steps {
		s.changes, s.due = s.changes[1:], s.due+1
	}
	if what := s.happens(p, n); what != whatRun {
		return what
	}
	first := s.first(p)
	if first == nil {
		return whatRun
	}
	if s.due > 0 {
		s.due, s.falls = s.due-1, first
	}
	if first == p.runnable() {
		return whatRun
	}
	s.who = 1 + slices.Index(p.procs, first)
	return whatOther
}

// happens returns what happens next: of those that run whoever has to, if whatRun. Others begin beside them more often than in a swarm.
func (s *Priorities) happens(p *Play, n int) int {
	switch running := len(p.procs); {
	case running > 0 && running < maxProcs && len(p.queue) > 0 && s.rng.IntN(3) == 0:
		return whatDeliver
	case running > 1 && s.rng.IntN(4) > 0:
		return whatRun
	}
	return s.Swarm.Pick(p, KindWhat, n)
}

// first returns whoever has the highest priority of those that can run.
func (s *Priorities) first(p *Play) (first *proc) {
	for _, q := range p.procs {
		if _, known := s.order[q.id]; !known {
			s.order[q.id] = (1+s.rng.IntN(1<<20))<<20 + q.id // which no other one has
		}
		if !q.frozen && (first == nil || s.order[q.id] > s.order[first.id]) {
			first = q
		}
	}
	return first
}

// fall lets whoever made its call at a point of change fall behind.
func (s *Priorities) fall() {
	if s.falls != nil {
		s.fallen++
		s.order[s.falls.id] = -s.fallen
		s.falls = nil
	}
}
