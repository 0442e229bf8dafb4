// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"io"
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

// withinInvocation is how many of the times that can pass an invocation outlasts.
const withinInvocation = 3

// Play is one schedule of a world.
type Play struct {
	Config
	*Script
	World

	hosts         *hosts // nil: the cloud is in memory
	hostsProvider provider.Provider
	keys          map[string]string // by account: what opens it

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
	reach     reach
	born      int
	verdicts  []verdict // what the next fault chooses from
	turn      *proc     // whose call it strikes
	unbounded bool      // an invocation was frozen: requests may take for ever
	calm      bool      // no faults any more
	quietly   bool
	story     int
	before    int // rounds without faults before the schedule: it is about any stage of a life

	watch
	held      map[string]plan.Object // by name: what the journal last told of each
	Trace     io.Writer              // nil: none
	Violation error                  // the first
}

// Config is what a schedule is about.
type Config struct {
	Level    Level
	Steps    int                                       // that are scheduled before it is calm
	Frozen   bool                                      // an invocation may be frozen
	Exact    bool                                      // the API server stores what it would store over HTTP, which takes its time
	Wrap     func(function.Function) function.Function // of every function; nil: as they are
	Hosts    func(http.RoundTripper) http.RoundTripper // of the requests to hosts; nil: as they are
	Clouds   func(provider.Provider) provider.Provider // of every cloud; nil: as it is
	Only     *regexp.Regexp                            // what alone counts as a violation; nil: all that is watched
	Masters  bool                                      // the control plane has Machines too
	Checked  int                                       // so many checks select those too, and another controller replaces them; 0: none does
	Early    bool                                      // people's hooks hold Machines before they are drained, not after it
	Neighbor int                                       // Machines that a second set wants, which people leave alone; 0: there is none
	Apart    bool                                      // the second set is in a namespace of its own, and has all names and labels of the first
	Scaled   bool                                      // a MachineAutoscaler wants the second set too: the autoscaler chooses between the two
	Broad    bool                                      // the second set's selector is of all Machines
	Moves    bool                                      // people move Machines from one set to the other
	Budget   int                                       // so many Machines may automation disrupt at once; 0: as many as without people's word
	Hourly   int                                       // and so many within an hour
	Shorts   bool                                      // lists may lack most of what there is for a while; there are many Pods
	Shared   bool                                      // another cluster with the same id has an instance, and a port, in the account
	Rivals   bool                                      // a second MachineAutoscaler wants the set; people delete one of them, and make it anew
	Volumes  bool                                      // every Pod has a volume, not the first alone
	Unchecks bool                                      // people take the check away, and make it anew
	Unserves bool                                      // people make the set one that nobody makes Machines for, and mend that
	Losses   bool                                      // the cloud loses many at once, and nobody deletes what Failed; checks may replace fewer, or all
	Keeps    bool                                      // a policy of people refuses for long that one object is deleted, or evicted
	Spoils   bool                                      // a template that people spoilt is mended late, and what failed of it is for the check
	Cycles   bool                                      // people have hosts and instances power-cycled, which take their time to boot
	Nodes    int                                       // as many are allowed in all; 0: as many as there may be Machines
	NoStory  bool                                      // people do nothing of themselves
	Edits    bool                                      // the story has people change objects by hand too
	Records  *machine.Records                          // what plays before this one read, none of them at the same time; nil: nothing
	Journal  func(Entry)                               // is told of every change of an object, and of what was refused; nil: nobody is
}

// queued is an event on its way to a function.
type queued struct {
	fn  int
	req snapshot.Request
	try int
}

// NewPlay returns the schedule that script chooses.
func NewPlay(c Config, s *Script) *Play {
	p := &Play{Config: c, Script: s, clock: Start, keys: map[string]string{}}
	p.World = World{Functions: c.Level.functions(), Log: p.logger()}
	if c.Wrap != nil {
		for i, f := range p.Functions {
			p.Functions[i] = c.Wrap(f)
		}
	}
	p.API = memory.New(p.now)
	p.API.Trusting = !c.Exact
	p.quietly = true
	p.Cloud = &cloud.Cloud{Clock: p.elsewhere, Local: p.now, Fault: p.strike, Behind: p.behind, Shown: p.shown}
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
		p.pass([]time.Duration{time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, time.Minute, 5 * time.Minute}[p.pick(KindTime, 6)])
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
		p.reach[q.pending.dear][ended]++
		q.stop()
		p.end(q)
		p.warm[q.slot] = nil
	case what == whatFreeze && !q.frozen && !p.unbounded:
		p.tracef("%s is frozen before %s", q, q.pending)
		q.frozen, p.unbounded = true, true
		p.reach[q.pending.dear][held]++
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

func (p *Play) pass(d time.Duration) {
	p.clock = p.clock.Add(d)
	p.tracef("%v pass", d)
}

// looks reports that a call changes nothing.
func (c call) looks() bool {
	return &c.may[0] == &ofRead[0] || &c.may[0] == &ofLook[0] || &c.may[0] == &ofList[0] || &c.may[0] == &ofHosts[0]
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
