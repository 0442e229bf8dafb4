// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	provisionmachine "github.com/machine-functions/machine-functions/functions/provision-machine"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
)

// horizon is what the cloud's driver says.
func (p *Play) horizon() time.Duration { return 24*time.Second + p.Cloud.Lag }

// instances returns what there is of this cluster, whatever lists tell.
func (p *Play) instances() []provider.Instance {
	if p.hosts != nil {
		return p.hosts.instances()
	}
	return slices.DeleteFunc(p.Cloud.Instances(), func(i provider.Instance) bool { return anothers(i.UID) })
}

// happened returns what has happened to instances since it was last looked at.
func (p *Play) happened() []cloud.Event {
	if p.hosts != nil {
		return slices.Clone(p.hosts.history[min(p.seen, len(p.hosts.history)):])
	}
	return p.Cloud.Since(p.seen)
}

// recorded reports whether m says that the instance of an event is its own.
func (p *Play) recorded(m *machine.Machine, e cloud.Event) bool {
	if p.hosts == nil {
		return machine.ProviderID(m) == "memory:///"+e.ID
	}
	name, _, _ := strings.Cut(e.ID, "/")
	return machine.BareMetalHost(machine.ProviderID(m)) == machine.Namespace+"/"+name
}

// liveOf returns the instances of a Machine that exist.
func (p *Play) liveOf(uid types.UID) (all []provider.Instance) {
	for _, i := range p.instances() {
		if i.UID == uid && !i.Child {
			all = append(all, i)
		}
	}
	return all
}

// watchCloud looks at what a call to the cloud did.
func (p *Play) watchCloud(q *proc) {
	events := p.happened()
	p.seen += len(events)
	var removed []types.UID
	for _, e := range events {
		if e.What == cloud.Created {
			p.births[e.ID] = birth{at: e.At, began: q.began.Add(-max(q.jumped, 0))}
		}
		switch {
		case e.What == cloud.Deleted && anothers(e.UID):
			p.violate("R-S3", "%s deletes %s, which another cluster made", q, e.ID)
		case e.What == cloud.Created && !e.Child:
			p.watchCreated(q, e)
		case e.What == cloud.Deleted && !e.Child:
			p.watchDeleted(q, e)
			removed = append(removed, e.UID)
		case e.What == cloud.Cycled:
			p.poweredOff(e.UID, e.Name)
			p.poweredOn("memory:///" + e.ID)
		case e.What == stolen:
			p.violate("R-S3", "%s takes %s from whom it belongs to", q, e.ID)
		}
	}
	for _, uid := range removed { // whoever removes more has to ask anew, but one call may remove two
		p.doubts[doubt{proc: q.id, uid: uid}] = true
	}
}

func (p *Play) owner(uid types.UID) *machine.Machine {
	for _, m := range p.machines() {
		if m.UID == uid {
			return m
		}
	}
	return nil
}

// watchCreated holds R-S1, R-S2 and R-S4 for a new instance.
func (p *Play) watchCreated(q *proc, e cloud.Event) {
	p.surfaced(e.UID)
	m := p.owner(e.UID)
	live := p.liveOf(e.UID)
	bounded := !p.unbounded
	switch {
	case p.pausedMachine(q, m):
		p.violate("B7", "%s makes %s for %s, which another API has the say over", q, e.ID, m.Name)
	case len(live) > 1 && (bounded || !p.Cloud.Untokened && !p.outlived(q, e)):
		p.violate("R-S1", "%s makes %s beside %s for %s", q, e.ID, live[0].ID, e.Name)
	case m == nil && bounded:
		p.violate("R-S2", "%s makes %s for %s, which is gone", q, e.ID, e.Name)
	case m != nil && machine.ProviderID(m) != "" && bounded:
		p.violate("R-S1", "%s makes %s for %s, which has %s", q, e.ID, e.Name, machine.ProviderID(m))
	}
	own := doubt{proc: q.id, uid: e.UID, made: true}
	if p.doubts[own] || p.doubtful(q, e.UID) && !p.unmade(q, e.UID) {
		p.violate("R-S12", "%s makes %s although the cloud did not say that there is none", q, e.ID)
	}
	p.doubts[own] = true // whoever makes another one has to ask anew
	if bounded && !p.tampered {
		p.watchInstances()
	}
}

// watchInstances holds that no more ordinals of a set have an instance than it ever wanted (R-S4).
func (p *Play) watchInstances() {
	if active := p.active(p.set()); active > p.most+p.added { // until all are adopted nobody is chosen to go
		p.violate("R-S4", "%d instances of active ordinals, at most %d were ever wanted, and %d put in", active, p.most, p.added)
	}
	if !p.Scaled {
		return
	}
	if active := p.active(p.second()); active > p.beside.most {
		p.violate("R-S4", "%d instances of active ordinals of the neighbor, at most %d were ever wanted", active, p.beside.most)
	}
}

// active counts the instances of active ordinals of a set.
func (p *Play) active(set *machine.MachineSet) (n int) {
	if set == nil {
		return 0
	}
	l, err := ledgerOf(set)
	for _, i := range p.instances() {
		if o := p.owner(i.UID); o != nil && !i.Child && i.State != provider.StateDeleting && ownerOf(o) == set.UID {
			if k, ok := p.ordinalOf(l, o); ok && err == nil && l.Active.Has(k) {
				n++
			}
		}
	}
	return n
}

// outlived reports whether q's call was held up so long that its attempt ended before it, as was right: the Horizon had passed, and the
// cloud refused the token, which nothing was made with (2b.4). From then on the next attempt's token is another.
func (p *Play) outlived(q *proc, e cloud.Event) bool {
	over := p.overAt[e.Token]
	return !over.IsZero() && !over.Before(q.began.Add(p.horizon()-time.Second)) // times on record are of whole seconds
}

// unmade reports whether the API server's word is enough that nothing was made for a Machine: it is new, without a record until now
// (2b.3). Then no cloud is asked about it, and a list that failed is of others. Whoever saw it so has an invocation's time to begin the
// call, and a call's for it, however clocks were set meanwhile; who was frozen before it has as long as that took.
func (p *Play) unmade(q *proc, uid types.UID) bool {
	if _, asked := p.doubts[doubt{proc: q.id, uid: uid}]; asked {
		return false
	}
	if q.frozen {
		return slices.ContainsFunc(q.read, func(m *machine.Machine) bool { return m.UID == uid && p.intentOf(m) == nil })
	}
	m := p.owner(uid)
	if m == nil {
		return false
	}
	i := p.intentOf(m)
	age := p.clock.Sub(m.CreationTimestamp.Time) - q.jumped
	return i != nil && i.Attempt == 1 && age.Abs() < provisionmachine.Young+invocationFor+cloudCallFor
}

// watchDeleted holds R-S3 and R-S7 for an instance that is told to go.
func (p *Play) watchDeleted(q *proc, e cloud.Event) {
	m := p.owner(e.UID)
	sweeps := p.Functions[q.fn].Name == "sweep-instances"
	if sweeps {
		p.watchSwept(q, e)
	}
	if m == nil {
		return
	}
	recorded := p.recorded(m, e)
	switch {
	case p.pausedMachine(q, m):
		p.violate("B7", "%s deletes %s of %s, which another API has the say over", q, e.ID, m.Name)
	case m.DeletionTimestamp == nil && recorded:
		p.violate("R-S3", "%s deletes %s, which %s records", q, e.ID, m.Name)
	case m.DeletionTimestamp == nil && machine.ProviderID(m) == "" && !p.cutShort(q, e):
		p.violate("R-S3", "%s deletes %s, which may be %s's only instance", q, e.ID, m.Name)
	case m.DeletionTimestamp == nil, !recorded && (sweeps || q.sawStay(m)):
	case !p.emptied[m.UID] || !isDrained(m) && !q.sawDrained(m.UID):
		p.violate("R-S7", "%s deletes %s, but %s is not drained", q, e.ID, m.Name)
	case len(m.Spec.LifecycleHooks.PreTerminate) > 0:
		p.violate("R-S7", "%s deletes %s, but %s is held by a hook", q, e.ID, m.Name)
	case p.tenant(m) != "":
		p.violate("R-S8", "%s deletes %s, but %s runs there, which nobody evicted", q, e.ID, p.tenant(m))
	case p.writes(m):
		p.violate("R-S7", "%s deletes %s, but a volume is attached to %s", q, e.ID, m.Name)
	}
	if !sweeps && p.doubtful(q, e.UID) && !(recorded && located(m) && !q.queued.req.Scan()) { // who comes by an event need not ask for that
		p.violate("R-S12", "%s deletes %s although the cloud did not say what there is", q, e.ID)
	}
	if p.hosts == nil && p.hidden[e.ID] { // nobody may have been shown it, and know of its Node
		p.forget("memory:///" + e.ID)
	}
}

// watchSwept holds 2b.10 for an instance that the sweep removes: no Node is Ready on it by what q read last, and that it is nobody's was on record
// for a Horizon when q read that. Nobody knows how long that was after a clock was set. Times on record are of whole seconds.
func (p *Play) watchSwept(q *proc, e cloud.Event) {
	for _, n := range q.nodes {
		if n.Spec.ProviderID == "memory:///"+e.ID && machine.NodeReady(n) {
			p.violate("2b.10", "%s removes %s, on which node %s is Ready", q, e.ID, n.Name)
		}
	}
	if seen, known := q.sighted[e.ID]; !p.reset && (!known || p.clock.Before(seen.Add(p.horizon()-time.Second))) {
		p.violate("2b.10", "%s removes %s, which was not known as nobody's for a Horizon", q, e.ID)
	}
}

// sightings returns since when what the sweep has on record is known as nobody's, by its id.
func sightings(cm *corev1.ConfigMap) map[string]time.Time {
	all := map[string]time.Time{}
	state, _ := machine.SweepStateIn(cm) // who cannot read it removes nothing
	for key, since := range state.Sightings {
		all[key[strings.LastIndex(key, " ")+1:]] = since.Time
	}
	return all
}

// birth is when an instance, or a port, was made, by the cloud's clock, and when who asked for it began, by the API server's as it was then.
type birth struct{ at, began time.Time }

// cutShort reports whether the attempt that made the instance of e ended as was right by the API server's clock, and q asked what there is
// before every list had to show it, by the cloud's, which nobody sets: a clock was set ahead meanwhile, or the call was held up for longer
// than the Horizon. What is left of such an attempt goes, and nobody can know that it is what was to come of it.
func (p *Play) cutShort(q *proc, e cloud.Event) bool {
	b, over := p.births[e.ID], p.overAt[e.Token]
	return !over.IsZero() && !over.Before(b.began.Add(p.horizon()-time.Second)) && q.looked.Before(b.at.Add(p.Cloud.Lag))
}

// sawGo reports whether q, when it last read the Machines, saw another of m's name that was deleted, or nobody's.
func (q *proc) sawGo(m *machine.Machine) bool {
	return slices.ContainsFunc(q.read, func(o *machine.Machine) bool {
		return o.Name == m.Name && o.UID != m.UID && (o.DeletionTimestamp != nil || ownerOf(o) == "")
	})
}

// sawStay reports whether q, when it last read the Machine, saw that it has the instance that it has, and stays: of any other of its
// instances nothing is drained, and people may delete it before the cloud is called.
func (q *proc) sawStay(m *machine.Machine) bool {
	id := machine.ProviderID(m)
	return id != "" && slices.ContainsFunc(q.read, func(o *machine.Machine) bool {
		return o.UID == m.UID && o.DeletionTimestamp == nil && machine.ProviderID(o) == id
	})
}

// sawDrained reports whether q, when it last read the Machine, saw that its Node was drained, or that there was none. One that registers
// after that, or is linked, goes with its instance, whoever looks, and whatever is written first: nothing keeps it from it until the
// instance is off.
func (q *proc) sawDrained(uid types.UID) bool {
	return slices.ContainsFunc(q.read, func(m *machine.Machine) bool {
		c := machine.FindCondition(m.Status.Conditions, machine.ConditionDrained)
		return m.UID == uid && isDrained(m) && slices.Contains([]string{machine.ReasonDrained, machine.ReasonNoNode, machine.ReasonNodeGone}, c.Reason)
	})
}

// tenant names a Pod on the Node of m, which was drained, that nobody asked to leave. To skip the drain, or to end it in time, is
// what people may want more than that.
func (p *Play) tenant(m *machine.Machine) string {
	drained := machine.FindCondition(m.Status.Conditions, machine.ConditionDrained)
	if p.Level < Scaling || drained == nil || drained.Reason != machine.ReasonDrained || m.Status.NodeRef == nil || !isDrained(m) {
		return ""
	}
	n := memory.Get[*corev1.Node](p.API, "", m.Status.NodeRef.Name)
	if n == nil || !isNodeOf(m, n) {
		return ""
	}
	for _, pod := range p.allPods() {
		if pod.Spec.NodeName == n.Name && pod.DeletionTimestamp == nil {
			return pod.Name
		}
	}
	return ""
}

// writes reports whether a volume is attached to the Node of m, which was drained. One that nobody heard of meanwhile was not waited
// for.
func (p *Play) writes(m *machine.Machine) bool {
	drained := machine.FindCondition(m.Status.Conditions, machine.ConditionDrained)
	if p.mayAil(m) || drained == nil || drained.Reason != machine.ReasonDrained || m.Status.NodeRef == nil || !p.attached(m.Status.NodeRef.Name) {
		return false
	}
	n := memory.Get[*corev1.Node](p.API, "", m.Status.NodeRef.Name)
	return n != nil && isNodeOf(m, n)
}

// asked remembers of what an invocation has no answer: of nothing that it asked for since it last did something to it.
func (p *Play) asked(q *proc, c cloud.Call, answered bool) {
	if answered && (c.Op == cloud.OpFind || c.Op == cloud.OpList) {
		q.looked = p.elsewhere()
	}
	switch c.Op {
	case cloud.OpFind:
		p.doubts[doubt{proc: q.id, uid: c.Ref.UID}] = !answered
		if answered {
			delete(p.doubts, doubt{proc: q.id, uid: c.Ref.UID, made: true})
		}
	case cloud.OpList:
		p.listed(q, answered)
	case cloud.OpResolve, cloud.OpCreate, cloud.OpDelete, cloud.OpInstanceTypes, cloud.OpUpdate,
		cloud.OpPowerCycle, cloud.OpPowerOff, cloud.OpPowerOn:
	}
}

// listed remembers whether a list was answered. One that fails later makes what an earlier one told no less known.
func (p *Play) listed(q *proc, answered bool) {
	_, before := p.doubts[doubt{proc: q.id, uid: ""}]
	if answered {
		maps.DeleteFunc(p.doubts, func(d doubt, _ bool) bool { return d.proc == q.id })
	}
	if answered || !before {
		p.doubts[doubt{proc: q.id, uid: ""}] = !answered
	}
}

// doubtful reports whether an invocation has no answer about the instances of a Machine.
func (p *Play) doubtful(q *proc, uid types.UID) bool {
	doubted, known := p.doubts[doubt{proc: q.id, uid: uid}]
	return doubted || !known && p.doubts[doubt{proc: q.id, uid: ""}]
}

// located reports whether it is on record what finds the Node of a Machine.
func located(m *machine.Machine) bool {
	return len(m.Status.Addresses) > 0 || m.Status.NodeRef != nil
}
