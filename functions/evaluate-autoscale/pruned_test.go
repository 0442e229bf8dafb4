// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// pruning is an API server whose definitions of MachineAutoscaler and ClusterAutoscaler know no conditions, as OpenShift's own.
type pruning struct {
	cluster.Cluster
	off     bool // the definitions know them
	writes  int  // of statuses
	reasons []string
}

func (c *pruning) Apply(ctx context.Context, a plan.Action) error {
	u, is := a.(plan.UpdateStatus)
	if !is || c.off {
		return c.Cluster.Apply(ctx, a)
	}
	c.writes++
	switch next := u.New.DeepCopyObject().(type) {
	case *autoscaling.ClusterAutoscaler:
		return nil
	case *autoscaling.MachineAutoscaler:
		if was := u.Old.(*autoscaling.MachineAutoscaler).Status.LastTargetRef; was != nil && *was == *next.Status.LastTargetRef { //nolint:forcetypeassert // it is one
			return nil
		}
		next.Status.Conditions = nil
		u.New = next
	}
	return c.Cluster.Apply(ctx, u)
}

func (c *pruning) Tell(ctx context.Context, n plan.Note) error {
	c.reasons = append(c.reasons, n.Reason)
	return c.Cluster.Tell(ctx, n)
}

// Where the definitions prune the conditions, they are written and told once a day, not in every scan, and that they are pruned is told once;
// what changes is written and told at once, and where they are kept again, nothing is left of it.
func TestWhatIsPrunedIsWrittenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, epoch)
	w.load(t, "small.yaml")
	w.must(t, memory.Patch(w.Server, "", autoscaling.Name, func(ca *autoscaling.ClusterAutoscaler) { ca.Status.Conditions = nil }))
	w.must(t, memory.Patch(w.Server, machine.Namespace, "worker", func(ma *autoscaling.MachineAutoscaler) { ma.Status = autoscaling.MachineAutoscalerStatus{} }))
	api := &pruning{Cluster: w.As(Function.Name)}
	w.through(api)
	scans := func(after time.Duration) (writes int, reasons []string) {
		w.now = w.now.Add(after)
		api.writes, api.reasons = 0, nil
		for range 5 {
			if _, err := w.scan(t.Context(), snapshot.Request{}); err != nil {
				t.Fatal(err)
			}
			w.now = w.now.Add(10 * time.Second)
		}
		return api.writes, api.reasons
	}
	told := func(reasons []string, reason string) (n int) {
		for _, r := range reasons {
			n += truth(r == reason)
		}
		return n
	}
	writes, reasons := scans(0)
	if writes > 3 || told(reasons, "ConditionsPruned") != 2 || told(reasons, "SuccessfulCreate") != 1 {
		t.Errorf("at first: %d writes, told %v", writes, reasons)
	}
	if writes, reasons = scans(time.Hour); writes != 0 || slices.Contains(reasons, "ConditionsPruned") || slices.Contains(reasons, "SuccessfulCreate") {
		t.Errorf("an hour later: %d writes, told %v", writes, reasons)
	}
	if writes, reasons = scans(24 * time.Hour); writes != 2 || slices.Contains(reasons, "ConditionsPruned") || slices.Contains(reasons, "SuccessfulCreate") {
		t.Errorf("a day later: %d writes, told %v", writes, reasons)
	}
	w.must(t, memory.Patch(w.Server, "", autoscaling.Name, func(ca *autoscaling.ClusterAutoscaler) { ca.Spec.ScaleDown.Enabled = false }))
	if writes, reasons = scans(0); writes != 1 || slices.Contains(reasons, "ConditionsPruned") || told(reasons, "SuccessfulCreate") != 1 {
		t.Errorf("once the settings changed: %d writes, told %v", writes, reasons)
	}
	api.off = true
	scans(24 * time.Hour)
	ca := memory.Get[*autoscaling.ClusterAutoscaler](w.Server, "", autoscaling.Name)
	cm := memory.Get[*corev1.ConfigMap](w.Server, machine.Namespace, machine.ConfigMapStatus)
	if len(ca.Status.Conditions) != 1 || cm.Data[prunedKey] != "" {
		t.Errorf("once they are kept: %v, %q is remembered", ca.Status.Conditions, cm.Data[prunedKey])
	}
}
