// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	maxProcs  = 4  // invocations at a time
	maxQueued = 40 // events that wait; what comes later is lost
)

// What can happen next. Nothing special is: the invocation that ran last goes on; without one the oldest event is
// delivered; without one the story goes on.
const (
	whatRun = iota
	whatOther
	whatDeliver
	whatScan
	whatUser
	whatTime
	whatNature
	whatDrop
	whatCrash
	whatFreeze
	numWhat
)

// Play is one schedule of a world.
type Play struct {
	Config
	*Script
	World

	hosts         *hosts // nil: the cloud is in memory
	hostsProvider provider.Provider

	clock     time.Time
	skew      time.Duration // of the clocks of processes against the API server's
	jumped    time.Duration // how far the API server's is ahead of the cloud's
	procs     []*proc
	hands     hands
	records   *machine.Records // that were read so far
	warm      []*runner.Runner // by function: a process that stays; then those of the other version
	other     *version         // that runs beside today's; nil: none
	others    []function.Function
	queue     []queued
	read      int // of the API's writes
	steps     int
	calls     int
	born      int
	verdicts  []verdict // what the next fault chooses from
	judged    call      // that it strikes
	unbounded bool      // an invocation was frozen: requests may take for ever
	calm      bool      // no faults any more
	quietly   bool
	story     int
	before    int // rounds without faults before the schedule: it is about any stage of a life

	watch
	Trace     io.Writer // nil: none
	Violation error     // the first
}

// Config is what a schedule is about.
type Config struct {
	Level   Level
	Steps   int  // that are scheduled before it is calm
	Frozen  bool // an invocation may be frozen
	Exact   bool // the API server stores what it would store over HTTP, which takes its time
	Setup   []byte
	Wrap    func(function.Function) function.Function // of every function; nil: as they are
	Hosts   func(http.RoundTripper) http.RoundTripper // of the requests to hosts; nil: as they are
	Clouds  func(provider.Provider) provider.Provider // of every cloud; nil: as it is
	Only    *regexp.Regexp                            // what alone counts as a violation; nil: all that is watched
	Masters bool                                      // the control plane has Machines too
	NoStory bool                                      // people do nothing of themselves
	Edits   bool                                      // the story has people change objects by hand too
	Records *machine.Records                          // what plays before this one read, none of them at the same time; nil: nothing
	Journal func(Entry)                               // is told of every change of an object, and of what was refused; nil: nobody is
}

// queued is an event on its way to a function.
type queued struct {
	fn  int
	req snapshot.Request
	try int
}

// NewPlay returns the schedule that script chooses.
func NewPlay(c Config, s *Script) *Play {
	p := &Play{Config: c, Script: s, clock: Start}
	p.World = World{Functions: c.Level.functions(), Log: slog.New(logs{p})}
	if c.Wrap != nil {
		for i, f := range p.Functions {
			p.Functions[i] = c.Wrap(f)
		}
	}
	p.API = memory.New(p.now)
	p.API.Trusting = !c.Exact
	p.quietly = true
	p.Cloud = &cloud.Cloud{Clock: p.elsewhere, Local: p.now, Fault: p.strike, Behind: p.behind}
	p.warm, p.records = make([]*runner.Runner, 2*len(p.Functions)), c.Records
	if p.records == nil {
		p.records = machine.NewRecords()
	}
	p.begin()
	p.setUp()
	return p
}

func (p *Play) now() time.Time { return p.clock }

// elsewhere is what the clocks say that do not follow the API server's: the cloud's, and those by which somebody waits for a while.
func (p *Play) elsewhere() time.Time { return p.clock.Add(-p.jumped) }

func (p *Play) pick(k Kind, n int) int { return p.Script.pick(p, k, n) }

// Run plays the schedule, then lets everything calm down. It returns the first violation.
func (p *Play) Run() error {
	p.calm = true
	for n := range p.before {
		p.round(n)
	}
	p.calm = false
	for p.steps = 0; p.steps < p.Config.Steps && p.Violation == nil; p.steps++ {
		p.next()
	}
	p.settle()
	for _, q := range p.procs {
		q.stop()
	}
	p.hands.rest()
	return p.Violation
}

func (p *Play) tracef(format string, args ...any) {
	if p.Trace != nil {
		fmt.Fprintf(p.Trace, "%8s  %s\n", p.clock.Sub(Start).Round(time.Second), fmt.Sprintf(format, args...))
	}
}

func (p *Play) violate(rule, format string, args ...any) {
	if err := fmt.Errorf("%s: %s", rule, fmt.Sprintf(format, args...)); p.Violation == nil && (p.Only == nil || p.Only.MatchString(err.Error())) {
		p.Violation = err
		p.tracef("VIOLATION %v", err)
	}
}

// next lets one thing happen.
func (p *Play) next() {
	p.collect()
	n := numWhat
	if !p.Frozen {
		n = whatFreeze
	}
	switch what := p.pick(KindWhat, n); what {
	case whatOther, whatCrash, whatFreeze:
		if len(p.procs) == 0 {
			return
		}
		p.act(what, p.procs[p.pick(KindWho, len(p.procs))])
	case whatDeliver, whatDrop:
		if len(p.queue) == 0 || what == whatDeliver && len(p.procs) >= maxProcs {
			return
		}
		p.event(what, p.pick(KindWhich, len(p.queue)))
	case whatScan:
		if len(p.procs) < maxProcs {
			p.start(queued{fn: p.pick(KindWhich, len(p.Functions))})
		}
	case whatUser:
		p.user()
	case whatTime:
		p.pass([]time.Duration{time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, time.Minute, 5 * time.Minute}[p.pick(KindWhich, 6)])
	case whatNature:
		p.nature()
	default:
		p.proceed()
	}
}

// proceed is what happens if nothing special does.
func (p *Play) proceed() {
	switch {
	case p.runnable() != nil:
		p.resume(p.runnable())
	case len(p.queue) > 0:
		p.event(whatDeliver, 0)
	default:
		p.tell()
	}
}

func (p *Play) runnable() *proc {
	for i := len(p.procs) - 1; i >= 0; i-- {
		if !p.procs[i].frozen {
			return p.procs[i]
		}
	}
	return nil
}

func (p *Play) act(what int, q *proc) {
	switch {
	case what == whatCrash:
		p.tracef("%s is killed", q)
		q.stop()
		p.end(q)
		p.warm[q.slot] = nil
	case what == whatFreeze && !q.frozen && !p.unbounded:
		p.tracef("%s is frozen before %s", q, q.pending)
		q.frozen, p.unbounded = true, true
	case !q.frozen:
		p.resume(q)
	}
}

// event delivers, or loses, an event; a delivered one may come again.
func (p *Play) event(what, i int) {
	e := p.queue[i]
	again := what == whatDeliver && p.pick(KindOrder, 4) == 3
	if !again {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
	if what == whatDrop {
		p.tracef("lost: %s for %s", requestOf(e.req), p.Functions[e.fn].Name)
		return
	}
	p.start(e)
}

// collect turns what was written into events for whom they wake.
func (p *Play) collect() {
	writes := p.API.Writes()
	for ; p.read < len(writes); p.read++ {
		w := writes[p.read]
		resource, _, _ := strings.Cut(w.Resource, "/")
		kind, known := kinds[resource]
		if w.Err != nil || !known {
			continue
		}
		for i, f := range p.Functions {
			e := queued{fn: i, req: snapshot.Request{Kind: kind, Namespace: w.Namespace, Name: w.Name}}
			if slices.Contains(wakes[f.Name], resource) && len(p.queue) < maxQueued && !slices.Contains(p.queue, e) {
				p.queue = append(p.queue, e)
			}
		}
	}
}

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
	return []provider.Provider{p.remembering(c)}
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
	return c
}

// resume lets the call take place that q stands before, and runs q until its next.
func (p *Play) resume(q *proc) {
	q.verdict = works
	if !p.calm {
		p.verdicts, p.judged = q.pending.may, q.pending
		q.verdict = p.verdicts[p.pick(KindFault, len(p.verdicts))]
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

func (p *Play) pass(d time.Duration) {
	p.clock = p.clock.Add(d)
	p.tracef("%v pass", d)
}

// String names the invocation.
func (q *proc) String() string {
	name := q.play.Functions[q.fn].Name
	if q.version != nil {
		name += "@" + q.version.name
	}
	return fmt.Sprintf("%s#%d(%s)", name, q.id, requestOf(q.queued.req))
}

// looks reports that a call changes nothing.
func (c call) looks() bool {
	return &c.may[0] == &ofRead[0] || &c.may[0] == &ofLook[0] || &c.may[0] == &ofHosts[0]
}

// String names the call.
func (c call) String() string {
	if c.action != nil {
		line, _, _ := strings.Cut(c.action.String(), "\n")
		return line
	}
	return c.what
}

func requestOf(r snapshot.Request) string {
	if r.Scan() {
		return "scan"
	}
	return plan.Name(plan.Kind(r.Kind), "", r.Name)
}
