// SPDX-License-Identifier: Apache-2.0

package drainnode

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// slotKey is the key in the ConfigMap machine-disruption that says which Machine disrupts the control plane.
const slotKey = "control-plane"

const slotSchema = 1

// slot is the one permission to disrupt the control plane. Its holder keeps it until the Machine is gone; it is taken
// by compare-and-swap, because two Nodes that are cordoned at the same time each look as if they were first
// (RELIABILITY 2e, R-B28).
type slot struct {
	Schema    int       `json:"schema"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

// slotOf returns who holds the slot, or the zero slot. What does not name exactly one Machine is an error: nobody disrupts the
// control plane until people have mended or removed it.
func slotOf(s snapshot.Snapshot) (slot, error) {
	cm := s.ConfigMap(machine.Namespace, machine.ConfigMapDisrupt)
	if cm == nil || cm.Data[slotKey] == "" {
		return slot{}, nil
	}
	var held slot
	err := machine.ReadSchema(cm.Data[slotKey], &held, &held.Schema, slotSchema)
	if err == nil && (held.Namespace == "" || held.Name == "" || held.UID == "") {
		err = errors.New("it names no machine")
	}
	if err != nil {
		return slot{}, fmt.Errorf("configmap %s key %s: %w", cm.Name, slotKey, err)
	}
	return held, nil
}

// slotReads asks for what takeSlot decides by. The holder whose turn is held up by a cordon needs to know whether it is of a
// Machine that waits for the slot itself.
func slotReads(s snapshot.Snapshot, m *machine.Machine, n *corev1.Node) []snapshot.Query {
	if !machine.IsControlPlane(n) {
		return nil
	}
	ask := []snapshot.Query{
		{Kind: "Node", Labels: machine.LabelControlPlane},
		{Kind: "Node", Labels: machine.LabelMaster},
		snapshot.One("ConfigMap", machine.Namespace, machine.ConfigMapDisrupt),
	}
	held, err := slotOf(s)
	switch {
	case err != nil, held.Name == "":
	case held.UID != m.UID:
		ask = append(ask, snapshot.One("Machine", held.Namespace, held.Name))
	case !n.Spec.Unschedulable && drain{Snapshot: s, m: m, n: n}.cordoned(false) != "":
		ask = append(ask, snapshot.All("Machine"))
	}
	return ask
}

// takeSlot lets one control-plane Machine drain at a time; wait says that it is not, or not yet, this one's turn. A
// Node that is cordoned already goes on although another one is cordoned too (B32).
func (d drain) takeSlot(claimed *bool) (seq []plan.Sequence, wait bool) {
	if !machine.IsControlPlane(d.n) {
		return nil, false
	}
	held, err := slotOf(d.Snapshot)
	holds := held.UID == d.m.UID
	if other := d.cordoned(holds); other != "" && !d.n.Spec.Unschedulable {
		return d.queued("node " + other + " is cordoned"), true
	}
	switch {
	case errors.Is(err, machine.ErrNewer): // who follows other advice lets two drain at a time
		return d.barred(err.Error()+": it is left alone, and nobody disrupts the control plane meanwhile", ""), true
	case err != nil:
		return d.barred(err.Error()+": mend it or remove it, until then nobody disrupts the control plane", ""), true
	}
	if holds {
		return nil, false
	}
	if holder := d.Machine(held.Namespace, held.Name); holder != nil && holder.UID == held.UID {
		return d.queued("machine " + held.Name + " goes first"), true
	}
	claim := d.claim()
	if why, refused := d.Refused(claim); refused {
		return d.barred("configmap "+machine.ConfigMapDisrupt+", which says whose turn it is, cannot be written: ", why), true
	}
	if *claimed {
		return nil, true
	}
	*claimed = true
	return []plan.Sequence{{Do: []plan.Action{claim}}}, true
}

func (d drain) claim() plan.Action {
	mine := slot{Schema: slotSchema, Namespace: d.m.Namespace, Name: d.m.Name, UID: d.m.UID}
	text, err := json.Marshal(mine)
	if err != nil { // strings and a number always marshal
		text = nil
	}
	why := "control-plane slot for machine " + d.m.Name
	have := d.ConfigMap(machine.Namespace, machine.ConfigMapDisrupt)
	if have == nil {
		meta := metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.ConfigMapDisrupt}
		return plan.Create{Object: &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{slotKey: string(text)}}, Why: why}
	}
	next := have.DeepCopy()
	if next.Data == nil {
		next.Data = map[string]string{}
	}
	next.Data[slotKey] = string(text)
	return plan.Update{Old: have, New: next, Why: why}
}

// cordoned returns the name of another control-plane Node that takes no Pods, if it is not of the same instance. The holder of the slot
// does not count those whose Machines wait for it: each would wait for the other for ever, and those disrupt nothing before they have it.
func (d drain) cordoned(holds bool) string {
	for _, n := range d.Nodes {
		if n.Name != d.n.Name && !machine.SameInstance(d.m, n) && n.Spec.Unschedulable && machine.IsControlPlane(n) && (!holds || !d.waiting(n)) {
			return n.Name
		}
	}
	return ""
}

// waiting reports whether n is of a Machine that is queued for the slot. It cannot get it while the holder's Machine is
// there; one whose drain is skipped never asks for it.
func (d drain) waiting(n *corev1.Node) bool {
	return slices.ContainsFunc(d.Machines, func(m *machine.Machine) bool {
		_, excluded := m.Annotations[machine.AnnotationExcludeDrain]
		c := machine.FindCondition(m.Status.Conditions, machine.ConditionDrained)
		return machine.IsNodeOf(m, n) && m.DeletionTimestamp != nil && !excluded &&
			c != nil && c.Reason == reasonQueued
	})
}

// barred shows why nobody's turn comes, and the API server's words about that, if it has any.
func (d drain) barred(why, words string) []plan.Sequence {
	return d.inQueue(machinev1beta1.ConditionSeverityWarning, plan.Reworded(d.begun(), why, words), requeued(d.m, why+words))
}

// queued shows whose turn it is.
func (d drain) queued(why string) []plan.Sequence {
	reason := "one control-plane node at a time: " + why
	return d.inQueue(machinev1beta1.ConditionSeverityInfo, reason, d.note("DrainRequeued", "Node drain requeued: "+reason))
}

// inQueue waits for the turn of the Node, which no limit cuts short. Where that is a later one of the instance, the drain has begun, and
// the first Node stays what it is: its turn does not come anew.
func (d drain) inQueue(severity machinev1beta1.ConditionSeverity, why string, note plan.Note) []plan.Sequence {
	reason := reasonQueued
	if d.later {
		reason = reasonAgain
	}
	return d.undrained(machine.False(machine.ConditionDrained, severity, reason, why), note)
}
