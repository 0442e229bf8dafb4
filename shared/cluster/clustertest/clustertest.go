// SPDX-License-Identifier: Apache-2.0

// Package clustertest is what every implementation of the port to the Kubernetes API promises, as tests.
package clustertest

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Harness is an API server that is ready for one test. The custom resources of config/crd are known to it. No kubelet
// works on its objects.
type Harness struct {
	Cluster   cluster.Cluster // serves Namespace alone
	Other     cluster.Cluster // another actor, who serves the same
	Namespace string          // exists, without objects; its name begins the names of cluster-scoped objects
	Elsewhere string          // exists too, and is not served

	PutSecret func(t *testing.T, s *corev1.Secret)
	Events    func(t *testing.T, namespace string) []corev1.Event
	Clock     func() time.Time // the server's clock, to a second or two
}

// aside returns how far a time is from all that the clock showed since then: however long a busy machine takes, that is not counted.
func (h Harness) aside(at, since time.Time) time.Duration {
	return max(since.Sub(at), at.Sub(h.Clock()), 0)
}

type test struct {
	promise string
	run     func(*testing.T, Harness)
}

// Run proves the promises to the implementation that ready makes, each in a subtest named after it.
func Run(t *testing.T, ready func(*testing.T) Harness) {
	for _, tt := range slices.Concat(reading, writing, racing, deleting, evicting, approving, telling) {
		t.Run(tt.promise, func(t *testing.T) {
			t.Parallel()
			tt.run(t, ready(t))
		})
	}
}

// patience is how long the server's own controllers may take: the garbage collector looks for new kinds every 30 s.
const patience = time.Minute

// eventually waits for what happens in the background.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v still not: %s", patience, what)
		}
	}
}

// observe asks h.Cluster from nothing.
func (h Harness) observe(t *testing.T, queries ...snapshot.Query) snapshot.Snapshot {
	t.Helper()
	s, err := h.Cluster.Observe(t.Context(), snapshot.Snapshot{}, queries)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// find returns o as it is now, or nil.
func find[T plan.Object](t *testing.T, h Harness, o T) T {
	t.Helper()
	for found := range h.observe(t, snapshot.One(plan.KindOf(o), o.GetNamespace(), o.GetName())).Objects() {
		if found, ok := found.(T); ok {
			return found
		}
	}
	var none T
	return none
}

// exists reports whether an object of o's name is there.
func exists(t *testing.T, h Harness, o plan.Object) bool {
	t.Helper()
	for range h.observe(t, snapshot.One(plan.KindOf(o), o.GetNamespace(), o.GetName())).Objects() {
		return true
	}
	return false
}

// create creates o and returns it as it is then.
func create[T plan.Object](t *testing.T, h Harness, o T) T {
	t.Helper()
	if err := h.Other.Apply(t.Context(), plan.Create{Object: o}); err != nil {
		t.Fatalf("create %s: %v", plan.NameOf(o), err)
	}
	return find(t, h, o)
}

// apply carries out an action that must succeed.
func (h Harness) apply(t *testing.T, a plan.Action) {
	t.Helper()
	if err := h.Cluster.Apply(t.Context(), a); err != nil {
		t.Fatalf("%s: %v", a.Key(), err)
	}
}

// edit returns the action that makes change to o.
func edit[T plan.Object](o T, change func(T)) plan.Update {
	n, _ := o.DeepCopyObject().(T)
	change(n)
	return plan.Update{Old: o, New: n}
}

// editStatus returns the action that makes change to the status of o.
func editStatus[T plan.Object](o T, change func(T)) plan.UpdateStatus {
	n, _ := o.DeepCopyObject().(T)
	change(n)
	return plan.UpdateStatus{Old: o, New: n}
}

// update makes change to o and returns it as it is then.
func update[T plan.Object](t *testing.T, h Harness, o T, change func(T)) T {
	t.Helper()
	h.apply(t, edit(o, change))
	return find(t, h, o)
}

// updateStatus makes change to the status of o and returns it as it is then.
func updateStatus[T plan.Object](t *testing.T, h Harness, o T, change func(T)) T {
	t.Helper()
	h.apply(t, editStatus(o, change))
	return find(t, h, o)
}

// names returns the names of objects, in their order.
func names[T plan.Object](all []T) string {
	var names []string
	for _, o := range all {
		names = append(names, o.GetName())
	}
	return strings.Join(names, " ")
}
