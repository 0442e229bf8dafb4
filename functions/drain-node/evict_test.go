// SPDX-License-Identifier: Apache-2.0

package drainnode

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Whatever came of an eviction: as long as the Pod is there, the Node is not empty, and its instance stays (R-S7).
func TestWhoseEvictionWasAskedForIsStillThere(t *testing.T) {
	t.Parallel()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "pod-1"}, Spec: corev1.PodSpec{NodeName: n.Name}}
	for r := plan.Done; r <= plan.Failed; r++ {
		s := snapshot.Snapshot{Outcomes: map[plan.Key]plan.Outcome{plan.Evict{Pod: pod}.Key(): {Result: r}}}
		s.Add(n)
		s.Add(pod)
		if e := evictionOf(s, n, nil, time.Time{}); len(e.untried) > 0 || len(e.refused)+len(e.leaving) != 1 || e.left() == "" {
			t.Errorf("%v: left is %q", r, e.left())
		}
	}
}

// The holder of the slot waits for each cordoned Node of the control plane, but for those whose Machines wait for him (B32): not for one
// whose drain did not begin, nor for one that is skipped, nor for one that people work on.
func TestWhomTheHolderOfTheSlotWaitsFor(t *testing.T) {
	t.Parallel()
	queued := machine.False(machine.ConditionDrained, "Info", reasonQueued, "")
	draining := machine.False(machine.ConditionDrained, "Info", "Draining", "")
	for name, tt := range map[string]struct {
		condition *machine.Condition
		skipped   bool
		stays     bool
		third     bool // another Machine is queued, whose Node takes Pods
		waits     bool
	}{
		"it is queued":            {condition: &queued},
		"nobody looked at it yet": {waits: true},
		"it drains":               {condition: &draining, waits: true},
		"its drain is skipped":    {condition: &queued, skipped: true, waits: true},
		"it stays":                {condition: &queued, stays: true, waits: true},
		"another is queued, people cordoned this Node": {stays: true, third: true, waits: true},
	} {
		of := func(name string) (*machine.Machine, *corev1.Node) {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-of-" + name), Labels: map[string]string{machine.LabelMaster: ""}}}
			m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), DeletionTimestamp: &metav1.Time{}}}
			m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: n.Name, UID: n.UID}
			return m, n
		}
		holder, mine := of("master-0")
		other, node := of("master-1")
		node.Spec.Unschedulable = true
		if tt.condition != nil {
			other.Status.Conditions = []machine.Condition{*tt.condition}
		}
		if tt.skipped {
			other.Annotations = map[string]string{machine.AnnotationExcludeDrain: ""}
		}
		if tt.stays {
			other.DeletionTimestamp = nil
		}
		s := snapshot.Snapshot{Nodes: []*corev1.Node{mine, node}, Machines: []*machine.Machine{holder, other}}
		if tt.third {
			m, n := of("master-2")
			m.Status.Conditions = []machine.Condition{queued}
			s.Add(m, n)
		}
		d := drain{Snapshot: s, m: holder, n: mine}
		if waits := d.cordoned(true) != ""; waits != tt.waits {
			t.Errorf("%s: it is waited for: %v", name, waits)
		}
		if d.cordoned(false) == "" {
			t.Errorf("%s: who does not hold the slot waits for all", name)
		}
	}
}
