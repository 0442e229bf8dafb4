// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// reasonCreate is the reason of a set whose Machines fail, by the word that its Machines have for it (R-B27).
const reasonCreate = machinev1beta1.MachineSetStatusError(machinev1beta1.CreateMachineError)

// maxSelector bounds what an API server takes as a status' labelSelector (B35).
const maxSelector = 4096

// maxProblem bounds what a status says is wrong, in bytes: that may quote what has hardly room in the set once, and is told of every set.
const maxProblem = 4096

// reportStatus writes the status if it changed (B38, B41). Counts that are zero stay blank (S6).
func reportStatus(s snapshot.Snapshot, set *machine.MachineSet, l machine.Ledger, m members) plan.Sequence {
	next := set.DeepCopy()
	st := &next.Status
	st.Replicas, st.FullyLabeledReplicas, st.ReadyReplicas, st.AvailableReplicas = 0, 0, 0, 0
	template := labels.SelectorFromSet(set.Spec.Template.Labels)
	for _, x := range m.alive() {
		st.Replicas++
		if template.Matches(labels.Set(x.Labels)) {
			st.FullyLabeledReplicas++
		}
		since, ready := readySince(s, x)
		if ready {
			st.ReadyReplicas++
		}
		if ready && !s.Now.Before(since.Add(time.Duration(set.Spec.MinReadySeconds)*time.Second)) {
			st.AvailableReplicas++
		}
	}
	st.ObservedGeneration = set.Generation
	if st.LabelSelector = metav1.FormatLabelSelector(&set.Spec.Selector); len(st.LabelSelector) > maxSelector {
		st.LabelSelector = "" // else the whole status would be refused
	}
	st.ErrorReason, st.ErrorMessage = nil, nil
	reason, problem := problemOf(s, set, l, m)
	problem = plan.Cut(problem, maxProblem)
	if problem != "" {
		st.ErrorReason, st.ErrorMessage = &reason, &problem
	}
	if c, shown := machine.Paused(set.Spec.AuthoritativeAPI, set.Status.AuthoritativeAPI); shown {
		st.Conditions = machine.SetCondition(st.Conditions, c, s.Now)
	}
	seq := statusIfChanged(set, next)
	if problem != "" && len(seq.Do) > 0 && (set.Status.ErrorMessage == nil || *set.Status.ErrorMessage != problem) {
		seq.Notes = append(seq.Notes, plan.Warning(set, "ReconcileError", problem))
	}
	return seq
}

// problemOf returns what the set's status says is wrong, or "": what lets no Machine work first, what the next ones merely go
// without last.
func problemOf(s snapshot.Snapshot, set *machine.MachineSet, l machine.Ledger, m members) (machinev1beta1.MachineSetStatusError, string) {
	invalid := machinev1beta1.InvalidConfigurationMachineSetError
	if problem := cmp.Or(misfit(s, set), unbounded(set), unread(set), crowded(set, l, m), foreignInstance(set)); problem != "" {
		return invalid, problem
	}
	if problem := paused(s.Now, set, l); problem != "" {
		return reasonCreate, problem
	}
	return invalid, cmp.Or(unfit(set), unwanted(m))
}

// unwanted says that the selector finds Machines of the control plane, for which the set makes none, or "": a selector that finds all of a
// cluster is one that somebody forgot to narrow, and what a set adopts goes with its replicas.
func unwanted(m members) string {
	if len(m.masters) == 0 {
		return ""
	}
	names := make([]string, 0, len(m.masters))
	for _, x := range m.masters {
		names = append(names, x.Name)
	}
	return "spec.selector finds Machines of the control plane, which this set makes none for, and leaves them alone: " + strings.Join(names, ", ")
}

// foreignInstance says that the template names an instance, which none of its Machines can have, or "".
func foreignInstance(set *machine.MachineSet) string {
	id := set.Spec.Template.Spec.ProviderID
	if id == nil || *id == "" {
		return ""
	}
	return fmt.Sprintf("spec.template.spec.providerID: %q is ignored: every Machine of a set gets an instance of its own", *id)
}

// unfit says that the template wants Nodes to carry what none can (SPEC B2, B3), or "". The rest is carried, so it keeps nobody from
// scaling.
func unfit(set *machine.MachineSet) string {
	if why := machine.CarriedByTemplate(set).Unfit(); why != "" {
		return "spec.template." + why
	}
	return ""
}

// misfit returns why no Machine of the set's template can ever work, by the rules that its Machines are judged by (SPEC
// B72–B79), or "". It keeps nobody from scaling: Machines that exist are as they are, and new ones say the same.
func misfit(s snapshot.Snapshot, set *machine.MachineSet) string {
	if problem, _ := s.JudgeSpec(set); problem != "" {
		return "spec.template.spec." + problem
	}
	return ""
}

// nodeOf returns the Node that m is linked to, as far as it was read, or nil. A Node of the same name with another UID is another Node.
func nodeOf(s snapshot.Snapshot, m *machine.Machine) *corev1.Node {
	if ref := m.Status.NodeRef; ref != nil {
		if n := s.Node(ref.Name); machine.IsNodeOf(m, n) {
			return n
		}
	}
	return nil
}

// readySince returns since when the Node of m is Ready.
func readySince(s snapshot.Snapshot, m *machine.Machine) (time.Time, bool) {
	n := nodeOf(s, m)
	if n == nil || !machine.NodeReady(n) {
		return time.Time{}, false
	}
	return machine.NodeCondition(n, corev1.NodeReady).LastTransitionTime.Time, true
}

// invalid reports a set that cannot work; nothing else happens to it.
func invalid(set *machine.MachineSet, err error) plan.Sequence {
	next := set.DeepCopy()
	reason, message := machinev1beta1.InvalidConfigurationMachineSetError, plan.Cut(err.Error(), maxProblem)
	next.Status.ErrorReason, next.Status.ErrorMessage = &reason, &message
	next.Status.ObservedGeneration = set.Generation
	seq := statusIfChanged(set, next)
	seq.Notes = append(seq.Notes, plan.Warning(set, "ReconcileError", message))
	return seq
}

func statusIfChanged(set, next *machine.MachineSet) plan.Sequence {
	if plan.Same(set.Status, next.Status) {
		return plan.Sequence{}
	}
	return plan.Sequence{Do: []plan.Action{plan.UpdateStatus{Old: set, New: next, Why: "observed"}}}
}
