// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// Swarm is a random schedule whose mix of faults and events is itself random: some of them never happen in a schedule,
// so that others can happen often.
//
// What matters most is rare: of a hundred calls a few make or remove an instance, or claim a Machine for that, and what stops
// invocations often enough lets none come so far. So these calls are struck by odds of their own; most schedules flow: little else
// fails there, and nothing that stops everything; half of them begin before there is anything; in half of them people scale and
// delete more than all else.
type Swarm struct {
	rng    *rand.Rand
	what   [numWhat]int
	users  [numUser + 1]int
	fault  int // out of 256
	dear   int // the same of calls that are dear
	faults [numVerdicts]int
	flows  bool
	early  bool // it begins when nothing is there yet
	blind  bool // in a cloud without tokens, which loses answers and whose lists all lag
	ills   bool // where checks heal, illness is half of what happens, and lasts
}

// stoppers are what people do after which functions do nothing, until they take it back.
var stoppers = []int{userSkew, userStock, userHook, userPauseSet, userPauseMachine, userMendTemplate, userSet, userJump}

// NewRough returns the strategy of one seed in which all calls are struck alike, and people do all things alike.
func NewRough(seed uint64) *Swarm {
	s := mixed(seed)
	if s.dear = s.fault; seed%2 == 1 { // in half of them invocations get somewhere
		s.what[whatCrash], s.what[whatDrop] = min(s.what[whatCrash], 2), min(s.what[whatDrop], 3)
	}
	return s
}

// mixed returns a random mix.
func mixed(seed uint64) *Swarm {
	s := &Swarm{rng: rand.New(rand.NewPCG(seed, 11))} //nolint:gosec // to be repeated
	weights := []int{0, 1, 1, 3, 8}
	for i := range s.what {
		s.what[i] = weights[s.rng.IntN(len(weights))]
	}
	s.what[whatRun] = 6 + 20*s.rng.IntN(3)
	s.what[whatTime] = min(s.what[whatTime], 3)
	s.what[whatFreeze] = 0
	s.fault = []int{0, 6, 16, 40, 90}[s.rng.IntN(5)]
	for i := range s.faults {
		s.faults[i] = weights[s.rng.IntN(len(weights))]
	}
	for i := range s.users {
		s.users[i] = 1
	}
	return s
}

// NewSwarm returns the strategy of one seed.
func NewSwarm(seed uint64) *Swarm {
	s := mixed(seed)
	if s.fault > 0 {
		s.dear = max(s.fault, []int{64, 96, 160}[s.rng.IntN(3)])
	}
	s.early, s.blind, s.flows = s.rng.IntN(2) == 0, s.rng.IntN(4) == 0, s.rng.IntN(4) > 0
	if s.rng.IntN(2) == 0 {
		s.what[whatUser] = max(s.what[whatUser], 3)
		s.users[userScale], s.users[userDelete] = numUser/2, numUser/2
	}
	if s.blind {
		s.dear = 128
	}
	s.ills = seed%3 == 0
	if s.blind || s.flows {
		s.flow()
	}
	return s
}

// flow lets invocations get somewhere.
func (s *Swarm) flow() {
	s.flows = true
	s.what[whatRun] = 60
	for _, what := range []int{whatTime, whatDrop, whatCrash} {
		s.what[what] = min(s.what[what], 1)
	}
	s.fault = min(s.fault, 4)
	for _, u := range stoppers {
		s.users[u] = s.rng.IntN(4) / 3
	}
}

// Pick implements [Strategy].
func (s *Swarm) Pick(p *Play, k Kind, n int) int {
	switch k {
	case KindCloud:
		if s.blind {
			return withoutTokens
		}
	case KindLag:
		if s.blind {
			return allLag
		}
	case KindBefore:
		if s.early {
			return 0
		}
	case KindTime:
		if s.flows && (!s.ills || p.Level < Healing) {
			n = min(n, withinInvocation)
		}
	case KindWhat:
		return weighted(s.rng, s.what[:n])
	case KindUser:
		if s.ills && p.Level >= Healing && s.rng.IntN(2) == 0 {
			return []int{userSick, userSilent, userVanish}[s.rng.IntN(3)]
		}
		return weighted(s.rng, s.users[:n])
	case KindFault:
		return s.strike(p.turn.pending.dear, p.verdicts[:n])
	case KindWorld, KindWho, KindWhich, KindOrder, KindVersion:
	}
	return s.rng.IntN(n)
}

// strike returns what becomes of a call, of what may.
func (s *Swarm) strike(of dear, may []verdict) int {
	odds := s.fault
	if of != common && (of != claims || !s.blind) { // who could not tell that an answer was lost is waited for, longer than lists lag
		odds = s.dear
	}
	if s.rng.IntN(256) >= odds {
		return 0
	}
	if at := slices.Index(may, lost); s.blind && of == creates && at > 0 {
		return at
	}
	var w [numVerdicts]int
	for i, v := range may {
		w[i] = s.faults[v]
	}
	return weighted(s.rng, w[:len(may)])
}

func weighted(rng *rand.Rand, weights []int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	if sum == 0 {
		return 0
	}
	at := rng.IntN(sum)
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	return 0
}

// Sleeper freezes one invocation at one call until everything else is quiet: the request that a network delayed, the
// process that was stopped. Without tokens nothing that a client does can rule out what follows, so what is wanted then
// holds in the end instead of always (RELIABILITY §0.4).
type Sleeper struct {
	Swarm
	at     int
	sleeps func(call) bool // which call it may be
	chosen bool
}

// NewSleeper returns the strategy of one seed.
func NewSleeper(seed uint64, steps int) *Sleeper {
	s := &Sleeper{Swarm: *NewSwarm(seed)}
	s.at = s.rng.IntN(steps)
	switch s.rng.IntN(4) {
	case 0:
		s.sleeps = func(call) bool { return true }
	case 1:
		s.sleeps = func(c call) bool { return !c.looks() }
	default:
		s.at /= 2
		s.sleeps = func(c call) bool { return c.dear == creates || c.dear == removes }
	}
	return s
}

// Pick implements [Strategy].
func (s *Sleeper) Pick(p *Play, k Kind, n int) int {
	due := p.steps >= s.at && !p.unbounded && p.Frozen
	sleeper := slices.IndexFunc(p.procs, func(q *proc) bool { return s.sleeps(q.pending) })
	switch {
	case k == KindWhat:
		if s.chosen = due && sleeper >= 0; s.chosen {
			return whatFreeze
		}
	case k == KindWho && s.chosen:
		s.chosen = false
		return sleeper
	}
	return s.Swarm.Pick(p, k, n)
}

// Deletes is a strategy in which people do nothing but delete Machines.
type Deletes struct{ Strategy }

// Pick implements [Strategy].
func (s Deletes) Pick(p *Play, k Kind, n int) int {
	if k == KindUser {
		return userDelete
	}
	return s.Strategy.Pick(p, k, n)
}

// Hands lets people do nothing but give the say over Machines to another API, and back: the former as soon as one is there that nothing
// was made for.
type Hands struct{}

// Pick implements [Strategy].
func (Hands) Pick(p *Play, k Kind, _ int) int {
	switch {
	case k == KindUser:
		return userPauseMachine
	case k == KindWhat && slices.ContainsFunc(p.machines(), func(m *machine.Machine) bool { return p.intentOf(m) == nil && !machine.IsPaused(m) }):
		return whatUser
	}
	return 0
}

// Condemn lets people delete the set first, which somebody's finalizer holds, then scale it up.
type Condemn struct{ next int }

// Pick implements [Strategy].
func (s *Condemn) Pick(p *Play, k Kind, n int) int {
	switch {
	case k == KindUser && p.condemned == 0:
		s.next = 3
		return userSet
	case k == KindUser:
		s.next = 5
		return userScale
	case k == KindWhich && s.next > 0:
		n, s.next = min(n, s.next), 0
		return n - 1
	}
	return 0
}

// Strike perturbs one call of the story without faults, by number: what Sieve does (OSDI 2022), at every call.
type Strike struct {
	World   []byte // how the world is made
	Call    int
	Verdict verdict
	worlds  int
}

// Pick implements [Strategy].
func (s *Strike) Pick(p *Play, k Kind, n int) int {
	switch k {
	case KindWorld, KindCloud, KindLag, KindBefore:
		if s.worlds++; s.worlds <= len(s.World) {
			return int(s.World[s.worlds-1]) % n
		}
	case KindFault:
		if p.calls == s.Call {
			for i, v := range p.verdicts[:n] {
				if v == s.Verdict {
					return i
				}
			}
		}
	case KindVersion:
		return p.born % n // both in turn
	case KindWhat, KindWho, KindUser, KindWhich, KindOrder, KindTime:
	}
	return 0
}

// What can become of an event.
const (
	eventLost = iota
	eventTwice
	eventOvertaken // by the last of those that wait
	numEvent
)

// Lose loses one event of the story, by number, delivers it twice, or another one first: Sieve's third pattern, at every event.
type Lose struct {
	Event   int
	Becomes int
	events  int
	due     bool
}

// Pick implements [Strategy].
func (s *Lose) Pick(p *Play, k Kind, n int) int {
	switch {
	case k == KindWhat && p.runnable() == nil && len(p.queue) > 0:
		s.events++
		if s.due = s.events == s.Event; s.due {
			return []int{eventLost: whatDrop, eventTwice: whatRun, eventOvertaken: whatDeliver}[s.Becomes]
		}
	case s.due && (k == KindOrder && s.Becomes == eventTwice || k == KindWhich && s.Becomes == eventOvertaken):
		s.due = false
		return n - 1 // the event stays in the queue; the last of the queue
	case k == KindVersion:
		return p.born % n // both in turn
	}
	return 0
}

// Every lets each call of the story with such a name end in the same way, which is named as traces name it.
type Every struct{ Call, End string }

// Pick implements [Strategy].
func (s Every) Pick(p *Play, k Kind, n int) int {
	if k != KindFault || !strings.HasPrefix(p.turn.pending.what, s.Call) {
		return 0
	}
	return max(0, slices.IndexFunc(p.verdicts[:n], func(v verdict) bool { return verdictNames[v] == s.End }))
}
