// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
)

// The instance of a sick Machine can be held off: its Node goes while the instance is off, never while it runs, comes back
// with what it carried, and the Machine stays. Three copies of every function run at once, and a quarter of what switches
// power is lost, before its effect or after it; power is lost once all the same (E36, D17, R-S11).
func TestRestart(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := clinic(t, 3, check("40%", map[string]string{machine.AnnotationSteps: "power-cycle=60m,replace"}))
			w.Cloud.Hold = 15 * time.Second
			sick := memory.List[*corev1.Node](w.API)[0]
			if err := memory.Patch(w.API, "", sick.Name, func(n *corev1.Node) { n.Labels["rack"], n.Annotations["owner"] = "b12", "team-a" }); err != nil {
				t.Fatal(err)
			}
			uid := machineOf(w, sick.Name).UID
			off := loseSwitches(w, rand.New(rand.NewPCG(seed, 1))) //nolint:gosec // a test that can be repeated
			strike(t, w, 1, corev1.ConditionUnknown)
			went := time.Time{}
			for range 6 * 20 {
				storm(t.Context(), w)
				if went.IsZero() && !there(w, sick.UID) {
					went = w.Now()
				}
			}
			w.Cloud.Fault = nil
			settle(t, w, 30)
			if went.IsZero() || off().IsZero() || went.Before(off().Add(w.Cloud.Hold)) {
				t.Errorf("the Node went at %v, the instance was held off at %v", went, off())
			}
			if n := cycled(w, uid); n != 1 || deletions(w) != 0 || running(w) != 3 {
				t.Errorf("power-cycled %d times; %d Machines deleted; %s", n, deletions(w), state(w))
			}
			for _, n := range memory.List[*corev1.Node](w.API) {
				if n.Name == sick.Name && (n.Labels["rack"] != "b12" || n.Annotations["owner"] != "team-a") {
					t.Errorf("the Node is back as %v %v", n.Labels, n.Annotations)
				}
			}
			m := machineOf(w, sick.Name)
			for _, left := range []string{machine.AnnotationExternalRepair, machine.AnnotationRemediatedBy, machine.AnnotationPoweredOff, machine.AnnotationNodeLabels, machine.AnnotationNodeAnnotations} {
				if text, is := m.Annotations[left]; is {
					t.Errorf("%s is left with %s: %s", m.Name, left, text)
				}
			}
		})
	}
}

// loseSwitches lets a quarter of the calls that switch power fail, and returns when power was first cut.
func loseSwitches(w *World, r *rand.Rand) (off func() time.Time) {
	var mu sync.Mutex
	var cut time.Time
	w.Cloud.Fault = func(_ context.Context, c cloud.Call) error {
		mu.Lock()
		defer mu.Unlock()
		if c.Op == cloud.OpPowerOff && c.After && cut.IsZero() {
			cut = w.Now()
		}
		if (c.Op == cloud.OpPowerOff || c.Op == cloud.OpPowerOn) && r.IntN(8) == 0 {
			return errors.New("connection reset by peer")
		}
		return nil
	}
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return cut
	}
}

func machineOf(w *World, node string) *machine.Machine {
	all := memory.List[*machine.Machine](w.API)
	return all[slices.IndexFunc(all, func(m *machine.Machine) bool { return m.Status.NodeRef != nil && m.Status.NodeRef.Name == node })]
}

func there(w *World, node types.UID) bool {
	return slices.ContainsFunc(memory.List[*corev1.Node](w.API), func(n *corev1.Node) bool { return n.UID == node })
}
