// SPDX-License-Identifier: Apache-2.0

package remediate_test

import (
	"fmt"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/functions/remediate"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/sim"
)

// BenchmarkScan is one scan over many Machines and checks of which all are well: from the API server's objects to the
// decision that nothing is to be done. It must write nothing (R-S14).
func BenchmarkScan(b *testing.B) {
	f := remediate.Function
	for _, size := range []struct{ machines, checks int }{{500, 10}, {5000, 50}} {
		w := sim.NewWorld()
		for i := range size.machines {
			if err := w.API.Put(member(i, size.checks)...); err != nil {
				b.Fatal(err)
			}
		}
		for i := range size.checks {
			h := &machine.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: fmt.Sprint("check-", i)}}
			h.Spec.Selector.MatchLabels = map[string]string{"pool": fmt.Sprint(i)}
			h.Spec.UnhealthyConditions = []machinev1beta1.UnhealthyCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Timeout: metav1.Duration{Duration: 5 * time.Minute}}}
			if err := w.API.Put(h); err != nil {
				b.Fatal(err)
			}
		}
		r := w.Runner(f)
		if _, err := r.Handle(b.Context(), snapshot.Request{}); err != nil { // writes every status
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("machines=%d/checks=%d", size.machines, size.checks), func(b *testing.B) {
			b.ReportAllocs()
			before := len(w.API.Writes())
			for b.Loop() {
				if p, err := r.Handle(b.Context(), snapshot.Request{}); err != nil || !p.Quiet() {
					b.Fatalf("%v: %v", err, p)
				}
			}
			if wrote := len(w.API.Writes()) - before; wrote != 0 {
				b.Fatalf("%d writes", wrote)
			}
		})
		b.Run(fmt.Sprintf("decide/machines=%d/checks=%d", size.machines, size.checks), func(b *testing.B) {
			b.ReportAllocs()
			var s snapshot.Snapshot
			for rest := s.Missing(f.Reads(s)); !rest.Empty(); rest = s.Missing(f.Reads(s)) {
				var err error
				if s, err = w.API.As(f.Name).Observe(b.Context(), s, rest.Objects); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if p := f.Decide(s); !p.Quiet() {
					b.Fatal(p)
				}
			}
		})
	}
}

// member returns a Machine that runs, with its Node.
func member(i, pools int) []plan.Object {
	id := fmt.Sprintf("worker-%05d", i)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: id, UID: types.UID(id)}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: machine.Namespace, Name: id,
		Labels: map[string]string{"pool": fmt.Sprint(i % pools), machine.LabelRole: "worker", machine.LabelCluster: "bench"},
	}}
	m.Status.Phase = new(machine.PhaseRunning)
	m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: id, UID: n.UID}
	return []plan.Object{n, m}
}
