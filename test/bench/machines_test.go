// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	drainnode "github.com/machine-functions/machine-functions/functions/drain-node"
	linknode "github.com/machine-functions/machine-functions/functions/link-node"
	provisionmachine "github.com/machine-functions/machine-functions/functions/provision-machine"
	"github.com/machine-functions/machine-functions/functions/remediate"
	scalemachineset "github.com/machine-functions/machine-functions/functions/scale-machineset"
	sweepinstances "github.com/machine-functions/machine-functions/functions/sweep-instances"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
	"github.com/machine-functions/machine-functions/test/sim"
)

// all functions of the machine layer.
var all = []function.Function{
	scalemachineset.Function, provisionmachine.Function, linknode.Function, drainnode.Function, remediate.Function, sweepinstances.Function,
}

// settled returns a world in which so many sets have all their Machines running, watched by one health check.
func settled(b *testing.B, sets, machines int) *sim.World {
	b.Helper()
	w := sim.NewWorld(all...)
	check := &machine.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Name: "workers", Namespace: machine.Namespace}}
	check.Spec.UnhealthyConditions = []machinev1beta1.UnhealthyCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Timeout: metav1.Duration{Duration: 5 * time.Minute}},
	}
	if err := w.API.Put(check); err != nil {
		b.Fatal(err)
	}
	for i := range sets {
		if err := w.API.Put(sim.Set(fmt.Sprintf("set-%03d", i), int32(machines/sets))); err != nil {
			b.Fatal(err)
		}
	}
	for range 1000 {
		before := len(w.API.Writes())
		if err := w.Tick(b.Context()); err != nil {
			b.Fatal(err)
		}
		if len(w.API.Writes()) == before {
			return w
		}
	}
	b.Fatal("does not settle")
	return nil
}

// BenchmarkScan is one scan of a converged cluster, from the API server's objects to the decision that nothing is to be
// done: reading, indexing, deciding. It must write nothing (R-S14).
func BenchmarkScan(b *testing.B) {
	for _, size := range []struct{ sets, machines int }{{50, 500}, {500, 5000}} {
		w := settled(b, size.sets, size.machines)
		for _, f := range all {
			b.Run(fmt.Sprintf("function=%s/sets=%d/machines=%d", f.Name, size.sets, size.machines), func(b *testing.B) {
				b.ReportAllocs()
				before := len(w.API.Writes())
				r := w.Runner(f)
				peak := watchHeap()
				for b.Loop() {
					if p, err := r.Handle(b.Context(), snapshot.Request{}); err != nil || !p.Quiet() {
						b.Fatalf("%v: %v", err, p)
					}
				}
				b.ReportMetric(peak(), "peak-MB")
				if wrote := len(w.API.Writes()) - before; wrote != 0 {
					b.Fatalf("%d writes", wrote)
				}
			})
		}
	}
}

// watchHeap begins to watch the heap; what it returns ends that, and says by how many MB it grew at most.
func watchHeap() func() float64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	heap := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	runtime.GC()
	before, most := heap(), uint64(0)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			most = max(most, heap())
			select {
			case <-end:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return func() float64 {
		close(end)
		<-ended
		return float64(most-min(before, most)) / 1e6
	}
}

// BenchmarkDecideOfASet is one decision of scale-machineset about one set of 5,000 Machines.
func BenchmarkDecideOfASet(b *testing.B) {
	const size = 5000
	for _, c := range []struct {
		name            string
		active, wanted  int
		machines, drawn int // drawn: adopted from elsewhere
	}{
		{"converged", size, size, size, 0},
		{"converged-adopted", size, size, size, size},
		{"grow-from-none", 0, size, 0, 0},
		{"create-the-first", size, size, 0, 0},
		{"shrink-to-half", size, size / 2, size, 0},
		{"delete-half", size / 2, size / 2, size, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := snapshot.Snapshot{Now: noon, Invocation: "bench"}
			set := sim.Set("worker", int32(c.wanted))
			set.UID, set.ResourceVersion = "set-1", "1"
			set.Spec.DeletePolicy = string(machinev1beta1.NewestMachineSetDeletePolicy)
			ledger := machine.NewLedger(set.UID)
			for k := range c.active {
				ledger.Active = append(ledger.Active, k)
			}
			var objects []plan.Object
			ledger.Next = max(c.active, c.machines)
			for k := range c.machines {
				m := member(set, k)
				if k < c.drawn {
					if ledger.Adopted == nil {
						ledger.Adopted = map[int]machine.Member{}
					}
					m.Name = fmt.Sprintf("elsewhere-%04d", k)
					ledger.Adopted[k] = machine.Member{Name: m.Name, UID: m.UID}
				}
				objects = append(objects, m)
			}
			set.Annotations = map[string]string{machine.AnnotationLedger: ledger.String()}
			s.Add(append(objects, set)...)
			seen, _, err := scenario.Observe(scalemachineset.Function, scenario.Scenario{World: s})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			actions := 0
			for b.Loop() {
				actions = len(scalemachineset.Function.Decide(seen).Actions())
			}
			b.ReportMetric(float64(actions), "actions")
		})
	}
}

func member(set *machine.MachineSet, k int) *machine.Machine {
	controls := true
	return &machine.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: machine.Name(set.Name, set.UID, k), Namespace: set.Namespace, UID: types.UID(fmt.Sprint("machine-", k)), ResourceVersion: "1",
		CreationTimestamp: metav1.NewTime(noon.Add(-time.Duration(k) * time.Minute)),
		Labels:            map[string]string{machine.LabelCluster: "sim", machine.LabelMachineSet: set.Name, machine.LabelOrdinal: fmt.Sprint(k)},
		OwnerReferences:   []metav1.OwnerReference{{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet", Name: set.Name, UID: set.UID, Controller: &controls}},
		Finalizers:        []string{machine.Finalizer},
	}}
}
