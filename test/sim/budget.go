// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// limitBudget puts the cluster's budget there as people wrote it (RELIABILITY G8).
func (p *Play) limitBudget() {
	if p.Budget == 0 {
		return
	}
	p.put(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.ConfigMapDisrupt},
		Data:       map[string]string{"max-at-once": strconv.Itoa(p.Budget), "max-per-hour": strconv.Itoa(p.Hourly)},
	})
}

// liftBudget has people take back what keeps things from being healed for an hour.
func (p *Play) liftBudget() {
	if cm := p.slots(); p.Budget > 0 && cm != nil {
		p.change(cm, func(o *corev1.ConfigMap) { delete(o.Data, "max-per-hour") })
	}
}

func (p *Play) slots() *corev1.ConfigMap {
	return memory.Get[*corev1.ConfigMap](p.API, machine.Namespace, machine.ConfigMapDisrupt)
}

// slotAt is since when a Machine has its slot of the budget.
func (p *Play) slotAt(uid types.UID) (at time.Time) {
	var r struct {
		Slots []struct {
			UID types.UID
			At  time.Time
		}
	}
	if cm := p.slots(); cm == nil || json.Unmarshal([]byte(cm.Data["deletions"]), &r) != nil {
		return time.Time{}
	}
	for _, s := range r.Slots {
		if s.UID == uid {
			at = s.At
		}
	}
	return at
}

// slotsTaken reports that a function has to wait for slots that others took, or that were taken within the hour. Whether another one needs
// its slots still it alone knows: to others each counts for half an hour, or until its Machine is gone (RELIABILITY 2f).
func (p *Play) slotsTaken(by string) bool {
	cm := p.slots()
	d, err := machine.ParseDisruptions(cm)
	l, bad := machine.ParseDisruptionLimits(cm, len(p.machines()))
	if err != nil || bad != nil {
		return false
	}
	if by == "evaluate-autoscale" {
		l = l.BesideHealing()
	}
	taken, lately := 0, 0
	for _, s := range d.Slots {
		own, there := s.By == by, p.owner(s.UID) != nil
		if !own && there && d.Holds(s.By, s.UID, p.clock) {
			taken++
		}
		if !(own && there) && p.clock.Before(s.At.Add(time.Hour)) {
			lately++
		}
	}
	return taken >= l.AtOnce || lately >= l.PerHour
}

// disruption is what automation does to a Machine.
type disruption struct {
	at      time.Time // its slot
	over    bool
	evicted bool // a Pod of its Node was
}

// watchBudget holds that automation disrupts no more Machines at once, nor within an hour, than the cluster's budget allows (R-S10). Where
// times or records are not what they were nobody can know.
func (p *Play) watchBudget(q *proc, a plan.Action, old plan.Object) {
	if p.Budget == 0 || p.reset || p.restored {
		return
	}
	for uid, d := range p.disrupted {
		d.over = d.over || !p.isDisrupted(uid)
		p.disrupted[uid] = d
		if d.over && !d.evicted && p.owner(uid) != nil && p.slotAt(uid).IsZero() { // called off before anybody was disrupted, and given back
			delete(p.disrupted, uid)
		}
	}
	switch a := a.(type) {
	case plan.Delete:
		if m, is := old.(*machine.Machine); is && a.Object.GetUID() == m.UID && p.Functions[q.fn].Name == "remediate" {
			p.disrupts(q, m)
		}
	case plan.Update:
		n, is := a.New.(*corev1.Node)
		if o, was := old.(*corev1.Node); !is || !was || !isTainted(n) || isTainted(o) {
			return
		}
		for _, m := range p.machines() {
			if isNodeOf(m, n) {
				p.disrupts(q, m)
			}
		}
	case plan.Evict:
		for _, m := range p.machines() {
			if d, is := p.disrupted[m.UID]; is && m.Status.NodeRef != nil && m.Status.NodeRef.Name == a.Pod.Spec.NodeName {
				d.evicted = true
				p.disrupted[m.UID] = d
			}
		}
	case plan.Create, plan.UpdateStatus, plan.Approve, plan.CreateInstance, plan.DeleteInstance, plan.UpdateInstance, plan.PowerCycle:
	}
}

// disrupts counts those who have a slot for as long as that counts, half an hour at once (RELIABILITY 2f).
func (p *Play) disrupts(q *proc, m *machine.Machine) {
	cm, now := p.slots(), disruption{at: p.slotAt(m.UID)}
	if cm == nil {
		return
	}
	atOnce, lately := 1, 1
	for uid, d := range p.disrupted {
		age := p.clock.Sub(d.at)
		if uid == m.UID {
			continue
		}
		if age < time.Hour {
			lately++
		}
		if age < 30*time.Minute && !d.over {
			atOnce++
		}
	}
	p.disrupted[m.UID] = now
	if now.at.IsZero() {
		p.violate("R-S10", "%s disrupts %s without a slot of the budget", q, m.Name)
	}
	if most, err := strconv.Atoi(cm.Data["max-at-once"]); err == nil && atOnce > most {
		p.violate("R-S10", "%s disrupts %s: %d are disrupted at once, at most %d may be", q, m.Name, atOnce, most)
	}
	if most, err := strconv.Atoi(cm.Data["max-per-hour"]); err == nil && lately > most {
		p.violate("R-S10", "%s disrupts %s: %d were disrupted within an hour, at most %d may be", q, m.Name, lately, most)
	}
}

// isDisrupted reports whether a Machine is on its way out: deleted, named as a victim, or being emptied.
func (p *Play) isDisrupted(uid types.UID) bool {
	m := p.owner(uid)
	if m == nil || m.DeletionTimestamp != nil {
		return m != nil
	}
	if set := p.set(); set != nil {
		victims, err := machine.Victims(set)
		if err == nil && slices.ContainsFunc(victims, func(v machine.Victim) bool { return v.Is(m) }) {
			return true
		}
	}
	return slices.ContainsFunc(p.removals(), func(r autoscaling.Removal) bool { return r.MachineUID == uid })
}

func isTainted(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == machine.TaintToBeDeleted })
}
