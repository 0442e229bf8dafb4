// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// alive are the instances that run.
func (p *Play) alive() (all []provider.Instance) {
	for _, i := range p.instances() {
		if !i.Child && i.State == provider.StateRunning {
			all = append(all, i)
		}
	}
	return all
}

// vanish has the cloud lose an instance.
func (p *Play) vanish(i provider.Instance) {
	p.tracef("the cloud loses instance %s", i.ID)
	p.bereave(i)
	if p.hosts != nil {
		p.hosts.vanish(i.ID)
	} else {
		p.Cloud.Vanish(i.ID)
	}
	p.seen += len(p.happened())
	p.forget(i.ProviderID)
}

// loseMany has the cloud lose half of its instances at once, all but one, or all.
func (p *Play) loseMany(how int) {
	all := p.alive()
	for _, i := range all[:[]int{(len(all) + 1) / 2, max(0, len(all)-1), len(all)}[how]] {
		p.ailed[i.ProviderID] = true
		p.vanish(i)
	}
}

// mostIll is the share of its Machines, in percent, that a check may replace at once where it is one that replaces fewer than all.
const mostIll = 40

// replacesFewer chooses whether a check may replace fewer Machines than all.
func (p *Play) replacesFewer(h *machine.MachineHealthCheck) {
	if p.Losses && p.Level == Healing && p.pick(KindWorld, 2) == 1 {
		h.Spec.MaxUnhealthy = new(intstr.FromString(strconv.Itoa(mostIll) + "%"))
	}
}

// tooMany reports whether more of what the check selects is ill than it may replace, and it says so.
func (p *Play) tooMany() bool {
	h := p.check()
	if !p.Losses || h == nil || h.Spec.MaxUnhealthy.String() == "100%" {
		return false
	}
	all, ill := 0, 0
	for _, m := range p.machines() {
		if m.Labels[machine.LabelMachineSet] != setName {
			continue
		}
		all++
		if p.illOf(m) != "" {
			ill++
		}
	}
	told := machine.FindCondition(h.Status.Conditions, "RemediationAllowed")
	return 100*ill > mostIll*all && told != nil && told.Status == corev1.ConditionFalse && told.Reason == "TooManyUnhealthy"
}

// toldWhyNot reports whether an ill Machine is not replaced because more are than may be, and both it and the check say so.
func (p *Play) toldWhyNot(m *machine.Machine) bool {
	if !p.tooMany() || p.illOf(m) == "" {
		return false
	}
	return isTold(m, "not remediated: ")
}

// isTold reports whether a Machine says so of why it is ill.
func isTold(m *machine.Machine, why string) bool {
	told := machine.FindCondition(m.Status.Conditions, machine.ConditionHealthy)
	return told != nil && told.Status == corev1.ConditionFalse && strings.Contains(told.Message, why)
}

// runsAfterAll reports whether a Machine is Failed for want of its instance, by a clock that jumped or storage that was restored, and its Node is Ready:
// Pods run there, so that no check removes it, which is told (2f.re-check, SPEC B51).
func (p *Play) runsAfterAll(m *machine.Machine, nodes map[string]*corev1.Node) bool {
	if !p.reset && !p.restored || m.Status.NodeRef == nil {
		return false
	}
	n := nodes[m.Status.NodeRef.Name]
	return isNodeOf(m, n) && machine.NodeReady(n) && isTold(m, "not remediated: its node is Ready")
}
