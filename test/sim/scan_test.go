// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	evaluateautoscale "github.com/machine-functions/machine-functions/functions/evaluate-autoscale"
	"github.com/machine-functions/machine-functions/functions/remediate"
	sweepinstances "github.com/machine-functions/machine-functions/functions/sweep-instances"
	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A scan of a converged cluster of 500 sets with 5,000 Machines in two accounts writes nothing, and asks each account for one
// list at most: not one call more than for ten Machines (R-S14, RELIABILITY G11, 2c). The types and their prices each process knows
// since its first one, for ten minutes (E4).
func TestConvergedScanCostsTwoLists(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // however busy the machine is, an invocation has its time
		sets, each := 500, int32(10)
		if testing.Short() {
			sets = 20
		}
		w := machineLayer()
		w.Functions = append(w.Functions, remediate.Function, evaluateautoscale.Function)
		ca := &autoscaling.ClusterAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		check := &machine.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "workers"}}
		if err := w.API.Put(ca, check); err != nil {
			t.Fatal(err)
		}
		for i := range sets {
			set := Set(fmt.Sprintf("set-%03d", i), each)
			set.Spec.Template.Spec.ProviderSpec.Value = rawExtension(fmt.Sprintf(`{"kind":%q,"type":"small","region":%q}`, cloud.Kind, []string{"east", "west"}[i%2]))
			scales := &autoscaling.MachineAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: set.Name}}
			scales.Spec = autoscaling.MachineAutoscalerSpec{
				MinReplicas: each, MaxReplicas: each, ScaleTargetRef: autoscaling.ScaleTargetRef{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet", Name: set.Name},
			}
			if err := w.API.Put(set, scales); err != nil {
				t.Fatal(err)
			}
		}
		settle(t, w, 200)
		n := sets * int(each)
		if got, want := state(w), fmt.Sprintf("machines map[Running:%d] nodes %d instances %d", n, n, n); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		sweep(t, w) // the first one remembers the accounts
		var mu sync.Mutex
		calls := map[string]int{}
		w.Cloud.Fault = func(_ context.Context, c cloud.Call) error {
			mu.Lock()
			defer mu.Unlock()
			if !c.After {
				calls[string(c.Op)+" in "+c.Account]++
			}
			return nil
		}
		once := map[string]int{}
		for _, region := range []string{"east", "west"} {
			once["list in "+cloud.Kind+"/"+region+"/openshift-machine-api/"] = 1
		}
		for _, f := range append(w.Functions, sweepinstances.Function) {
			before, process := len(w.API.Writes()), w.Runner(f)
			if _, err := process.Handle(t.Context(), snapshot.Request{}); err != nil {
				t.Fatal(err)
			}
			clear(calls)
			if p, err := process.Handle(t.Context(), snapshot.Request{}); err != nil || !p.Quiet() {
				t.Errorf("%s: %v, plans\n%v", f.Name, err, p)
			}
			if writes := len(w.API.Writes()) - before; writes != 0 {
				t.Errorf("%s writes %d times", f.Name, writes)
			}
			want := map[string]int{}
			if f.Name == "provision-machine" || f.Name == "sweep-instances" {
				want = once
			}
			if !maps.Equal(calls, want) {
				t.Errorf("%s calls %v, want %v", f.Name, calls, want)
			}
		}
	})
}
