// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/runner"
)

// start begins an invocation, which stops before its first call.
func (p *Play) start(e queued) {
	p.born++
	q := &proc{id: p.born, play: p, fn: e.fn, queued: e, began: p.clock, since: p.clock}
	q.version = p.versionNow()
	q.runner = p.process(e.fn, q)
	q.ctx = context.WithValue(context.Background(), procKey{}, q)
	q.hand = p.hands.take()
	q.hand.work = q.handle
	p.procs = append(p.procs, q)
	if !p.calm {
		p.tracef("%s begins", q)
	}
	p.advance(q)
}

// versionNow returns the version of the process that an event is delivered to; nil is today's. In the end there is but one,
// the newer of the two.
func (p *Play) versionNow() *version {
	switch {
	case p.other == nil, p.calm && !p.other.last, !p.calm && p.pick(KindVersion, 2) == 0:
		return nil
	}
	return p.other
}

// process returns a process for an invocation: the one that stays, unless it is busy.
func (p *Play) process(fn int, q *proc) *runner.Runner {
	f := p.Functions[fn]
	if q.slot = fn; q.version != nil {
		f, q.slot = p.others[fn], fn+len(p.Functions)
	}
	r := p.warm[q.slot]
	busy := slices.ContainsFunc(p.procs, func(other *proc) bool { return other.runner == r })
	if r == nil || busy {
		r = &runner.Runner{
			Function: f, Log: p.Log, Order: func(n int) int { return p.pick(KindOrder, n) },
			Clock: func() time.Time { return p.clock.Add(p.skew) }, Records: p.records,
		}
		if !busy {
			p.warm[q.slot] = r
		}
	}
	api := port{p.as(p.Functions[fn].Name), q}
	r.Cluster = api
	if cold := r.Clouds == nil; cold {
		r.Clouds = runner.NewClouds(p.providers(), func(ctx context.Context, namespace, name string) (map[string][]byte, string, error) {
			now, _ := ctx.Value(procKey{}).(*proc)
			return port{p.as(p.Functions[fn].Name), now}.Secret(ctx, namespace, name)
		})
		r.Clouds.Log = p.Log
		r.Clouds.Fatal = func(v any) bool { _, is := v.(killed); return is }
	}
	return r
}

func (p *Play) providers() []provider.Provider {
	c := p.hostsProvider
	if p.hosts == nil {
		c = p.Cloud.Provider()
	}
	if p.Clouds != nil {
		c = p.Clouds(c)
	}
	return []provider.Provider{p.remembering(p.entrusted(c))}
}

// remembering returns a provider that reads each spec once.
func (p *Play) remembering(c provider.Provider) provider.Provider {
	type accountText struct{ cloud, spec string }
	type account struct{ region, secret string }
	of := c.Account
	c.Account = func(spec json.RawMessage) (region, secret string, err error) {
		a, err := machine.Remembered(p.records, accountText{c.Name, string(spec)}, func() (a account, err error) {
			a.region, a.secret, err = of(spec)
			return a, err
		})
		return a.region, a.secret, err
	}
	type typeText struct{ cloud, spec string }
	typeOf := c.InstanceType
	c.InstanceType = func(spec json.RawMessage) (provider.InstanceType, error) {
		return machine.Remembered(p.records, typeText{c.Name, string(spec)}, func() (provider.InstanceType, error) { return typeOf(spec) })
	}
	return c
}

// resume lets the call take place that q stands before, and runs q until its next.
func (p *Play) resume(q *proc) {
	q.verdict = works
	if !p.calm {
		p.verdicts, p.turn = q.pending.may, q
		q.verdict = p.verdicts[p.pick(KindFault, len(p.verdicts))]
		p.reach[q.pending.dear][fates[q.verdict]]++
	}
	p.calls++
	if p.Trace != nil && (!q.pending.looks() || q.verdict != works) {
		p.tracef("%s  %s  %s", q, q.pending, verdictNames[q.verdict])
	}
	p.clock = p.clock.Add(callTakes)
	p.advance(q)
}

func (p *Play) advance(q *proc) {
	if c, _ := q.hand.next(); !c.over {
		q.pending, q.since = c, p.clock
		return
	}
	q.free()
	p.end(q)
	switch {
	case q.err == nil || q.queued.req.Scan():
	case q.queued.try < 5 && len(p.queue) < maxQueued:
		e := q.queued
		e.try++
		p.queue = append(p.queue, e)
	}
	if p.Trace != nil && q.err != nil {
		p.tracef("%s ends: %v", q, q.err)
	}
}

func (p *Play) end(q *proc) {
	p.procs = slices.DeleteFunc(p.procs, func(o *proc) bool { return o == q })
}

// String names the invocation.
func (q *proc) String() string {
	name := q.play.Functions[q.fn].Name
	if q.version != nil {
		name += "@" + q.version.name
	}
	return fmt.Sprintf("%s#%d(%s)", name, q.id, requestOf(q.queued.req))
}
