// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// paused reports whether another API has had the say over an object since before q began: who began earlier may not know yet.
func (p *Play) paused(q *proc, uid types.UID, spec, status machinev1beta1.MachineAuthority) bool {
	c, _ := machine.Paused(spec, status)
	since, known := p.handed[uid]
	return c.Status == corev1.ConditionTrue && known && q.id > since
}

func (p *Play) pausedMachine(q *proc, m *machine.Machine) bool {
	return m != nil && p.paused(q, m.UID, m.Spec.AuthoritativeAPI, m.Status.AuthoritativeAPI)
}

func (p *Play) pausedSet(q *proc, set *machine.MachineSet) bool {
	return set != nil && p.paused(q, set.UID, set.Spec.AuthoritativeAPI, set.Status.AuthoritativeAPI)
}

// watchPaused holds that nobody changes what another API has the say over (SPEC B7): that it has is all that is written there. Which
// Machines belong to a set that is not paused is the set's own matter, and its bounds are its MachineAutoscaler's.
func (p *Play) watchPaused(q *proc, a plan.Action, old plan.Object) {
	scales := p.Functions[q.fn].Name == "scale-machineset"
	switch o := old.(type) {
	case *machine.MachineSet:
		if p.pausedSet(q, o) && !onlyPaused(a) && !onlyNotes(a) {
			p.violate("B7", "%s changes set %s, which another API has the say over", q, o.Name)
		}
	case *machine.Machine:
		switch {
		case scales && p.pausedSet(q, p.set()) && ownerOf(o) == p.set().UID:
			p.violate("B7", "%s changes %s, whose set another API has the say over", q, o.Name)
		case !scales && p.pausedMachine(q, o) && !onlyPaused(a):
			p.violate("B7", "%s changes %s, which another API has the say over", q, o.Name)
		}
	}
	switch a := a.(type) {
	case plan.Create:
		if m, is := a.Object.(*machine.Machine); is && !p.neighbors(m) && p.pausedSet(q, p.set()) {
			p.violate("B7", "%s creates %s, whose set another API has the say over", q, a.Object.GetName())
		}
	case plan.Evict:
		n := memory.Get[*corev1.Node](p.API, "", a.Pod.Spec.NodeName)
		if at := slices.IndexFunc(p.machines(), func(m *machine.Machine) bool { return isNodeOf(m, n) && p.pausedMachine(q, m) }); at >= 0 {
			p.violate("B7", "%s evicts %s from a Node whose Machine another API has the say over", q, a.Pod.Name)
		}
	case plan.Update, plan.UpdateStatus, plan.Delete, plan.Approve, plan.CreateInstance, plan.DeleteInstance, plan.UpdateInstance, plan.PowerCycle:
	}
}

// watchEvicted holds that nothing is evicted for a Machine that goes before the hooks are gone that are before its drain (R-S7). None
// comes to a Machine that goes already.
func (p *Play) watchEvicted(q *proc, a plan.Evict) {
	n := memory.Get[*corev1.Node](p.API, "", a.Pod.Spec.NodeName)
	for _, m := range p.machines() {
		if isNodeOf(m, n) && m.DeletionTimestamp != nil && len(m.Spec.LifecycleHooks.PreDrain) > 0 {
			p.violate("R-S7", "%s evicts %s, whose Machine a hook holds before its drain", q, a.Pod.Name)
		}
	}
}

// onlyNotes reports whether a write changes nothing but annotations that no replica follows from.
func onlyNotes(a plan.Action) bool {
	u, is := a.(plan.Update)
	old, _ := u.Old.(*machine.MachineSet)
	now, _ := u.New.(*machine.MachineSet)
	return is && equality.Semantic.DeepEqual(old.Spec, now.Spec) && old.Annotations[machine.AnnotationVictims] == now.Annotations[machine.AnnotationVictims] &&
		old.Annotations[machine.AnnotationLedger] == now.Annotations[machine.AnnotationLedger]
}

// onlyPaused reports whether a write is of a status, and says nothing new but who has the say.
func onlyPaused(a plan.Action) bool {
	u, is := a.(plan.UpdateStatus)
	if !is {
		return false
	}
	said := func(o plan.Object) any {
		of := func(all []machine.Condition) []machine.Condition {
			return slices.DeleteFunc(slices.Clone(all), func(c machine.Condition) bool { return c.Type == machine.ConditionPaused })
		}
		switch o := o.(type) {
		case *machine.Machine:
			s := *o.Status.DeepCopy()
			s.Conditions = of(s.Conditions)
			return s
		case *machine.MachineSet:
			s := *o.Status.DeepCopy()
			s.Conditions = of(s.Conditions)
			return s
		}
		return o
	}
	return equality.Semantic.DeepEqual(said(u.Old), said(u.New))
}
