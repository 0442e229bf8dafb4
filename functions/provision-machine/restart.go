// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"cmp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// restart takes an instance whose power can be held off one step further through a power-cycle (SPEC E36). What it reads
// says which step is next, so that any may be lost or made twice. Power is switched by whoever wrote the Machine as it was
// read, or it might be switched back by somebody who slept:
//
//	wished                    → claimed, and held off
//	held, but on              → wait
//	off, Node reports         → wait: what says "off" may be of before, or wrong, and the node controller knows within a minute
//	off, Node silent          → what the Node carries is written on the Machine, then the Node goes: its pods run nowhere
//	off, Node gone            → the Machine is marked, with the claim of the remediation
//	marked                    → power on
//	held, and nobody wishes   → marked, and power on
//	on, marked, wished anew   → claimed, and held off once more: the host hangs while it boots, say
//	on, Node back and marked  → marks and wish go; link-node has given the Node back what it carried. Where the wish was taken back it
//	                            is the Node that was there before, of which nobody hears until its kubelet is up
func (l life) restart() plan.Sequence {
	done, off := l.m.Annotations[machine.AnnotationPoweredOff]
	held := l.in.Power == provider.PowerHeld
	begins := wantsPowerCycle(l.m) && (!off || !taken(l.m) || wishOf(done) != wishOf(l.m.Annotations[machine.AnnotationRemediatedBy]))
	switch {
	case begins && !held:
		return l.power(provider.PowerHeld, "as "+machine.AnnotationExternalRepair+" wishes", l.underClaim)
	case begins && l.in.State != provider.StateStopped:
		return plan.Sequence{}
	case begins:
		return l.takeNode()
	case held && off:
		return l.power(provider.PowerOn, "its Node is gone", func(a plan.PowerCycle) plan.Sequence { return plan.Sequence{Do: []plan.Action{a}} })
	case held:
		return l.power(provider.PowerOn, "nobody wishes it to be off", func(a plan.PowerCycle) plan.Sequence {
			return plan.Sequence{Do: []plan.Action{plan.Update{Old: l.m, New: l.markedOff(), Why: a.Why}, a}}
		})
	case !machine.Restarting(l.m):
		return plan.Sequence{}
	}
	return l.welcome()
}

// wishOf tells one wish from the next: each claim that asks for a power-cycle is one. Any other, as of a check that is about to replace a
// Machine whose host people power-cycle, is none, nor does it end theirs.
func wishOf(claim string) string {
	if fields := strings.Fields(claim); len(fields) > 1 && fields[1] == "power-cycle" {
		return claim
	}
	return ""
}

// power switches the instance's power, as a sequence of its own, once in an invocation.
func (l life) power(to provider.Power, why string, as func(plan.PowerCycle) plan.Sequence) plan.Sequence {
	a := plan.PowerCycle{Account: l.cloud.Account, Cluster: l.cloud.Cluster, To: to, Why: why}
	a.Ref = l.refOf(*l.in)
	switch o, tried := l.Outcome(a); {
	case !tried:
		return as(a)
	case o.Result == plan.Done: // the cloud's list shows it in the next scan
		return plan.Sequence{}
	default: // tried again by a later scan
		return l.tell("FailedPowerCycle", cmp.Or(o.Message, "there is no such instance"))
	}
}

// markedOff returns the Machine with the mark that its host is off, which any wish is met by.
func (l life) markedOff() *machine.Machine {
	next := l.m.DeepCopy()
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, machine.AnnotationPoweredOff, l.m.Annotations[machine.AnnotationRemediatedBy])
	if wantsPowerCycle(next) && !taken(next) {
		next.Annotations[machine.AnnotationExternalRepair] = l.claim()
	}
	return next
}

// falling is how long, after the claim of the wish, a Node may say that it runs before that is told: until the host is off, and the node
// controller has noticed.
const falling = time.Minute

// takeNode removes the Node of an instance that is off, and marks the Machine when it is gone.
func (l life) takeNode() plan.Sequence {
	n := l.node()
	if n == nil {
		return l.update(l.markedOff(), "instance "+l.in.ID+" is off, its Node is gone")
	}
	if n.DeletionTimestamp != nil || !machine.IsNodeOf(l.m, n) { // one that registered meanwhile is not the one that was off
		return plan.Sequence{}
	}
	if machine.NodeReports(n) {
		if l.Now.Before(l.claimedUntil().Add(falling)) {
			return plan.Sequence{}
		}
		return l.tell("FailedPowerCycle", "instance "+l.in.ID+" is said to be off, and node "+n.Name+" reports: it is not deleted, nor has the instance power again, until nobody hears of it")
	}
	a := plan.Delete{Object: n, IfUnchanged: true, Why: "instance " + l.in.ID + " is off"}
	if why, refused := l.Refused(a); refused {
		return l.tell("FailedPowerCycle", "node "+n.Name+" cannot be deleted, and instance "+l.in.ID+" stays off until it is gone: "+why)
	}
	var seq plan.Sequence
	if _, kept := l.m.Annotations[machine.AnnotationNodeLabels]; !kept {
		next := l.m.DeepCopy()
		left, err := machine.KeepNode(next, n)
		if err != nil {
			return l.tell("FailedPowerCycle", err.Error())
		}
		seq = l.update(next, "keep what node "+n.Name+" carries")
		if len(left) > 0 {
			seq.Notes = []plan.Note{l.warning("FailedUpdate", "node "+n.Name+" will come back without what is too long to be kept: "+strings.Join(left, ", "))}
		}
	}
	seq.Do = append(seq.Do, a)
	return seq
}

// welcome ends the power-cycle when the Node is back, with what the former one carried.
func (l life) welcome() plan.Sequence {
	n := l.node()
	if n == nil || n.DeletionTimestamp != nil || n.Annotations[machine.AnnotationMachine] == "" || machine.NodeUnreachable(n) {
		return plan.Sequence{}
	}
	next := l.m.DeepCopy()
	machine.ForgetNode(next)
	delete(next.Annotations, machine.AnnotationExternalRepair)
	seq := l.update(next, "node "+n.Name+" is back")
	seq.Notes = []plan.Note{l.normal("PowerCycle", "Power-cycled instance "+l.in.ID+", node "+n.Name+" is back")}
	return seq
}

// wantsNode reports whether the next step of a power-cycle is about the Node.
func (l life) wantsNode() bool {
	return l.in != nil && cycling(l.m) && (machine.Restarting(l.m) || l.in.Power == provider.PowerHeld && l.in.State == provider.StateStopped)
}

// cycling reports whether a power-cycle is wished for, or has begun.
func cycling(m *machine.Machine) bool { return wantsPowerCycle(m) || machine.Restarting(m) }
