// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A backoff is five minutes, doubles only for a failure after the one before ended, is half an hour at most, and is
// forgotten three hours after the last failure (SPEC C51).
func TestBackoff(t *testing.T) {
	t.Parallel()
	g := &group{id: "g", set: &machine.MachineSet{}}
	sc := &scan{state: autoscaling.State{Groups: map[string]autoscaling.NodeGroup{}}}
	at := epoch
	for i, want := range []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute, 30 * time.Minute} {
		sc.Now = at
		sc.fail(g, "failed")
		if got := sc.state.Groups["g"].BackoffUntil.Sub(at); got != want {
			t.Errorf("failure %d: backoff %v, want %v", i, got, want)
		}
		sc.Now = at.Add(want - time.Second)
		sc.fail(g, "failed while backed off")
		if got := sc.state.Groups["g"].BackoffUntil.Sub(at); got != want || !sc.backedOff(g) {
			t.Errorf("a failure during backoff %d made it %v", i, got)
		}
		at = at.Add(want)
		if sc.Now = at; sc.backedOff(g) {
			t.Errorf("backoff %d did not end", i)
		}
	}
	sc.Now = sc.state.Groups["g"].LastFailure.Add(3*time.Hour - time.Second)
	if sc.forget(g); sc.state.Groups["g"].Failures != 5 {
		t.Errorf("forgotten too early: %+v", sc.state.Groups["g"])
	}
	sc.Now = sc.Now.Add(time.Second)
	if sc.forget(g); sc.state.Groups["g"].Failures != 0 {
		t.Errorf("not forgotten: %+v", sc.state.Groups["g"])
	}
}

// Ten Nodes go at a time, empty ones (SPEC C61).
func TestTenEmptyNodesGoAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, epoch)
	w.load(t, "small.yaml")
	set := memory.Get[*machine.MachineSet](w.Server, machine.Namespace, "worker")
	b := memory.Get[*corev1.Node](w.Server, "", "b")
	for i := range 14 {
		n, m := b.DeepCopy(), &machine.Machine{}
		n.Name, n.UID, n.ResourceVersion = fmt.Sprintf("idle-%02d", i), types.UID(fmt.Sprint("idle-", i)), ""
		m.Namespace, m.Name, m.CreationTimestamp = machine.Namespace, n.Name, n.CreationTimestamp
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, machineSetKind)}
		m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: n.Name, UID: n.UID}
		w.must(t, w.Put(n, m))
	}
	w.must(t, memory.Patch(w.Server, set.Namespace, set.Name, func(s *machine.MachineSet) { s.Spec.Replicas = new(int32(16)) }))
	w.must(t, memory.Patch(w.Server, "", autoscaling.Name, func(ca *autoscaling.ClusterAutoscaler) {
		ca.Spec.ScaleDown = &autoscaling.ScaleDown{Enabled: true, UnneededTime: new("0s")}
	}))
	cm := &corev1.ConfigMap{Data: map[string]string{machine.DisruptionAtMax: "100", machine.DisruptionHour: "100"}}
	cm.Namespace, cm.Name = machine.Namespace, machine.ConfigMapDisrupt
	w.must(t, w.Put(cm))
	if _, err := w.scan(t.Context(), snapshot.Request{}); err != nil {
		t.Fatal(err)
	}
	state, err := stateOf(snapshotOf(memory.Get[*corev1.ConfigMap](w.Server, machine.Namespace, machine.ConfigMapStatus)))
	if err != nil || len(state.Removals) != maxRemovals {
		t.Errorf("%d removals, error %v", len(state.Removals), err)
	}
}
