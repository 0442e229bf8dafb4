// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

const (
	quickRounds = 8 // of a scan's 10 s, then of 30 s
	mostRounds  = 80
)

// settle is the end of every schedule: nothing fails any more, what runs runs to its end, then the functions' scans
// alone have to make everything as it is wanted (R-L1, R-L3), and to leave it alone from then on (R-S14).
func (p *Play) settle() {
	if p.Violation != nil {
		return
	}
	p.calm = true
	p.tracef("calm")
	p.relent()
	p.finish()
	last, idle, orphans := "", 0, map[string]time.Time{}
	waiting := &patience{p.clock, map[string]time.Duration{}}
	for round := range mostRounds {
		if round == quickRounds { // what a process remembers for a while, it does by a clock that stands still here
			clear(p.warm)
		}
		if p.kept != nil && (round == keptFor || round > quickRounds && last == "" && p.kept.refused == 0) {
			p.permit(last)
			idle = 0
		}
		p.mendLate(round)
		p.round(round)
		p.watchOrphans(orphans)
		if p.Violation != nil {
			return
		}
		if last = p.wrong(); last != "" && !p.waits() {
			idle++
		}
		p.late(idle, last)
		p.mends(waiting, last)
		if q := p.sleeper(); q != nil && (last == "" || round > 20) {
			p.tracef("%s wakes up", q)
			p.wake(q)
			continue
		}
		if last == "" && p.sleeper() == nil && p.kept == nil && p.quiet() {
			p.hour()
			return
		}
	}
	if last == "" {
		last = "R-S14: it is written to on and on"
	}
	rule, what, _ := strings.Cut(last, ": ")
	p.violate(rule, "after %v of calm: %s", p.clock.Sub(Start), what)
}

// mostIdle is in how many ticks everything has to be as it is wanted, beside those in which something is waited for.
const mostIdle = 6

// late holds R-L3. After requests that may take for ever, and where people have to look, nobody knows how long it takes.
func (p *Play) late(idle int, last string) {
	if idle > mostIdle && !p.unbounded && !p.reset && !p.restored {
		p.violate("R-L3", "after %d ticks in which nothing was waited for: %s", idle, last)
	}
}

// waits reports whether anybody waits, be it for the autoscaler or for a check, which have bounds of their own (mends).
func (p *Play) waits() bool {
	return p.Level >= Healing && p.heals() || p.wrongLoad(p.set()) != "" || p.removing() || p.atWork()
}

// atWork reports whether anybody waits for a time that is written down, for what is seen twice before it is believed, or for a cloud.
func (p *Play) atWork() bool {
	counts := map[types.UID]int{}
	for _, i := range p.instances() {
		if i.State != provider.StateRunning || i.Child && !p.joinedPort(i) || p.owner(i.UID) == nil {
			return true
		}
		if !i.Child {
			counts[i.UID]++
		}
	}
	if p.restarts() {
		return true
	}
	later := func(t *metav1.Time) bool { return t != nil && p.clock.Before(t.Time) }
	for _, m := range p.machines() {
		i := p.intentOf(m)
		switch {
		case p.bereaved(m):
			continue
		case machine.Phase(m) == machine.PhaseFailed: // for people, or for a check that sees it twice
			return true
		case m.Status.ErrorReason != nil && *m.Status.ErrorReason == machinev1beta1.DeleteMachineError && !unasked(m): // the cloud refused, and is asked less and less often
			return true
		case counts[m.UID] > 1, counts[m.UID] == 0 && machine.ProviderID(m) != "":
			return true
		case i == nil:
		case later(i.Until), later(i.NotBefore), i.Called() && i.Unresolved() && p.clock.Before(i.SurfacesUntil(p.horizon())):
			return true
		}
	}
	return slices.ContainsFunc(memory.List[*machine.MachineSet](p.API), func(set *machine.MachineSet) bool {
		l, err := ledgerOf(set)
		return err == nil && later(l.NextCreateAt)
	})
}

// unasked reports whether its cloud could not be asked when m was last told of its deletion: that is over where nothing fails.
func unasked(m *machine.Machine) bool {
	return m.Status.ErrorMessage != nil && strings.HasPrefix(*m.Status.ErrorMessage, "the cloud cannot be asked: ")
}

// heals reports whether a Node is ill, or something is done about one.
func (p *Play) heals() bool {
	for _, n := range memory.List[*corev1.Node](p.API) {
		if n.Spec.ProviderID != "" && !machine.NodeReady(n) && !p.ofBereaved(n) {
			return true
		}
	}
	return slices.ContainsFunc(memory.List[*machine.MachineHealthCheck](p.API), func(h *machine.MachineHealthCheck) bool {
		return h.Namespace == machine.Namespace && h.Annotations[machine.AnnotationInFlight] != ""
	})
}

// finish runs every invocation to its end, but the one that is frozen.
func (p *Play) finish() {
	for {
		q := p.runnable()
		if q == nil || p.Violation != nil {
			return
		}
		p.resume(q)
	}
}

func (p *Play) sleeper() *proc {
	for _, q := range p.procs {
		if q.frozen {
			return q
		}
	}
	return nil
}

// wake lets the call take effect that was frozen, and the invocation end.
func (p *Play) wake(q *proc) {
	p.resume(q)
	q.frozen = false
	p.finish()
}

// round lets time pass and every function scan, once. Events are lost.
func (p *Play) round(n int) {
	d := 10 * time.Second
	if n >= quickRounds {
		d = 30 * time.Second
	}
	p.clock = p.clock.Add(d)
	p.nature()
	p.confirm()
	p.makeRivals()
	if n >= quickRounds {
		p.takeAway()
		p.replaceLost()
	}
	p.read, p.queue = len(p.API.Writes()), nil
	for i := range p.Functions {
		p.start(queued{fn: i})
		p.finish()
	}
}

// quiet reports whether another round writes nothing (R-S14).
func (p *Play) quiet() bool {
	before := len(p.API.Writes())
	p.round(quickRounds)
	return len(p.API.Writes()) == before && p.wrong() == ""
}

// confirm is a person who has looked at what many orphans at once are.
func (p *Play) confirm() {
	cm := memory.Get[*corev1.ConfigMap](p.API, machine.Namespace, machine.ConfigMapSweep)
	if cm == nil || !p.restored && !p.unbounded && !p.reset {
		return
	}
	const confirmed = "machine.openshift.io/sweep-confirmed"
	if cm.Annotations[confirmed] == "" && strings.Contains(cm.Data[machine.SweepKey], "sightings") {
		next := cm.DeepCopy()
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, confirmed, p.clock.Add(time.Hour).UTC().Format(time.RFC3339))
		p.put(next)
	}
}

// takeAway is a person who was told (SweepHeld) that nobody's instance, or a Machine's second one, is kept because a Node runs on it, and
// takes it out of service; and the cloud's node controller, which knows of Nodes that were never a Machine's.
func (p *Play) takeAway() {
	if p.hosts != nil || !p.restored && !p.unbounded && !p.reset {
		return
	}
	there := map[string]bool{}
	for _, i := range p.instances() {
		there[i.ProviderID] = true
		for _, n := range memory.List[*corev1.Node](p.API) {
			if !i.Child && p.nobodys(i) && n.Spec.ProviderID == i.ProviderID && machine.NodeReady(n) {
				p.tracef("people take %s away, with its node", i.ID)
				p.Cloud.Vanish(i.ID)
				p.seen += len(p.happened())
				p.remove("Node", "", n.Name)
			}
		}
	}
	for _, n := range memory.List[*corev1.Node](p.API) {
		if _, _, marked := machine.AnnotatedMachine(n); !marked && n.Spec.ProviderID != "" && !there[n.Spec.ProviderID] {
			p.forget(n.Spec.ProviderID)
		}
	}
}

// replaceLost is a person who deletes what failed while more is sick than a check may replace: that it deletes nothing then,
// whatever was lost, is its purpose (B60). So does who spoilt a spec with what failed of it, which no check replaces (R-B27).
func (p *Play) replaceLost() {
	stormy := slices.ContainsFunc(memory.List[*machine.MachineHealthCheck](p.API), func(h *machine.MachineHealthCheck) bool {
		return strings.Contains(h.Annotations[machine.AnnotationInFlight], `"storm"`)
	})
	for _, m := range p.machines() {
		if p.Scaled && p.neighbors(m) && machine.Phase(m) == machine.PhaseFailed && m.DeletionTimestamp == nil {
			p.beside.ordered++
			p.tracef("people delete %s", m.Name)
			p.remove("Machine", m.Namespace, m.Name)
		}
	}
	for i, m := range p.first() {
		if (stormy && !p.Losses || p.handles(m)) && machine.Phase(m) == machine.PhaseFailed && m.DeletionTimestamp == nil {
			p.deleteMachine(i)
		}
	}
}

// wrong says what is not as it is wanted after the invariant that it is of, or "".
func (p *Play) wrong() string {
	set, machines := p.set(), p.unstuck()
	if set == nil {
		return "R-L1: the set is gone"
	}
	for _, m := range machines {
		if m.DeletionTimestamp != nil {
			return fmt.Sprintf("R-L2: %s is still being deleted", m.Name)
		}
	}
	n, beside := 0, 0
	for _, m := range machines {
		if p.neighbors(m) {
			beside++
		} else if !isMaster(m) {
			n++
		}
	}
	if least := int(*set.Spec.Replicas) - (len(p.machines()) - len(machines)); n != int(*set.Spec.Replicas) && !(p.kept != nil && least <= n && n <= int(*set.Spec.Replicas)) {
		return fmt.Sprintf("R-L1: %d Machines, %d are wanted", n, *set.Spec.Replicas)
	}
	if n := p.besideWants(); beside != n {
		return fmt.Sprintf("R-L1: %d Machines of the neighbor, which wants %d", beside, n)
	}
	nodes := map[string]*corev1.Node{}
	for _, n := range memory.List[*corev1.Node](p.API) {
		nodes[n.Name] = n
	}
	live := map[string]bool{}
	for _, i := range p.instances() {
		live[i.ProviderID] = live[i.ProviderID] || !i.Child
	}
	for _, m := range machines {
		if rule, why := p.wrongMachine(m, nodes, live); why != "" {
			return rule + ": " + m.Name + " " + why
		}
	}
	if why := p.leftovers(p.machines(), nodes); why != "" || p.kept != nil {
		return why
	}
	return cmp.Or(p.wrongLoad(set), p.onRecord())
}

func (p *Play) wrongMachine(m *machine.Machine, nodes map[string]*corev1.Node, live map[string]bool) (rule, why string) {
	phase := machine.Phase(m)
	failed := phase == machine.PhaseFailed
	switch {
	case p.restored && isMaster(m) && p.Checked == 0: // that a backup has none of its instance is for people
		return "", ""
	case p.toldWhyNot(m): // people are to look
		return "", ""
	case failed && (p.bereaved(m) || p.Level == Machines && !p.neighbors(m)):
		return "", "" // nobody replaces it
	case failed && live[machine.ProviderID(m)] && p.runsAfterAll(m, nodes):
		return "", "" // nor this one
	case phase != machine.PhaseRunning:
		return "R-L1", fmt.Sprintf("is in phase %s", phase)
	case !live[machine.ProviderID(m)]:
		return "R-L1", "has no instance"
	case m.Status.NodeRef == nil || !isNodeOf(m, nodes[m.Status.NodeRef.Name]):
		return "R-L1", "has no Node"
	case !machine.NodeReady(nodes[m.Status.NodeRef.Name]) && p.Level >= Healing:
		return "R-L1", "has a Node that is not Ready"
	case m.Annotations[machine.AnnotationRemediatedBy] != "":
		return "R-S11", "keeps the claim of a check"
	case p.Cycles && cycling(m):
		return "R-S11", "is power-cycled on and on"
	}
	return "", ""
}

// leftovers names what nobody owns: instances, their children, Nodes, taints (R-S1, R-S2, R-S11).
func (p *Play) leftovers(machines []*machine.Machine, nodes map[string]*corev1.Node) string {
	owned := map[string]bool{}
	for _, m := range machines {
		if machine.Phase(m) != machine.PhaseFailed || p.Level >= Healing {
			owned[string(m.UID)] = true
		}
	}
	count := map[string]int{}
	for _, i := range p.instances() {
		switch {
		case p.nobodys(i) && p.unheardOf(i): // nor is anything known of its Node
			maps.DeleteFunc(nodes, func(_ string, n *corev1.Node) bool { return n.Spec.ProviderID == i.ProviderID })
		case i.Child && i.State != provider.StateDeleting && !p.joinedPort(i):
			return fmt.Sprintf("R-S2: leftover %s", i.ID)
		case i.Child:
		default:
			count[string(i.UID)]++
			switch n := count[string(i.UID)]; {
			case n > 1:
				return fmt.Sprintf("R-S1: instance %s (%s) of %s is left, %d of that Machine", i.ID, i.State, i.Name, n)
			case !owned[string(i.UID)] && !p.failedOwner(i):
				return fmt.Sprintf("R-S2: instance %s (%s) of %s is left", i.ID, i.State, i.Name)
			}
		}
	}
	for _, n := range nodes {
		switch {
		case n.Spec.ProviderID == "", p.ofKept(n):
		case p.restored && p.hosts != nil: // no cloud's node controller knows of what nobody had recorded
		case p.orphaned(n, machines):
			return fmt.Sprintf("R-S2: node %s is left", n.Name)
		case ours(n) && !p.removes(n):
			return fmt.Sprintf("R-S11: node %s keeps %v", n.Name, n.Spec.Taints)
		}
	}
	return ""
}

// ours reports whether a Node has taints that are not of its role.
func ours(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key != machine.LabelMaster })
}

// wrongLoad says which Pods wait although they could run, and which Nodes stay although nobody needs them.
func (p *Play) wrongLoad(set *machine.MachineSet) string {
	if p.Level < Scaling || set == nil {
		return ""
	}
	if p.Scaled {
		return p.wrongLoads(set)
	}
	full := p.masters()+p.strays()+p.Neighbor+int(*set.Spec.Replicas) >= p.mostNodes() && p.pods > int(*set.Spec.Replicas)
	full = full || p.Rivals && int(*set.Spec.Replicas) >= mostOf(set)
	for _, pod := range p.allPods() {
		if pod.Spec.NodeName == "" && !full {
			return fmt.Sprintf("R-L1: pod %s waits", pod.Name)
		}
	}
	if n := int(*set.Spec.Replicas); n > max(1, p.pods) {
		return fmt.Sprintf("R-L1: %d replicas for %d pods in the end", n, p.pods)
	}
	return ""
}
