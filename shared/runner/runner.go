// SPDX-License-Identifier: Apache-2.0

// Package runner is the imperative shell around a function: observe, decide, apply, until quiet.
package runner

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/events"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/metrics"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	// maxRounds bounds one invocation; a function that is not quiet by then asks for redelivery instead of looping. The
	// longest way to quiet has nine: one scan writes a set's bounds, then raises it to its minimum, grows it and gives up
	// what did not come, each committed first and then carried out, and reports.
	maxRounds = 12
	// maxReads bounds how often Reads is asked in one round. A drain asks for its Machine, the linked Node, all others with
	// their Machines because that is gone, the Pods on the one that is the Machine's by now, and what these leave behind.
	maxReads = 5
	// budget is how long one invocation may take: two calls to clouds of 10 s each, as a list and a change, and what is read and
	// written around them. The runtime waits 30 s for it when the process ends (RELIABILITY G6).
	budget = 24 * time.Second
	// mutationBudget is what must remain of it for a change in a cloud to start: the 10 s call and its write-back.
	mutationBudget = 12 * time.Second
	// writeBudget is what must remain of it for anything else to start.
	writeBudget = time.Second
)

// Runner gives one function eyes and hands. It keeps nothing between invocations that correctness needs.
type Runner struct {
	Function function.Function
	Cluster  cluster.Cluster
	Clouds   *Clouds          // nil for functions that look at no cloud
	Clock    func() time.Time // the local clock, compared with the API server's; nil: not compared
	DryRun   bool             // plans are logged and replied, never applied
	Shadow   *Shadow          // what a dry run remembers; nil: it begins anew each time, and is one round
	Record   string           // folder that every decision which wants something is written to, as a scenario; or empty
	Log      *slog.Logger
	Metrics  *metrics.Metrics // nil: nothing is measured
	// Order, if it is set, makes an invocation do one thing at a time, in the order that begins with the one of n that
	// it chooses: in a simulation nothing happens by chance. nil: side by side, in any order.
	Order func(n int) int
	// Records, if they are set, are what each invocation goes on with, where never two do something at a time. nil: each
	// begins anew.
	Records *machine.Records

	scan     func(context.Context) (plan.Plan, error) // for invocations that leave all to one; nil: each has its own
	survives bool                                     // a panic over one object keeps nobody from deciding about the others
	busy     chan struct{}                            // one for each invocation that does more than wait for the API server; nil: any number
	told     once[plan.Note]
	deleted  once[string]              // instances whose removal a cloud accepted
	begun    rota[target]              // whose change in a cloud was begun
	looking  rota[types.UID]           // whose instance was looked for by itself
	system   atomic.Pointer[types.UID] // of the namespace kube-system; nil: not read yet
	scanned  atomic.Pointer[time.Time] // when the latest scan that carried out what it decided read last, by the API server's clock; nil: none did
}

// Handle runs the function for whoever woke it, until it is quiet. It returns everything that was planned. The error
// is a [*events.RetryError] or nil: what is wrong with an object is a decision about that object.
func (r *Runner) Handle(ctx context.Context, req snapshot.Request) (plan.Plan, error) {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	inv := &invocation{
		Runner:   r,
		request:  req,
		id:       rand.Text(),
		outcomes: map[plan.Key]plan.Outcome{},
		records:  r.Records,
		mutated:  map[target]bool{},
		changed:  map[types.UID]bool{},
		log:      r.Log.With(keyRequest, requestName(req)),
	}
	if inv.records == nil {
		inv.records = machine.NewRecords()
	}
	if at := r.scanned.Load(); at != nil && req.Scan() {
		inv.last = *at
	}
	start := time.Now()
	err := inv.run(ctx)
	switch leaves := errors.Is(err, errScan); {
	case leaves && r.scan != nil:
		return r.scan(ctx)
	case leaves:
		return r.Handle(ctx, snapshot.Request{})
	}
	if inv.unfinished && err == nil && !req.Scan() {
		err = errors.New("not finished in one invocation")
	}
	r.Metrics.Invoked(metrics.Invocation{
		Seen: inv.seen, Planned: inv.planned, Told: inv.events, Outcomes: inv.outcomes, Rounds: inv.rounds, Duration: time.Since(start), Err: err,
	})
	if inv.decided && req.Scan() {
		r.scanned.Store(new(inv.now))
	}
	if err == nil {
		return inv.planned, nil
	}
	r.Log.Warn("invocation will be repeated", keyRequest, requestName(req), keyError, said(err)) // each failure has a line of its own
	return inv.planned, &events.RetryError{Err: fmt.Errorf("%s: %w", r.Function.Name, err)}
}

// Answer reads what the function needs to know and answers a question about it, unless ctx ended meanwhile. It never
// writes: there is no plan.
func (r *Runner) Answer(ctx context.Context, question json.RawMessage) (json.RawMessage, error) {
	if r.Function.Answer == nil {
		return nil, fmt.Errorf("%w: %s answers no questions", events.ErrMalformed, r.Function.Name)
	}
	inv := &invocation{Runner: r, request: snapshot.Request{Kind: string(function.Question), Name: "question"}, id: rand.Text(), records: machine.NewRecords(), log: r.Log}
	s, err := inv.observe(ctx)
	if err != nil {
		return nil, &events.RetryError{Err: fmt.Errorf("%s: observe: %w", r.Function.Name, err)}
	}
	if err := ctx.Err(); err != nil { // nobody waits for it any more
		return nil, &events.RetryError{Err: fmt.Errorf("%s: %w", r.Function.Name, err)}
	}
	answer, err := r.Function.Answer(s, question)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", events.ErrMalformed, err)
	}
	return answer, nil
}

// invocation is the state of one Handle.
type invocation struct {
	*Runner
	request    snapshot.Request
	id         string
	outcomes   map[plan.Key]plan.Outcome
	records    *machine.Records
	accounts   map[string]account // drivers opened for the observation at hand, by key
	opened     map[lead]*opening  // the same by what led to them
	opening    sync.Mutex         // of accounts
	mutated    map[target]bool    // what this invocation changed in clouds
	changed    map[types.UID]bool // whose instances these are
	now        time.Time          // the API server's, when it was last asked
	last       time.Time          // what it was in the scan before this one; zero if the process knows of none
	reading    time.Duration      // that objects took in the observation at hand
	mark       types.UID          // of the cluster (snapshot.ClusterUID), in the observation at hand
	asked      []led              // in the observation at hand
	before     []led              // in the one before
	looked     time.Time          // ours, when the lookups at hand began
	waits      waits
	planned    plan.Plan
	seen       snapshot.Snapshot // the last
	rounds     int
	telling    sync.Mutex
	events     []plan.Note // Kubernetes Events that were recorded
	deaf       atomic.Bool // an Event was waited for in vain
	mutates    bool        // the plan at hand changes instances
	decided    bool        // every action of a plan had its turn, whatever single ones were answered
	unfinished bool        // something was left for later, for want of time or because an outcome is unknown
	pretended  pretended   // by a dry run
	poison     []plan.Note // of objects over which the function panicked with the observation at hand
	log        *slog.Logger
}

func (i *invocation) run(ctx context.Context) error {
	var unclear error // about some objects, while others went on
	for round := range maxRounds {
		s, err := i.observe(ctx)
		i.seen, i.rounds = s, round+1
		if err != nil {
			return errors.Join(unclear, fmt.Errorf("observe: %w", err))
		}
		again, err := i.proceed(ctx, s, round)
		if unclear = errors.Join(unclear, err); !again {
			return unclear
		}
	}
	return errors.Join(unclear, fmt.Errorf("not quiet after %d rounds", maxRounds))
}

// proceed decides on s and carries out what is decided. It reports whether to look again, also with an error: that is then of some
// objects alone.
func (i *invocation) proceed(ctx context.Context, s snapshot.Snapshot, round int) (again bool, err error) {
	done, err := i.begin(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	p := i.Function.Decide(s)
	p.Notes = append(p.Notes, i.poison...)
	i.record(p)
	i.recordScenario(s, p, round)
	i.logPlan(p, round)
	defer func() { i.decided = i.decided || ctx.Err() == nil }()
	if i.DryRun {
		return i.pretend(p) && round+1 < maxRounds, nil
	}
	i.mutates = slices.ContainsFunc(p.Do, func(s plan.Sequence) bool { return changeOf(s).mutates })
	i.tell(ctx, p.Notes, false)
	if p.Quiet() {
		return false, nil
	}
	if err := i.repeats(p); err != nil {
		return false, err
	}
	return i.apply(ctx, p)
}

// begin waits until one more invocation may be busy, for as long as ctx lasts. It is not any more when done is called.
func (r *Runner) begin(ctx context.Context) (done func(), err error) {
	if r.busy == nil {
		return func() {}, nil
	}
	select {
	case r.busy <- struct{}{}:
		return func() { <-r.busy }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for %d other invocations: %w", maxBusy, ctx.Err())
	}
}

// repeats reports an action that was already tried in this invocation: a fault of the function, which would loop.
func (i *invocation) repeats(p plan.Plan) error {
	for _, a := range p.Actions() {
		if o, ok := i.outcomes[a.Key()]; ok {
			return fmt.Errorf("%q was planned again after the outcome %v %s", a.Key(), o.Result, o.Message)
		}
	}
	return nil
}

func (i *invocation) record(p plan.Plan) {
	i.planned.Do = append(i.planned.Do, p.Do...)
	i.planned.Notes = append(i.planned.Notes, p.Notes...)
}

func requestName(r snapshot.Request) string {
	if r.Scan() {
		return "scan"
	}
	return plan.Name(plan.Kind(r.Kind), r.Namespace, r.Name)
}
