// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// A set whose Nodes were awaited before it was resized has not been asked for them by the autoscaler: once it is resized they may take as long
// as any, and it is not backed off before (C45, C47).
func TestWhatWasAwaitedBeforeIsNoRequest(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.pool(t, "s", 1, 9, nil, nil)
	w.idler(t, "s", "a")
	fixed := &machine.MachineSet{}
	fixed.Namespace, fixed.Name, fixed.UID = machine.Namespace, "fixed", "set-fixed"
	fixed.CreationTimestamp = metav1.NewTime(epoch.Add(-time.Hour))
	fixed.Spec.Replicas = new(int32(1))
	selects(fixed)
	w.must(t, w.Put(fixed))
	w.pass(t, 14*time.Minute)
	ma := &autoscaling.MachineAutoscaler{Spec: autoscaling.MachineAutoscalerSpec{MaxReplicas: 2,
		ScaleTargetRef: autoscaling.ScaleTargetRef{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet", Name: fixed.Name}}}
	ma.Namespace, ma.Name = machine.Namespace, fixed.Name
	w.must(t, w.Put(ma))
	since := w.now
	w.pass(t, time.Minute)
	if n := w.state(t).Groups[idOf(fixed)]; len(n.Waves) > 0 {
		t.Errorf("what was awaited before is remembered: %+v", n.Waves)
	}
	w.pass(t, 10*time.Minute)
	n := w.state(t).Groups[idOf(fixed)]
	if n.Request == nil || n.Request.At.Time.Before(since) || n.LastFailure != nil {
		t.Errorf("resized since %s: %+v is remembered of it, with the request %+v", since, n, n.Request)
	}
}

// A Machine that was late before its set was resized is counted as a failure once it is, and one that was counted is not counted again (C48, C49).
func TestWhoWasLateBeforeCountsOnce(t *testing.T) {
	t.Parallel()
	for _, counted := range []bool{false, true} {
		w := fresh(t, "{}")
		w.pool(t, "s", 1, 9, nil, nil)
		set := memory.Get[*machine.MachineSet](w.Server, machine.Namespace, "s")
		m := &machine.Machine{}
		m.Namespace, m.Name, m.UID, m.CreationTimestamp = machine.Namespace, "late", "machine-late", metav1.NewTime(epoch.Add(-time.Hour))
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, machineSetKind)}
		w.must(t, w.Put(m))
		was := autoscaling.NodeGroup{Waves: []autoscaling.Wave{{At: metav1.NewTime(epoch.Add(-time.Minute)), To: 1}}, FailedUIDs: []types.UID{m.UID}}
		if counted {
			was.LastFailure, was.Failures = new(metav1.NewTime(epoch.Add(-time.Hour))), 1
		}
		w.remember(t, autoscaling.State{Groups: map[string]autoscaling.NodeGroup{idOf(set): was}})
		w.scans(t, 3)
		n := w.state(t).Groups[idOf(set)]
		if n.Failures != 1 || n.LastFailure == nil || n.LastFailure.Time.Before(epoch) != counted {
			t.Errorf("counted before: %t: %d failures, the last at %v", counted, n.Failures, n.LastFailure)
		}
	}
}
