// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// masterChecks are the checks that may select the control plane's Machines.
var masterChecks = []string{"masters", "masters-too"}

func isMaster(m *machine.Machine) bool { return m.Labels[machine.LabelRole] == "master" }

// mastersUp puts three Nodes there that nobody's Machines are, or three Machines that no set made.
func (p *Play) mastersUp() {
	if p.Level < Healing && !p.Masters {
		return
	}
	for i := range numMasters {
		name := fmt.Sprintf("master-%d", i)
		if p.Masters {
			p.put(p.masterNamed(name))
			continue
		}
		n := p.nodeNamed(name, "", nil)
		n.Labels[machine.LabelMaster] = ""
		n.Spec.Taints = []corev1.Taint{{Key: machine.LabelMaster, Effect: corev1.TaintEffectNoSchedule}}
		p.put(n)
	}
	if p.Checked == 0 {
		return
	}
	p.anew = p.pick(KindWorld, 2) == 1
	for _, name := range masterChecks[:p.Checked] {
		h := checkOf(p.pick(KindWorld, 2) == 1)
		h.Name, h.Spec.Selector.MatchLabels = name, map[string]string{machine.LabelRole: "master"}
		p.put(h)
	}
}

func (p *Play) masterNamed(name string) *machine.Machine {
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: name, Labels: map[string]string{
		machine.LabelCluster: "sim", machine.LabelRole: "master",
	}}}
	if p.Checked > 0 {
		m.OwnerReferences = plane
	}
	m.Spec = *p.newSet(1).Spec.Template.Spec.DeepCopy()
	return m
}

// plane owns the control plane's Machines where checks select them.
var plane = []metav1.OwnerReference{{APIVersion: "machine.openshift.io/v1", Kind: "ControlPlaneMachineSet", Name: "cluster", UID: "cluster", Controller: new(true)}}

// succeed is what a ControlPlaneMachineSet does: it makes a Machine in the place of one that goes, or anew under the name of one that is gone.
func (p *Play) succeed() {
	if p.Checked == 0 {
		return
	}
	there, stay := map[string]bool{}, 0
	for _, m := range p.machines() {
		if !isMaster(m) {
			continue
		}
		if there[m.Name] = true; m.DeletionTimestamp != nil && !p.anew {
			continue
		}
		stay++
	}
	for i := 0; stay < numMasters; i++ {
		if name := fmt.Sprintf("master-%d", i); !there[name] {
			stay++
			p.tracef("%s is made", name)
			p.put(p.masterNamed(name))
		}
	}
}

// release has people take away what a check of the control plane has in flight: others may go on, and so does who acts upon it by then.
func (p *Play) release(name string) {
	h := memory.Get[*machine.MachineHealthCheck](p.API, machine.Namespace, name)
	if h == nil || h.Annotations[machine.AnnotationInFlight] == "" {
		return
	}
	p.tracef("people take away what check %s has in flight", name)
	p.unchecked = p.born
	for uid := range flights(h) {
		delete(p.downed, uid)
	}
	p.change(h, func(o *machine.MachineHealthCheck) { delete(o.Annotations, machine.AnnotationInFlight) })
}

// checkWith is the check that remediate acts for on m: any that has it in flight may be, where several select it.
func (p *Play) checkWith(m *machine.Machine) *machine.MachineHealthCheck {
	if p.Checked > 0 {
		for _, h := range memory.List[*machine.MachineHealthCheck](p.API) {
			if flights(h)[m.UID] {
				return h
			}
		}
	}
	return p.check()
}

// watchDowned holds that checks disrupt one Machine of the control plane at most until it is well, or another one that was made since it was
// put in flight is Ready, however long that takes, or people say otherwise (R-S10). Where times or records are not what they were nobody can
// know.
func (p *Play) watchDowned(q *proc, m *machine.Machine) {
	if p.Checked == 0 || !isMaster(m) || p.reset || p.restored || q.id <= p.unchecked {
		return
	}
	p.recovered()
	for uid, since := range p.downed {
		if uid != m.UID {
			p.violate("R-S10", "%s disrupts %s of the control plane, while since %v nobody is Ready in the place of %s", q, m.Name, since.Sub(Start), uid)
		}
	}
	p.downed[m.UID] = p.flying[m.UID].Add(-invocationFor)
}

// recovered forgets what of the control plane is no longer disrupted, by anybody's reading until now.
func (p *Play) recovered() {
	if len(p.downed) == 0 {
		return
	}
	all, nodes := p.machines(), memory.List[*corev1.Node](p.API)
	ready := func(m *machine.Machine) bool {
		return m.DeletionTimestamp == nil && slices.ContainsFunc(nodes, func(n *corev1.Node) bool { return hasNode(m, n) && machine.NodeReady(n) })
	}
	for uid, since := range p.downed {
		if slices.ContainsFunc(all, func(m *machine.Machine) bool {
			own := m.UID == uid && (ready(m) || m.DeletionTimestamp == nil && machine.IsPaused(m))
			return own || isMaster(m) && m.UID != uid && !m.CreationTimestamp.Time.Before(since.Truncate(time.Second)) && ready(m)
		}) {
			delete(p.downed, uid)
		}
	}
}

// watchMasters holds that of the control plane no second Node is drained before the Machine of the first is gone (R-S10).
func (p *Play) watchMasters(q *proc, n *corev1.Node) {
	for _, m := range p.machines() {
		if !isMaster(m) {
			continue
		}
		if hasNode(m, n) { // it may have registered anew
			p.drains[m.UID] = true
		} else if p.drains[m.UID] && machine.IsControlPlane(n) {
			p.violate("R-S10", "%s drains %s while %s of the control plane is not gone", q, n.Name, m.Name)
		}
	}
}
