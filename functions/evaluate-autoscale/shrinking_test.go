// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// drained makes a world in which the drained Node of one set, which is preferred and cheaper, goes, while a Pod waits for one.
func drained(t *testing.T, expander string) *world {
	t.Helper()
	w := fresh(t, "{scaleDown: {enabled: true}, expanders: ["+expander+"]}")
	w.pool(t, "hi", 4, 9, map[string]string{machine.AnnotationPrice: "0.1"}, nil)
	w.pool(t, "lo", 0, 9, map[string]string{machine.AnnotationPrice: "1.0"}, nil)
	w.yaml(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cluster-autoscaler-priority-expander, namespace: openshift-machine-api, uid: p}, data: {priorities: "50: [hi]\n10: [lo]\n"}}`)
	for _, n := range []string{"a", "b", "c", "d"} {
		w.idler(t, "hi", n)
		if n != "d" {
			w.must(t, w.Put(pod("default", "p-"+n, n, resources("cpu", "3"))))
		}
	}
	w.once(t) // of bounds
	w.must(t, memory.Patch(w.Server, "", "d", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: machine.TaintToBeDeleted, Value: "down-d", Effect: corev1.TaintEffectNoSchedule}}
		n.Spec.Unschedulable = true
		n.Annotations = map[string]string{machine.AnnotationCordonedBy: "down-d"}
	}))
	w.remember(t, autoscaling.State{Removals: []autoscaling.Removal{{
		Plan: "down-d", Group: "MachineSet/openshift-machine-api/hi", Node: "d", NodeUID: "node-d", Machine: "d", MachineUID: "machine-d",
		At: metav1.NewTime(epoch.Add(-30 * time.Second)), Drain: true, MaxGrace: 600,
	}}})
	w.must(t, w.Put(pod("default", "waits", "", resources("cpu", "3500m"))))
	return w
}

// A set that is just being made smaller has its Nodes for Pods all the same, once that is done, in the same scan: they are bought no other
// set's, which is less preferred or dearer (SPEC C29, B113).
func TestShrinkingSetGrowsAsIfItDidNot(t *testing.T) {
	t.Parallel()
	for _, expander := range []string{"Priority", "Price"} {
		w := drained(t, expander)
		w.once(t)
		if got := w.replicas("hi", "lo"); !slices.Equal(got, []int32{4, 0}) {
			t.Errorf("%s: replicas %v, want [4 0]: one less and one more of the first", expander, got)
		}
	}
}

// silent is an API server that answers nothing about one set.
type silent struct {
	cluster.Cluster
	name string
}

func (s silent) Apply(ctx context.Context, a plan.Action) error {
	if u, ok := a.(plan.Update); ok {
		if set, ok := u.Old.(*machine.MachineSet); ok && set.Name == s.name {
			return errors.New("timeout")
		}
	}
	return s.Cluster.Apply(ctx, a)
}

// Where nobody knows whether that was done, the next scan waits for it no more: the Pod has its Node of another set (SPEC C33).
func TestNobodyWaitsForASetThatShrinksWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	w := drained(t, "Priority")
	w.through(silent{w.As(Function.Name), "hi"})
	for range 2 {
		if _, err := w.scan(t.Context(), snapshot.Request{}); err == nil {
			t.Error("the set had an answer")
		}
		w.now = w.now.Add(10 * time.Second)
	}
	if got := w.replicas("hi", "lo"); !slices.Equal(got, []int32{4, 1}) {
		t.Errorf("replicas %v, want [4 1]", got)
	}
}

// Who was asked a moment ago for the last Node that it may have is full, not shrinking: nobody waits for it (SPEC C33).
func TestNobodyWaitsForASetThatGrew(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{expanders: [Priority]}")
	w.pool(t, "hi", 0, 1, nil, nil)
	w.pool(t, "lo", 0, 9, nil, nil)
	w.yaml(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cluster-autoscaler-priority-expander, namespace: openshift-machine-api, uid: p}, data: {priorities: "50: [hi]\n10: [lo]\n"}}`)
	for i, want := range [][]int32{{1, 0}, {1, 1}} {
		w.must(t, w.Put(pod("default", fmt.Sprint("waits-", i), "", resources("cpu", "3"))))
		w.once(t)
		if got := w.replicas("hi", "lo"); !slices.Equal(got, want) {
			t.Errorf("%d Pods: replicas %v, want %v", i+1, got, want)
		}
		w.now = w.now.Add(time.Second)
	}
}
