// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/beside"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// verdict is what becomes of a call.
type verdict uint8

const (
	works     verdict = iota
	fails             // an error, without effect
	lost              // the effect, but an error for an answer
	dies              // the process is killed before
	diesAfter         // and after
	throttled         // a cloud's 429
	exhausted         // a cloud without capacity
	stale             // a cloud's list as far back as its lag allows
	cut               // the first half of an answer
	proxied           // a page of a proxy that knows nothing of the sort
	partial           // a cloud's list without every other instance, as if a page were missing
	emptied           // a cloud's list without any
	numVerdicts
)

var verdictNames = [...]string{"", "fails", "takes effect, the answer is lost", "killed before it", "killed after it", "throttled", "no capacity", "stale", "cut off", "not found, a proxy says", "partial", "empty"}

// What can become of each kind of call.
var (
	ofRead   = []verdict{works, fails, dies}
	ofWrite  = []verdict{works, fails, lost, dies, diesAfter}
	ofLook   = []verdict{works, fails, dies, throttled, stale}
	ofList   = []verdict{works, fails, dies, throttled, stale, partial, emptied}
	ofCreate = []verdict{works, fails, lost, dies, diesAfter, throttled, exhausted}
	ofAgain  = ofCreate[:len(ofCreate)-1] // the cloud has what was made with the token, room or none
	// An API server's reads do not lag behind its writes.
	ofHosts     = []verdict{works, fails, dies, throttled, cut, proxied}
	ofHostWrite = []verdict{works, fails, lost, dies, diesAfter, throttled, cut, proxied}
	ofDelete    = []verdict{works, fails, lost, dies, diesAfter, throttled, stale}
)

var (
	errFault = errors.New("connection reset by peer")
	errLate  = fmt.Errorf("deadline: %w", context.DeadlineExceeded)
)

// killed ends an invocation where it stands.
type killed struct{}

// kill is how: a panic that is caught already, of which nobody takes the stack.
var kill = &beside.Panic{Value: killed{}}

const (
	invocationFor = 24 * time.Second // RELIABILITY G6
	cloudCallFor  = 10 * time.Second
	callTakes     = 200 * time.Millisecond
)

// proc is one invocation of a function, stopped before its next call.
type proc struct {
	id      int
	play    *Play
	fn      int
	slot    int      // of its process among those that stay
	version *version // nil: today's
	queued  queued
	began   time.Time
	jumped  time.Duration // by which clocks were set since
	unread  time.Duration // of that, since it last read
	runner  *runner.Runner
	ctx     context.Context //nolint:containedctx // of one invocation
	hand    *hand           // nil once it has ended
	dead    bool
	pending call
	since   time.Time // pending
	verdict verdict
	err     error
	frozen  bool
	skew    time.Duration        // of its clock when it last read
	read    []*machine.Machine   // as it last did
	nodes   []*corev1.Node       // and these
	sighted map[string]time.Time // and since when what the sweep has on record is nobody's, by id
	pods    int                  // and as many of these
	overdue bool                 // the autoscaler's records, as it last read them: a request that is open has timed out
	short   bool                 // its list, as it last read it, lacked most of what there was
	looked  time.Time            // by the cloud's clock: when the cloud last told it what there is

	set      *machine.MachineSet // as it last read it
	beside   *machine.MachineSet // the second one, likewise
	rebuilds int                 // of its ledger before that

	deadline, methodBegan time.Time // of the driver's method that is being carried out, if it is of hosts
}

// call is one call to the API server or to a cloud.
type call struct {
	what   string
	action plan.Action // of a write
	may    []verdict
	cloud  bool
	dear   dear
	over   bool      // no call: the invocation has ended
	began  time.Time // of the driver's method that makes the call; zero: with it
}

// step hands the turn to the scheduler before a call, and returns the error that the call ends with before its effect.
func (q *proc) step(c call) error {
	if q.dead || !q.hand.yield(c) || q.dead {
		panic(kill)
	}
	p := q.play
	began := q.since
	if !c.began.IsZero() {
		began = c.began
	}
	late := p.clock.Sub(q.began) > invocationFor || c.cloud && p.clock.Sub(began) > cloudCallFor
	switch {
	case late && (!p.unbounded || !q.frozen):
		q.verdict = works
		return errLate
	case q.verdict == dies:
		panic(kill)
	case q.verdict == fails:
		return errFault
	case q.verdict == throttled:
		return provider.ErrorAfter(provider.Throttled, time.Second, "rate exceeded")
	case q.verdict == exhausted:
		return provider.Errorf(provider.Exhausted, "no capacity")
	}
	return nil
}

// now is what time it is for q, who cannot know that a clock was set since it read.
func (q *proc) now() time.Time { return q.play.clock.Add(-q.unread) }

// within returns when the driver's method began that has this deadline: each has one of its own.
func (q *proc) within(deadline time.Time) time.Time {
	if !q.deadline.Equal(deadline) {
		q.deadline, q.methodBegan = deadline, q.play.clock
	}
	return q.methodBegan
}

// after is the end of a call whose effect has happened.
func (q *proc) after() error {
	switch q.verdict {
	case lost:
		return errFault
	case diesAfter:
		panic(kill)
	default:
		return nil
	}
}

// port is the API server as one invocation uses it.
type port struct {
	heard
	q *proc
}

// Observe implements cluster.Cluster. Queries that come together are separate calls: between them others run.
func (c port) Observe(ctx context.Context, s snapshot.Snapshot, queries []snapshot.Query) (snapshot.Snapshot, error) {
	seen := s
	for _, q := range queries {
		if q != snapshot.System { // of which nothing changes: when it is read makes no difference, and a process reads it once
			if err := c.q.step(call{what: "read", may: ofRead}); err != nil {
				return s, err
			}
		}
		c.tell(q)
		if err := c.Answer(ctx, &seen, q); err != nil {
			return s, err
		}
		seen = c.q.play.cutDown(c.q, q, seen)
		switch q.Kind {
		case "Pod":
			c.q.pods = len(seen.Pods)
		case "Node":
			c.q.nodes = seen.Nodes
		case "ConfigMap":
			c.q.overdue = c.q.play.outwaited()
			if q.Name == machine.ConfigMapSweep {
				c.q.sighted = sightings(seen.ConfigMap(q.Namespace, q.Name))
			}
		case "MachineSet":
			if p := c.q.play; q.Name == "" || q.Name != p.secondSet() || q.Namespace != p.secondSpace() {
				c.q.set, c.q.rebuilds = seen.MachineSet(machine.Namespace, setName), p.rebuilds
			}
			c.q.beside = seen.MachineSet(c.q.play.secondSpace(), c.q.play.secondSet())
		default:
		}
		c.q.play.replaced()
		c.q.play.recovered()
	}
	if slices.ContainsFunc(queries, func(q snapshot.Query) bool { return q.Kind == "Machine" }) {
		c.q.read = seen.Machines
	}
	c.q.skew, c.q.unread = c.q.play.skew, 0
	return seen.Answered(queries...), nil
}

// Apply implements cluster.Cluster.
func (c port) Apply(ctx context.Context, a plan.Action) error {
	if err := c.q.step(call{what: "write", action: a, may: ofWrite, dear: dearOf(a)}); err != nil {
		return err
	}
	p := c.q.play
	p.watchSecrets(c.q, a)
	old := p.current(a)
	c.q.err = p.journal(p.Functions[c.q.fn].Name, a, plan.Subject(a), func() error {
		if err := p.keeps(a); err != nil {
			return err
		}
		return c.heard.Apply(ctx, a)
	})
	p.watchWrite(c.q, a, old, c.q.err)
	if err := c.q.after(); err != nil {
		return err
	}
	return c.q.err
}

// Tell implements cluster.Cluster. What is told changes nothing, so it is no step.
func (c port) Tell(ctx context.Context, n plan.Note) error {
	c.q.play.told(n.Reason + ": " + n.Message)
	c.q.play.hears(n.Object, n.Message)
	if c.q.play.quietly {
		c.tell(n)
		return nil
	}
	return c.heard.Tell(ctx, n)
}

// Secret implements cluster.Cluster.
func (c port) Secret(ctx context.Context, namespace, name string) (map[string][]byte, string, error) {
	if err := c.q.step(call{what: "read secret", may: ofRead}); err != nil {
		return nil, "", err
	}
	return c.heard.Secret(ctx, namespace, name)
}

type procKey struct{}

// strike is the cloud's hook: the step before a call, what is watched after it.
func (p *Play) strike(ctx context.Context, c cloud.Call) error {
	q, ok := ctx.Value(procKey{}).(*proc)
	if !ok {
		return nil
	}
	if !c.After {
		may := ofLook
		switch c.Op {
		case cloud.OpCreate:
			if may = ofCreate; p.answersByToken(c.Ref) {
				may = ofAgain
			}
		case cloud.OpDelete, cloud.OpUpdate, cloud.OpPowerCycle, cloud.OpPowerOff, cloud.OpPowerOn:
			may = ofDelete
		case cloud.OpList:
			may = ofList
		case cloud.OpResolve, cloud.OpFind, cloud.OpInstanceTypes:
		}
		p.requested(q, c)
		err := q.step(call{what: "cloud " + string(c.Op) + " " + c.Ref.Name, may: may, cloud: true, dear: dearCall(c.Op)})
		p.asked(q, c, err == nil)
		if err != nil {
			p.replied(q, c, err)
		}
		return p.quoted(c, err)
	}
	if c.Op == cloud.OpCreate && p.answersByToken(c.Ref) {
		delete(p.unanswered, request{c.Ref.UID, q.id}) // what it asks for is there, and comes no more
	}
	p.watchCloud(q)
	err := q.after()
	p.replied(q, c, err)
	return p.quoted(c, err)
}

// answersByToken reports whether an instance was made with r's token, and the cloud looks for that first.
func (p *Play) answersByToken(r provider.Ref) bool {
	return !p.Cloud.Untokened && slices.ContainsFunc(p.liveOf(r.UID), func(i provider.Instance) bool { return i.Token == r.Token })
}

// behind is how far back what a call sees lies: nothing, or as far as the cloud's lag allows.
func (p *Play) behind(ctx context.Context, _ cloud.Call) time.Duration {
	if q, ok := ctx.Value(procKey{}).(*proc); ok && (q.verdict == stale || p.lagging) {
		return p.Cloud.Lag
	}
	return 0
}

// shown is what a cloud's list tells of what there is.
func (p *Play) shown(ctx context.Context, _ cloud.Call, all []provider.Instance) []provider.Instance {
	q, ok := ctx.Value(procKey{}).(*proc)
	if !ok || q.verdict != emptied && q.verdict != partial {
		return all
	}
	return slices.DeleteFunc(all, func(i provider.Instance) bool {
		hidden := q.verdict == emptied || i.ID[len(i.ID)-1]%2 == 0
		p.hidden[i.ID] = p.hidden[i.ID] || hidden
		return hidden
	})
}
