// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// watch is what is known of a play beside what its API server and its cloud hold: the invariants of RELIABILITY §3.2
// are checked against it after each effect.
type watch struct {
	policy         string
	replicas, most int // wanted now, and at most ever
	added          int // Machines that people put into the set: they are there beside what the set makes
	pods           int
	sick, silent   map[string]bool          // by provider id
	ailed          map[string]bool          // by provider id: were ill at some time, in whatever way
	ordered        int                      // replicas that were ever asked for beside those that there were
	ever           map[int]bool             // ordinals that were active in some committed ledger
	retired        map[int]bool             // and are not any more, for a cause
	chosen         map[types.UID]bool       // Machines that were retired for nothing but that others were enough
	made           map[types.UID]bool       // Machines that were created at an active ordinal
	back           map[types.UID]int        // Machines that people put back into the set: the last invocation that began before
	attempts       map[types.UID]int        // by Machine: the first attempt that may be on record from now on
	overAt         map[string]time.Time     // by token: when the attempt counted as over
	births         map[string]birth         // by instance, or port
	hidden         map[string]bool          // instances that some list of the cloud left out
	emptied        map[types.UID]bool       // Machines that drain-node called drained
	drains         map[types.UID]bool       // Machines of the control plane whose Nodes were cordoned for it
	plans          map[string]bool          // that changed the set's replicas
	enough         map[string]int           // by plan: as many replicas as its maker could want
	besides        map[string]int           // and as many as the other set had
	rebuilt        map[int]bool             // invocations that rebuilt the ledger
	rebuilds       int                      // of the ledger
	doubts         map[doubt]bool           // what an invocation asked of a cloud and was not answered
	runs           map[types.UID]string     // by Node: the instance that it was last Ready on
	unchecked      int                      // the last invocation that began before people took a check away, or what it has in flight; 0: they never did
	remade         int                      // the last invocation that began before people made a MachineAutoscaler anew
	handed         map[types.UID]int        // by object that people gave another API the say over: the last invocation that began before
	unanswered     map[request]time.Time    // that were to make instances: until when one may surface
	flying         map[types.UID]time.Time  // Machines that a check has in flight, or had: since when
	out            map[types.UID]uids       // Machines that remediate deleted, and nothing is there for them yet: who was there then
	seen           int                      // of the cloud's history
	reset          bool                     // the API server's clock was set, be it right again or not
	tampered       bool                     // people set records back
	restored       bool                     // all of them
	condemned      int                      // the first invocation that begins after people deleted the set; 0: it is as they want it
	detaches       map[string]time.Time     // by Pod: when its volume is detached; none: somebody needs it where it is
	collected      bool                     // Kubernetes deleted, or released, what the set owned
	lagging        bool                     // the cloud's lists always lag
	beside         neighbor                 // the second set
	disrupted      map[types.UID]disruption // by Machine: what automation did to it
	downed         map[types.UID]time.Time  // Machines of the control plane that checks disrupted: since when another one counts as in their place
	anew           bool                     // who makes those waits until the former is gone, and gives its name again
	short          shortList                // the while in which lists lack most of what there is
	limited        bool                     // the cloud had no room for all
	unselected     int                      // the first invocation that begins after people spoilt what the set selects; 0: it selects its Machines
	kept           *hold                    // what a policy keeps; nil: nothing
	templateSeen   time.Time                // when a check first wrote what it remembers after it read the set's template; zero: it did not yet
	forCheck       map[types.UID]bool       // Machines that failed of a template, and were seen by the check before that was mended
	spoilt         bool                     // people wrote a spec that no cloud can read
	cycles                                  // of power
	backup         struct {
		set  *machine.MachineSet
		all  func()
		pods int
	}
}

// doubt is an unanswered question of an invocation about the instance of a Machine; about all of them without UID.
type doubt struct {
	proc int
	uid  types.UID
	made bool // it is whether what the invocation itself made is the only one
}

func (p *Play) begin() { p.watch = watch{}.clone() }

// clone returns what may be told more, while w stays as it is.
func (w watch) clone() watch {
	w.sick, w.silent, w.ailed = copied(w.sick), copied(w.silent), copied(w.ailed)
	w.ever, w.retired, w.rebuilt = copied(w.ever), copied(w.retired), copied(w.rebuilt)
	w.attempts, w.overAt, w.plans, w.drains, w.births = copied(w.attempts), copied(w.overAt), copied(w.plans), copied(w.drains), copied(w.births)
	w.chosen, w.made, w.back, w.doubts, w.runs, w.handed = copied(w.chosen), copied(w.made), copied(w.back), copied(w.doubts), copied(w.runs), copied(w.handed)
	w.unanswered, w.flying, w.out, w.emptied, w.enough, w.besides = copied(w.unanswered), copied(w.flying), copied(w.out), copied(w.emptied), copied(w.enough), copied(w.besides)
	if w.forCheck = copied(w.forCheck); w.kept != nil {
		w.kept = new(*w.kept)
	}
	w.detaches, w.cycles = copied(w.detaches), w.cycles.clone()
	w.hidden, w.beside, w.disrupted, w.downed = copied(w.hidden), w.beside.clone(), copied(w.disrupted), copied(w.downed)
	return w
}

func copied[K comparable, V any](m map[K]V) map[K]V {
	c := make(map[K]V, len(m))
	maps.Copy(c, m)
	return c
}

// current returns what an action changes as it is before.
func (p *Play) current(a plan.Action) plan.Object {
	switch a := a.(type) {
	case plan.Update:
		return p.peek(a.Old)
	case plan.UpdateStatus:
		return p.peek(a.Old)
	case plan.Delete:
		return p.peek(a.Object)
	case plan.Create, plan.Evict, plan.Approve, plan.CreateInstance, plan.DeleteInstance, plan.UpdateInstance, plan.PowerCycle:
	}
	return nil
}

func (p *Play) peek(o plan.Object) plan.Object {
	switch o := o.(type) {
	case *machine.Machine:
		return orNil(memory.Get[*machine.Machine](p.API, o.Namespace, o.Name))
	case *machine.MachineSet:
		return orNil(memory.Get[*machine.MachineSet](p.API, o.Namespace, o.Name))
	case *machine.MachineHealthCheck:
		return orNil(memory.Get[*machine.MachineHealthCheck](p.API, o.Namespace, o.Name))
	case *corev1.Node:
		return orNil(memory.Get[*corev1.Node](p.API, "", o.Name))
	case *corev1.Pod:
		return orNil(memory.Get[*corev1.Pod](p.API, o.Namespace, o.Name))
	}
	return nil
}

func orNil[T any, P interface {
	*T
	plan.Object
}](o P) plan.Object {
	if o == nil {
		return nil
	}
	return o
}

// watchWrite looks at what a write of a function did.
func (p *Play) watchWrite(q *proc, a plan.Action, old plan.Object, err error) {
	if q.skew.Abs() > 30e9 && err == nil {
		p.violate("G7", "%s writes although its clock was %v off", q, q.skew)
	}
	if err != nil {
		return
	}
	p.watchPaused(q, a, old)
	p.watchShort(q, a)
	p.watchBudget(q, a, old)
	if p.watchNeighbor(q, a, old) {
		return
	}
	switch a := a.(type) {
	case plan.Create:
		if m, ok := a.Object.(*machine.Machine); ok {
			p.watchBirth(q, m)
		}
		p.watchPlans(q, a.Object)
	case plan.Update:
		p.watchUpdate(q, old, a.New)
		p.watchPlans(q, a.New)
	case plan.Delete:
		p.watchDelete(q, old, a)
	case plan.UpdateStatus:
		p.hearsStatus(a)
		if m, ok := a.New.(*machine.Machine); ok && p.Functions[q.fn].Name == "drain-node" && isDrained(m) {
			p.emptied[m.UID] = true
		}
	case plan.Evict:
		p.watchEvicted(q, a)
	case plan.Approve, plan.CreateInstance, plan.DeleteInstance, plan.UpdateInstance, plan.PowerCycle:
	}
}

func (p *Play) watchBirth(q *proc, m *machine.Machine) {
	k, ok := ordinalIn(machine.Ledger{SetUID: ownerOf(m)}, m)
	switch {
	case p.rebuilt[q.id]:
		p.violate("2a.7", "%s creates %s in the invocation that rebuilt the ledger", q, m.Name)
	case p.condemned > 0 && q.id >= p.condemned:
		p.violate("2a.10", "%s creates %s although its set was deleted", q, m.Name)
	case !slices.Contains(m.Finalizers, machine.Finalizer):
		p.violate("2a.2", "%s is created without a finalizer", m.Name)
	case !ok || !p.ever[k] && !p.tampered:
		p.violate("R-S4", "%s creates %s, which no committed ledger holds", q, m.Name)
	}
	p.watchNumber(q, m)
}

func ownerOf(m *machine.Machine) types.UID {
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
		return owner.UID
	}
	return ""
}

func (p *Play) watchUpdate(q *proc, old, now plan.Object) {
	switch n := now.(type) {
	case *machine.MachineSet:
		if o, ok := old.(*machine.MachineSet); ok {
			p.watchLedger(q, o, n)
			p.watchReplicas(q, o, n)
			p.watchOwner(q, o, n)
		}
	case *machine.Machine:
		if o, ok := old.(*machine.Machine); ok {
			p.watchMachine(q, o, n)
		}
	case *machine.MachineHealthCheck:
		if o, ok := old.(*machine.MachineHealthCheck); ok {
			p.watchInFlight(o, n)
			p.sawTemplate(q)
		}
	case *corev1.Node:
		if o, ok := old.(*corev1.Node); ok && n.Spec.Unschedulable && !o.Spec.Unschedulable && p.Functions[q.fn].Name == "drain-node" {
			p.watchMasters(q, o)
		}
	}
}

// watchVersion holds that nobody writes over a record that it cannot read (G9); a ledger of its own schema is rebuilt.
func (p *Play) watchVersion(q *proc, key string, old plan.Object) {
	text := old.GetAnnotations()[key]
	if text == "" || q.version.readable(key, text) || key == machine.AnnotationLedger && strings.HasPrefix(text, schemaToday) {
		return
	}
	p.violate("G9", "%s writes over a record that it cannot read: %s", q, text)
}

// watchMachine holds R-S15, R-S16, and R-S17 for attempts, whatever became of the record of the last one.
func (p *Play) watchMachine(q *proc, old, now *machine.Machine) {
	if old.Annotations[machine.AnnotationIntent] != now.Annotations[machine.AnnotationIntent] {
		p.watchVersion(q, machine.AnnotationIntent, old)
		if q.version == older && attemptOf(now).Outcome != "" {
			p.surfaced(now.UID) // it tells of no call but the last that is without an answer: what another may have made is for the sweep
		}
	}
	p.watchWish(old, now)
	p.watchWelcome(q, old, now)
	before, after := p.intentOf(old), p.intentOf(now)
	p.watchAttempt(q, now, before, after)
	switch {
	case before == nil || after == nil || !before.Own(old) || !after.Own(now):
	case after.Token == before.Token && before.Called() && !bytes.Equal(after.Request, before.Request):
		p.violate("2b.5", "%s: the request of attempt %d of %s changes", q, after.Attempt, now.Name)
	}
	if _, had := old.Annotations[machine.AnnotationExternalRepair]; !had && p.Functions[q.fn].Name == "remediate" {
		if _, has := now.Annotations[machine.AnnotationExternalRepair]; has {
			p.watchDowned(q, now)
		}
	}
	was, is := machine.ProviderID(old), machine.ProviderID(now)
	if was != "" && is != was {
		p.violate("R-S16", "%s: the provider id of %s changes from %s to %s", q, now.Name, was, is)
	}
	if !slices.Contains(old.Finalizers, machine.Finalizer) || slices.Contains(now.Finalizers, machine.Finalizer) {
		return
	}
	switch {
	case claimed(old, q.now()):
		p.violate("R-S15", "%s lets %s go while a claim runs", q, now.Name)
	case p.maySurface(q, old):
		p.violate("R-S15", "%s lets %s go while an instance may surface", q, now.Name)
	case len(p.liveOf(now.UID)) > 0 && !p.unbounded && !(p.restored && was == "" && !before.Called()): // what no record tells of is the sweep's
		p.violate("R-S15", "%s lets %s go, but %s is there", q, now.Name, p.liveOf(now.UID)[0].ID)
	}
}

// watchAttempt holds that no attempt returns (R-S17): one that was refused is over, and so is one whose record was removed.
func (p *Play) watchAttempt(q *proc, m *machine.Machine, before, after *machine.Intent) {
	next := p.attempts[m.UID]
	if before != nil && before.Own(m) {
		next = max(next, before.Attempt)
		if after == nil || before.Outcome == machine.OutcomeRefused && after.Outcome == "" {
			next = max(next, before.Attempt+1)
		}
	}
	if after != nil && after.Own(m) && after.Attempt < next {
		p.violate("R-S17", "%s: attempt %d of %s comes where %d is the next", q, after.Attempt, m.Name, next)
	}
	p.attempts[m.UID] = next
	if before != nil && before.Token != "" && p.overAt[before.Token].IsZero() && (after.Over() || after != nil && after.Token != before.Token) {
		p.overAt[before.Token] = p.clock
	}
}

// watchDelete holds R-S3 and R-S9 for Nodes, R-S6 and R-S8.
func (p *Play) watchDelete(q *proc, old plan.Object, a plan.Delete) {
	name := p.Functions[q.fn].Name
	switch o := old.(type) {
	case *machine.Machine:
		switch {
		case p.rebuilt[q.id]:
			p.violate("2a.7", "%s deletes %s in the invocation that rebuilt the ledger", q, o.Name)
		case o.UID != a.Object.GetUID():
		case name == "scale-machineset":
			p.causedByLedger(q, o)
		case name == "remediate":
			p.causedByCheck(q, o)
		default:
			p.violate("R-S6", "%s deletes %s", q, o.Name)
		}
	case *corev1.Node:
		p.watchNodeGone(q, o)
	case *corev1.Pod:
		p.violate("R-S8", "%s deletes pod %s", q, o.Name)
	}
}

// watchNodeGone holds that a Node is deleted for a Machine that had it, once that or its instance is gone (R-S3, R-S9).
func (p *Play) watchNodeGone(q *proc, n *corev1.Node) {
	off := false
	for _, i := range p.instances() {
		switch {
		case i.ProviderID != n.Spec.ProviderID || n.Spec.ProviderID == "" || i.ID != p.runs[n.UID]:
		case i.State == provider.StateStopped:
			off = true
		case p.jumped != 0: // a cloud that lags was believed too early, which no client can know
		default:
			p.violate("R-S9", "%s deletes node %s while %s is there", q, n.Name, i.ID)
		}
	}
	if _, ran := p.runs[n.UID]; !ran {
		p.violate("R-S3", "%s deletes node %s, which was never a Machine's", q, n.Name)
	}
	for _, m := range p.machines() {
		if hasNode(m, n) && m.DeletionTimestamp == nil && !off && !p.formers(m, n) {
			p.violate("R-S3", "%s deletes node %s of %s, which stays", q, n.Name, m.Name)
		}
	}
}

// causedByLedger holds that a set deletes whom its ledger has retired (R-S6). Of a ledger that was rebuilt since q read the set q cannot
// know; the former one counts then.
func (p *Play) causedByLedger(q *proc, m *machine.Machine) {
	set := p.set()
	if set == nil || p.tampered {
		return
	}
	if !p.retires(set, m) && (q.rebuilds == p.rebuilds || !p.retires(q.set, m)) {
		p.violate("R-S6", "%s deletes %s, which the ledger has not retired for a cause", q, m.Name)
	}
}

// retires reports whether m was retired, by the ledger of the set as it is or was, and for a cause.
func (p *Play) retires(set *machine.MachineSet, m *machine.Machine) bool {
	if set == nil {
		return false
	}
	l, err := ledgerOf(set)
	k, ok := ordinalIn(l, m)
	return err == nil && ok && !l.Active.Has(k) && p.retired[k]
}

// watchInFlight holds R-S10 for one check, whose limit is what people wrote.
func (p *Play) watchInFlight(old, h *machine.MachineHealthCheck) {
	p.flies(old, h)
	var r struct {
		InFlight []json.RawMessage `json:"inFlight"`
	}
	limit := allowed(old)
	if text := h.Annotations[machine.AnnotationInFlight]; text != "" && json.Unmarshal([]byte(text), &r) == nil && len(r.InFlight) > limit {
		p.violate("R-S10", "%d in flight, at most %d are allowed", len(r.InFlight), limit)
	}
}

// joined holds that two Nodes never run for one Machine (R-S1).
func (p *Play) joined(i provider.Instance) {
	for _, other := range p.liveOf(i.UID) {
		if other.ID != i.ID && p.known(other.ProviderID) && !p.unbounded {
			p.violate("R-S1", "%s and %s of one Machine both have Nodes", i.ID, other.ID)
		}
	}
}
