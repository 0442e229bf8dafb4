// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/beside"
	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// maxParallel bounds how many sequences are carried out at a time.
const maxParallel = 8

// deletedFor is how long a removal that a cloud accepted is not asked for again.
const deletedFor = 5 * time.Second

// apply carries out the sequences of p side by side and adds their outcomes. It reports whether anything was answered,
// so that looking again makes sense, with everything that failed for reasons nobody can decide about.
func (i *invocation) apply(ctx context.Context, p plan.Plan) (progressed bool, err error) {
	var (
		g    = i.lanes(maxParallel)
		mu   sync.Mutex
		errs []error
		left = map[string][]plan.Action{} // by account
	)
	for _, c := range i.admissible(p.Do) {
		g.Go(func() error {
			if late(ctx, c) {
				mu.Lock()
				defer mu.Unlock()
				i.unfinished = true
				left[c.account] = append(left[c.account], c.Do[0])
				return nil
			}
			if c.mutates {
				i.begun.take(c.of)
			}
			outcomes, err := i.carryOut(ctx, c.Sequence)
			mu.Lock()
			defer mu.Unlock()
			progressed = progressed || err == nil
			for k, o := range outcomes {
				i.outcomes[k] = o
				i.unfinished = i.unfinished || o.Result == plan.Failed
			}
			errs = append(errs, err)
			return nil
		})
	}
	err = errors.Join(g.Wait(), errors.Join(errs...))
	for _, of := range slices.Sorted(maps.Keys(left)) {
		i.log.Warn("too late to begin", keyAccount, of, keyLeft, len(left[of]), keyAction, plan.Line(left[of][0]))
	}
	return progressed && !late(ctx, change{}), err
}

// lanes carry out what does not depend on each other.
type lanes interface {
	Go(f func() error)
	Wait() error
}

// lanes returns at most n lanes, and one where nothing happens by chance.
func (r *Runner) lanes(n int) lanes {
	if r.Order != nil {
		return &lane{}
	}
	return beside.New(n)
}

// lane carries out one thing after the other.
type lane struct{ first error }

// Go is done when it returns.
func (l *lane) Go(f func() error) {
	if err := f(); l.first == nil {
		l.first = err
	}
}

// Wait returns the first error.
func (l *lane) Wait() error { return l.first }

func (r *Runner) order() func(int) int {
	if r.Order != nil {
		return r.Order
	}
	return rand.IntN
}

// late reports whether too little of the invocation is left to begin a sequence: it looks when the sequence's turn
// comes, because those before it take their time. A claim that the sequence begins with is left out with it.
func late(ctx context.Context, c change) bool {
	needs := writeBudget
	if c.mutates {
		needs = mutationBudget
	}
	deadline, _ := ctx.Deadline()
	return time.Until(deadline) < needs
}

// admissible leaves out sequences that would change the same Machine's instance twice in the invocation. Each time others come first,
// so that nobody waits for ever behind those who are stuck: who changes instances by who has waited longest, in a process that
// remembers it, all else by luck (R-L4).
func (i *invocation) admissible(all []plan.Sequence) []change {
	var ok []change
	for _, seq := range anyFirst(all, i.order()) {
		c := changeOf(seq)
		if c.mutates && i.mutated[c.of] {
			i.unfinished = true
			continue
		}
		if c.mutates {
			i.mutated[c.of], i.changed[c.of.uid] = true, true
		}
		ok = append(ok, c)
	}
	return i.inTurn(ok)
}

// inTurn lets accounts take turns among the places of the sequences that change instances, and those of an account by who has waited
// longest: of one that is silent each takes as long as there is, and they are many, so that whoever is behind them would need luck (R-L4).
func (i *invocation) inTurn(all []change) []change {
	var places []int
	var changes []change
	for at, c := range all {
		if c.mutates {
			places, changes = append(places, at), append(changes, c)
		}
	}
	sortByWait(changes, &i.begun, func(c change) target { return c.of })
	var accounts []string // in the order in which they come
	of := map[string][]change{}
	for _, c := range changes {
		if len(of[c.account]) == 0 {
			accounts = append(accounts, c.account)
		}
		of[c.account] = append(of[c.account], c)
	}
	for turn := 0; len(places) > 0; turn++ {
		for _, account := range accounts {
			if turn < len(of[account]) {
				all[places[0]], places = of[account][turn], places[1:]
			}
		}
	}
	return all
}

// target is what a sequence changes in a cloud: the instance of a Machine, or of several that it has the one with this id.
type target struct {
	uid types.UID
	id  string
}

// change is a sequence with what it changes, and in which account, if it changes an instance.
type change struct {
	plan.Sequence
	of      target
	account string
	mutates bool
}

func changeOf(seq plan.Sequence) change {
	for _, a := range seq.Do {
		switch a := a.(type) {
		case plan.CreateInstance:
			return change{seq, target{uid: a.Ref.UID}, a.Account, true}
		case plan.DeleteInstance:
			return change{seq, target{a.Ref.UID, a.Ref.ID}, a.Account, true}
		case plan.UpdateInstance:
			return change{seq, target{uid: a.Ref.UID}, a.Account, true}
		case plan.PowerCycle:
			return change{seq, target{uid: a.Ref.UID}, a.Account, true}
		case plan.Create, plan.Update, plan.UpdateStatus, plan.Delete, plan.Evict, plan.Approve:
		}
	}
	return change{Sequence: seq}
}

// carryOut executes one sequence until its first failure. The error is what cannot be decided about: an answer of
// the API server that is neither success nor a definite no.
func (i *invocation) carryOut(ctx context.Context, seq plan.Sequence) (map[plan.Key]plan.Outcome, error) {
	outcomes := map[plan.Key]plan.Outcome{}
	for n, a := range seq.Do {
		o, err := i.do(ctx, a)
		outcomes[a.Key()] = o
		i.logOutcome(a, o)
		if err != nil {
			if _, deletes := a.(plan.Delete); deletes && n == len(seq.Do)-1 {
				i.tell(ctx, seq.Notes, true) // of what is gone by then nobody tells later
			}
			return outcomes, fmt.Errorf("%s: %w", a.Key(), err)
		}
		if !o.Result.Achieves(a) {
			return outcomes, nil
		}
	}
	i.tell(ctx, seq.Notes, true)
	return outcomes, nil
}

func (i *invocation) do(ctx context.Context, a plan.Action) (plan.Outcome, error) {
	switch a := a.(type) {
	case plan.CreateInstance:
		instance, err := i.withDriver(a.Account, a.Cluster, func(d *patient) (provider.Instance, error) {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			in, err := d.Create(ctx, a.Ref, a.Request)
			i.Clouds.Metrics.Called("create", err)
			return in, err
		})
		return cloudOutcome(instance, err), nil
	case plan.DeleteInstance:
		o := i.deleteInstance(ctx, a)
		o.Asked = i.now
		return o, nil
	case plan.UpdateInstance:
		return i.act(ctx, a.Account, a.Cluster, "update", func(ctx context.Context, d *patient) error { return d.Update(ctx, a.Ref, a.Tags) }), nil
	case plan.PowerCycle:
		return i.act(ctx, a.Account, a.Cluster, "power_cycle", func(ctx context.Context, d *patient) error { return d.power(ctx, a.Ref, a.To) }), nil
	case plan.Create, plan.Update, plan.UpdateStatus, plan.Delete, plan.Evict, plan.Approve:
	}
	return apiOutcome(i.Cluster.Apply(ctx, a))
}

// deleteInstance asks for a removal, unless one was accepted a moment ago: events about the same change come in twos and
// threes.
func (i *invocation) deleteInstance(ctx context.Context, a plan.DeleteInstance) plan.Outcome {
	key := fmt.Sprint(a.Account, " ", a.Cluster, " ", a.Key(), " ", a.Ref.ProviderID)
	if i.deleted.lately(key, i.now, deletedFor) {
		return plan.Outcome{}
	}
	o := i.act(ctx, a.Account, a.Cluster, "delete", func(ctx context.Context, d *patient) error { return d.Delete(ctx, a.Ref) })
	if o.Result == plan.Done { // not before: what others wait for may be refused
		i.deleted.fresh(key, i.now, deletedFor)
	}
	return o
}

// act makes one call about an instance. That there is none is the outcome Gone.
func (i *invocation) act(ctx context.Context, key, cluster, call string, f func(context.Context, *patient) error) plan.Outcome {
	_, err := i.withDriver(key, cluster, func(d *patient) (provider.Instance, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		err := f(ctx, d)
		i.Clouds.Metrics.Called(call, err)
		return provider.Instance{}, err
	})
	if provider.CodeOf(err) == provider.NotFound {
		return plan.Outcome{Result: plan.Gone, Code: provider.NotFound}
	}
	return cloudOutcome(provider.Instance{}, err)
}

// cloudOutcome turns a driver's answer into data. An error that proves nothing is Failed: the call may have worked.
func cloudOutcome(instance provider.Instance, err error) plan.Outcome {
	if err == nil {
		return plan.Outcome{Instance: instance}
	}
	o := plan.Outcome{Result: plan.Refused, Code: provider.CodeOf(err), Message: said(err)}
	o.Instance.Progress = instance.Progress
	if e, ok := errors.AsType[*provider.Error](err); ok {
		o.RetryAfter = e.RetryAfter
	}
	if _, unsent := errors.AsType[unsentError](err); unsent {
		o.Result = plan.Unsent
	} else if !o.Code.Definite() {
		o.Result = plan.Failed
	}
	return o
}

// mostSaid bounds what is kept of the words of a cloud, or of an API server, in bytes: they come to stand in conditions, in every object
// that they concern.
const mostSaid = 4096

// said returns an error's text as an object can hold it, in UTF-8, cut to mostSaid bytes without cutting a character.
func said(err error) string {
	return plan.Cut(strings.ToValidUTF8(err.Error(), "\uFFFD"), mostSaid)
}

func apiOutcome(err error) (plan.Outcome, error) {
	blocked, isBlocked := errors.AsType[*cluster.BlockedError](err)
	refused, isRefused := errors.AsType[*cluster.RefusedError](err)
	switch {
	case err == nil:
		return plan.Outcome{}, nil
	case errors.Is(err, cluster.ErrConflict):
		return plan.Outcome{Result: plan.Conflict, Message: said(err)}, nil
	case errors.Is(err, cluster.ErrExists):
		return plan.Outcome{Result: plan.Exists, Message: said(err)}, nil
	case errors.Is(err, cluster.ErrGone):
		return plan.Outcome{Result: plan.Gone, Message: said(err)}, nil
	case isBlocked:
		return plan.Outcome{Result: plan.Blocked, Message: said(blocked), RetryAfter: blocked.RetryAfter}, nil
	case isRefused:
		return plan.Outcome{Result: plan.Refused, Message: said(refused.Err)}, nil
	}
	return plan.Outcome{Result: plan.Failed, Message: said(err)}, err
}
