// SPDX-License-Identifier: Apache-2.0

// Package provisionmachine gives every Machine its instance, and takes it away again before the Machine goes.
//
//	wakes on  Machine, MachineSet; scan
//	reads     Machine, MachineSet, Node, Infrastructure, Namespace (kube-system), ConfigMap (machine-sweep-state), instances
//	writes    Machine (finalizer, intent, providerID, labels, status), MachineSet (capacity, replicas as hosts), Node (delete),
//	          ConfigMap (machine-sweep-state); instances
//
// One Machine never has two instances, and no instance is left behind: before every call to a cloud the intent is
// written on the Machine; an attempt whose answer was lost blocks the next one, and the finalizer, until nothing of it
// can surface any more (DESIGN 5.4, RELIABILITY 2b).
package provisionmachine

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const name = "provision-machine"

// Function is the deployable function.
var Function = function.Function{Name: name, Reads: reads, Decide: Decide}

// Decide moves each Machine that was asked about one step along its life (B15–B26), and gives each MachineSet the
// capacity of its instance type.
//
//	""           → Provisioning   written before anything is created (B22)
//	Provisioning → Provisioned    the instance exists and its providerID is recorded
//	Provisioned  → Running        link-node found its Node
//	any          → Deleting       drained → instance gone → Node gone → finalizer gone
//	any          → Failed         the spec can never work, or the instance vanished; final (B18)
func Decide(s snapshot.Snapshot) plan.Plan {
	var p plan.Plan
	fresh, known := accounts{}, &claims{}
	for _, m := range s.Machines {
		if asked(s, m) {
			s.Apart(m, func() { p.Add(step(s, m, fresh, known)) })
		}
	}
	p.Add(fresh.remember(s))
	p.Notes = append(p.Notes, clusterChanged(s)...)
	if s.Request.Scan() || s.Request.Is("MachineSet") {
		for _, set := range s.MachineSets {
			s.Apart(set, func() { p.Add(annotateCapacity(s, set), followStock(s, set)) })
		}
	}
	return p.Untried(s.Outcomes)
}

// step returns what one Machine needs now.
func step(s snapshot.Snapshot, m *machine.Machine, fresh accounts, known *claims) plan.Sequence {
	intent, err := intentOf(s, m)
	l := life{Snapshot: s, m: m, intent: intent, cloud: s.Clouds[m.UID], fresh: fresh, claims: known}
	l.in, l.former = l.found(), l.foreignTag()
	switch {
	case machine.IsPaused(m):
		return l.pause()
	case l.ahead():
		return l.bounded()
	case l.cleared(): // that is recorded, its claim over, whatever another look says; all else is the next invocation's
		return l.clear()
	case l.cloud.Later: // its turn comes
		return plan.Sequence{}
	case m.DeletionTimestamp != nil:
		return l.terminate(err)
	case phase(m) == machine.PhaseFailed:
		return l.failed()
	case !machine.HasFinalizer(m):
		return l.update(withFinalizer(m), "finalizer before anything else")
	case err != nil:
		return l.tell("FailedCreate", err.Error())
	}
	if problem := validate(m); problem != "" {
		return l.tell("FailedValidate", problem)
	}
	if l.elsewhere() {
		return l.misled()
	}
	if machine.ProviderID(m) == "" && l.in == nil && !unrecorded(s, m) {
		return l.launchValid()
	}
	if l.rediscovered() && !fresh.remembered(l) {
		return plan.Sequence{} // in the next round
	}
	return l.keep()
}

// keep serves a Machine that has its instance: first the record, then what is wished for the instance.
func (l life) keep() plan.Sequence {
	followed := l.follow()
	if len(followed.Do) > 0 {
		return followed
	}
	tags := l.retag()
	if len(tags.Do) > 0 {
		return tags
	}
	seq := l.powerCycle()
	seq.Notes = slices.Concat(followed.Notes, tags.Notes, seq.Notes)
	return seq
}

// life is one Machine in one decision.
type life struct {
	snapshot.Snapshot
	m      *machine.Machine
	intent *machine.Intent
	cloud  snapshot.Cloud
	in     *provider.Instance // the Machine's own; nil if there is none, as far as is known
	former *provider.Instance // what it records, where that carries another Machine's tag; nil if not
	fresh  accounts
	claims *claims // nil: every Machine is looked at
}

// refOf names the Machine's instance to its cloud.
func (l life) refOf(in provider.Instance) provider.Ref {
	return provider.Ref{UID: machine.InstanceUID(l.m), Name: l.m.Name, ID: in.ID, ProviderID: in.ProviderID}
}

func (l life) update(next *machine.Machine, why string) plan.Sequence {
	return plan.Sequence{Do: []plan.Action{plan.Update{Old: l.m, New: next, Why: why}}}
}

// withIntent returns the update that writes i.
func (l life) withIntent(i machine.Intent, why string) plan.Update {
	next := l.m.DeepCopy()
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, machine.AnnotationIntent, i.String())
	return plan.Update{Old: l.m, New: next, Why: why}
}

// ahead reports whether the intent of a Machine that is followed has a time that only a wrong clock can have written.
func (l life) ahead() bool {
	_, wrong := l.intent.Bounded(l.Now)
	return wrong != "" && machine.HasFinalizer(l.m) && (l.m.DeletionTimestamp != nil || phase(l.m) != machine.PhaseFailed)
}

// bounded writes what such an intent counts as, and tells why.
func (l life) bounded() plan.Sequence {
	next, wrong := l.intent.Bounded(l.Now)
	return plan.Sequence{Do: []plan.Action{l.withIntent(next, "times that lie too far ahead")}, Notes: []plan.Note{l.warning("FailedUpdate", wrong)}}
}

// tell returns a warning and nothing to do.
func (l life) tell(reason, message string) plan.Sequence {
	return plan.Sequence{Notes: []plan.Note{l.warning(reason, message)}}
}

func (l life) warning(reason, message string) plan.Note {
	return plan.Warning(l.m, reason, message).From(cmp.Or(l.cloud.Source, name))
}

// normal returns a provider's Event. The clouds that OpenShift lets tell in the past do so here too, of what it tells (B68).
func (l life) normal(verb, message string) plan.Note {
	source := cmp.Or(l.cloud.Source, name)
	theirs := verb == "Create" || verb == "Update" || verb == "Delete"
	if theirs && (source == "openstack_controller" || source == "libvirt_controller") {
		verb += "d"
	}
	return plan.Normal(l.m, verb, message).From(source)
}

// validate names what every Machine must have, whatever its cloud (B15).
func validate(m *machine.Machine) string {
	switch {
	case m.Labels[machine.LabelCluster] == "":
		return "metadata.labels[" + machine.LabelCluster + "]: missing or empty"
	case m.Spec.ProviderSpec.Value == nil || len(m.Spec.ProviderSpec.Value.Raw) == 0:
		return "spec.providerSpec.value: missing"
	}
	return ""
}

func phase(m *machine.Machine) string {
	if m.Status.Phase == nil {
		return ""
	}
	return *m.Status.Phase
}
