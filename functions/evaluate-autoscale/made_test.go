// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// pool adds a set that is resized between 0 and most. It says that its Nodes have 4 cores and 16Gi, unless the annotations
// say otherwise; the labels are those of its Nodes.
func (w *world) pool(t testing.TB, name string, replicas, most int32, annotations, labels map[string]string) {
	t.Helper()
	all := midsize()
	for k, v := range annotations {
		all[k] = v
	}
	w.set(t, name, replicas, most, all, labels)
}

// idler adds a Machine of a set with a Node of the same name, nine hours old, of 4 cores and 16Gi.
func (w *world) idler(t testing.TB, set, name string) {
	t.Helper()
	w.member(t, set, name, epoch.Add(-9*time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
}

// pod returns a Pod of a ReplicaSet, three hours old, that runs on a Node; without one the scheduler found none for it.
func pod(namespace, name, node string, requests corev1.ResourceList) *corev1.Pod {
	p := running(name, node, requests)
	if node == "" {
		p = pending(name, epoch.Add(-3*time.Hour), requests)
	}
	p.Namespace, p.UID = namespace, types.UID("pod-"+namespace+"-"+name)
	return p
}

// remember makes the function remember a state.
func (w *world) remember(t testing.TB, s autoscaling.State) {
	t.Helper()
	s.Schema = 1
	cm := &corev1.ConfigMap{Data: map[string]string{autoscaling.StateKey: s.String()}}
	cm.Namespace, cm.Name = machine.Namespace, machine.ConfigMapStatus
	w.must(t, w.Put(cm))
}

// pass lets time pass in steps of a scan, in which nobody but the function does anything, and returns the last plan.
func (w *world) pass(t testing.TB, d time.Duration) (p plan.Plan) {
	t.Helper()
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(10 * time.Second) {
		var err error
		if p, err = w.scan(t.Context(), snapshot.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	return p
}
