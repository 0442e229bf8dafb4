// SPDX-License-Identifier: Apache-2.0

package sim

import "iter"

// hand is a coroutine that carries out one invocation after the other: its stack has grown already.
type hand struct {
	work  func()
	yield func(call) bool
	next  func() (call, bool)
	stop  func()
}

// hands are those that have nothing to do.
type hands []*hand

func (h *hands) take() *hand {
	if n := len(*h); n > 0 {
		idle := (*h)[n-1]
		*h = (*h)[:n-1]
		return idle
	}
	fresh := &hand{}
	fresh.next, fresh.stop = iter.Pull(iter.Seq[call](func(yield func(call) bool) {
		for fresh.yield = yield; ; {
			fresh.work()
			if !yield(call{over: true}) {
				return
			}
		}
	}))
	return fresh
}

// rest ends them all.
func (h *hands) rest() {
	for _, idle := range *h {
		idle.stop()
	}
	*h = nil
}

// handle is the invocation, to its end or until it is killed.
func (q *proc) handle() {
	p := q.play
	defer func() {
		if r := recover(); r != nil {
			if r != any(kill) {
				panic(r)
			}
			q.err = errFault
			p.warm[q.slot] = nil
		}
	}()
	planned, err := q.runner.Handle(q.ctx, q.queued.req)
	for _, n := range planned.Notes {
		p.told(n.Message)
	}
	if err != nil {
		p.told(err.Error())
	}
	q.err = err
}

// stop kills the invocation where it stands.
func (q *proc) stop() {
	if q.hand == nil {
		return
	}
	q.dead = true
	q.hand.next()
	q.free()
}

func (q *proc) free() {
	q.play.hands = append(q.play.hands, q.hand)
	q.hand = nil
}
