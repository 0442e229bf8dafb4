// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Bout is a few invocations at the same time in a world that was brought to a stage of the story: small enough for all
// their schedules to be played.
type Bout struct {
	Config
	World     []byte // how the world is made
	Stage     int    // rounds of the story before it; at odd ones events wake the functions, at even ones the clock does
	Before    dear   // after that, up to the event whose invocation makes such a call; common: no further
	Functions []int
	Faults    int  // at most
	Switches  int  // from one invocation to another that could go on, at most
	Settles   bool // in the end everything has to be as it is wanted

	*scene
	unreduced bool   // what is another schedule told in another order is played too
	ended     func() // is told when the invocations have ended; nil: nobody is
	redundant bool   // the schedule that was played is another one, told in another order
}

// scene is the world at a stage.
type scene struct {
	play    *Play
	events  []queued // by function: what wakes it
	api     func()
	cloud   func()
	hosts   func()
	watched watch
}

// shares reports whether both begin at the same scene.
func (b *Bout) shares(o *Bout) bool {
	return b.Stage == o.Stage && b.Before == o.Before && slices.Equal(b.World, o.World) && reflect.DeepEqual(b.Config, o.Config)
}

// Prepare plays the story up to the stage.
func (b *Bout) Prepare() {
	due := b.due()
	b.scene = &scene{play: NewPlay(b.Config, &Script{Given: b.World})}
	p := b.play
	for n := 0; n < due || b.Before == common && p.story < b.Stage; n++ {
		p.collect()
		p.proceed()
	}
	p.finish()
	for len(p.queue) > 0 && b.Stage%2 == 0 && b.Before == common { // at even stages everything was delivered, at odd ones nothing
		p.event(whatDeliver, 0)
		p.finish()
		p.collect()
	}
	for fn := range p.Functions {
		b.events = append(b.events, queued{fn: fn, req: b.about(fn)})
	}
	p.queue = nil
	p.reach = reach{} // what the story did is none of its schedules'
	b.api, b.cloud, b.hosts = p.API.Backup(), p.Cloud.Backup(), p.hosts.backup()
	b.watched = p.watch.clone()
}

// due returns after how many steps of the story, at its stage or later, an invocation begins that makes such a call.
func (b *Bout) due() (began int) {
	if b.Before == common {
		return 0
	}
	p := NewPlay(b.Config, &Script{Given: b.World})
	defer p.hands.rest()
	for n := 0; p.story < b.Stage || !slices.ContainsFunc(p.procs, func(q *proc) bool { return q.pending.dear == b.Before }); n++ {
		if p.collect(); len(p.procs) == 0 {
			began = n
		}
		p.proceed()
	}
	for _, q := range p.procs {
		q.stop()
	}
	return began
}

// about returns what wakes a function: an event about any object may come at any time, late or again.
func (b *Bout) about(fn int) snapshot.Request {
	p := b.play
	switch {
	case b.Stage%2 == 0:
		return snapshot.Request{}
	case b.Before != common && len(p.queue) > 0 && p.queue[0].fn == fn:
		return p.queue[0].req
	}
	for _, resource := range wakes[p.Functions[fn].Name] {
		var all []plan.Object
		switch kinds[resource] {
		case "Machine":
			for _, m := range p.machines() {
				all = append(all, m)
			}
		case "Node":
			for _, n := range memory.List[*corev1.Node](p.API) {
				all = append(all, n)
			}
		case "MachineSet":
			all = append(all, p.set())
		case "MachineHealthCheck":
			for _, h := range memory.List[*machine.MachineHealthCheck](p.API) {
				all = append(all, h)
			}
		}
		if n := len(all); n > 0 {
			o := all[b.Stage%n]
			return snapshot.Request{Kind: kinds[resource], Namespace: o.GetNamespace(), Name: o.GetName()}
		}
	}
	return snapshot.Request{}
}

// Play plays one schedule of the bout, then lets each function run alone: soon it has to be quiet, twice in a row. A schedule that is
// another one told in another order ends where that shows.
func (b *Bout) Play(s *Script) error {
	p := b.play
	clock := p.clock
	defer func() { p.clock = clock }()
	b.api()
	b.cloud()
	b.hosts()
	p.API.Forget() // what a schedule wrote is nothing to the next
	p.Script, p.Violation, p.procs, p.queue, p.calm, p.read = s, nil, nil, nil, false, 0
	p.watch = b.watched.clone()
	clear(p.rebuilt)
	clear(p.doubts)
	clear(p.warm)
	if p.records.Read() > mostRecords {
		p.records = machine.NewRecords()
	}
	for _, fn := range b.Functions {
		p.start(b.events[fn])
	}
	b.redundant = false
	left := map[*proc]effect{} // what was done since an invocation was left that could go on
	faults, switches, current := b.Faults, b.Switches, 0
	for len(p.procs) > 0 && p.Violation == nil {
		current = min(current, len(p.procs)-1)
		if len(p.procs) > 1 && switches > 0 {
			if v := p.pick(KindWho, len(p.procs)); v > 0 {
				left[p.procs[current]] = 0
				current, switches = (current+v)%len(p.procs), switches-1
			}
		}
		q := p.procs[current]
		if since, was := left[q]; was && !b.unreduced && q.sooner(since) {
			b.redundant = true
			break
		}
		delete(left, q)
		for other := range left {
			left[other] |= q.pending.effect()
		}
		p.calm = faults == 0
		p.resume(q)
		if !p.calm && q.verdict != works {
			faults--
		}
	}
	for _, q := range p.procs {
		q.stop()
	}
	if b.ended != nil && !b.redundant {
		b.ended()
	}
	if p.Violation == nil && !b.redundant {
		b.again()
	}
	if b.Settles && !b.redundant {
		p.Script = &Script{} // what happens then is no choice
		p.settle()
	}
	return p.Violation
}

// effect is what calls do, as far as it matters whether they change places.
type effect uint8

const (
	readsObjects effect = 1 << iota
	writesObjects
	looksAtCloud
	changesCloud
)

func (c call) effect() effect {
	switch {
	case c.cloud && c.looks():
		return looksAtCloud
	case c.cloud:
		return changesCloud
	case c.looks():
		return readsObjects
	}
	return writesObjects
}

// against are the calls of others with which one may not change places: those that it could see, or that could see it, and, since what is
// watched is watched after each of them, all others that change something if it does so too.
var against = map[effect]effect{
	readsObjects:  writesObjects,
	writesObjects: readsObjects | writesObjects | changesCloud,
	looksAtCloud:  changesCloud,
	changesCloud:  looksAtCloud | changesCloud | writesObjects,
}

// sooner reports whether the call before which q was left might as well have been made before it was: it and all that others did since
// may change places, but for the moment at which each is made. That schedule, in which q is left a call later, is played anyway, with as
// many turns and faults.
func (q *proc) sooner(since effect) bool {
	return since&against[q.pending.effect()] == 0 && q.play.clock.Sub(q.since) <= cloudCallFor && q.play.clock.Sub(q.began) <= invocationFor
}

// mostRecords bounds what is remembered from one schedule to the next.
const mostRecords = 1000

// mostAlone is how often a function runs alone until it has to be quiet.
const mostAlone = 12

// Close ends what Prepare began.
func (b *Bout) Close() { b.play.hands.rest() }

func (b *Bout) again() {
	p := b.play
	p.calm, p.queue, p.procs = true, nil, nil
	p.clock = p.clock.Add(61e9) // claims are over
	for _, fn := range slices.Compact(slices.Clone(b.Functions)) {
		quiet := 0
		before := len(p.API.Writes())
		for round := 0; round < mostAlone && quiet < 2; round++ {
			before = len(p.API.Writes())
			p.start(queued{fn: fn})
			p.finish()
			p.clock = p.clock.Add(10e9) // a pause after a failure ends, a turn comes
			if quiet++; len(p.API.Writes()) != before {
				quiet = 0
			}
		}
		if quiet < 2 && p.Violation == nil && !b.busy() {
			p.violate("R-S14", "%s writes on and on: %v", p.Functions[fn].Name, p.API.Writes()[before:])
		}
	}
	for _, m := range p.machines() {
		if n := len(p.liveOf(m.UID)); n > 1 {
			p.violate("R-S1", "%d instances of %s", n, m.Name)
		}
	}
}

// busy reports whether the cloud is at work, which functions follow.
func (b *Bout) busy() bool {
	for _, i := range b.play.instances() {
		if i.State != "running" {
			return true
		}
	}
	return false
}
