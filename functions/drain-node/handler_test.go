// SPDX-License-Identifier: Apache-2.0

package drainnode

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

func TestScenarios(t *testing.T) {
	t.Parallel()
	scenario.Run(t, Function)
}

func TestProperties(t *testing.T) {
	t.Parallel()
	scenario.Properties(t, Function)
}

func TestEveryMachineHasItsTurn(t *testing.T) {
	t.Parallel()
	var s snapshot.Snapshot
	for i := range 3 * maxDrains {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("worker-%03d", i), DeletionTimestamp: &metav1.Time{}, Finalizers: []string{machine.Finalizer}}}
		s.Add(m)
	}
	seen := map[string]bool{}
	for i := range 100 {
		s.Invocation = fmt.Sprint(i)
		turn := due(s)
		if len(turn) != maxDrains {
			t.Fatalf("%d machines in one scan, want %d", len(turn), maxDrains)
		}
		for _, m := range turn {
			seen[m.Name] = true
		}
	}
	if len(seen) != 3*maxDrains {
		t.Errorf("%d of %d machines had their turn in 100 scans", len(seen), 3*maxDrains)
	}
}

// Ten Pods whose eviction a webhook denies hold up nobody: others are asked for every time (R-L4).
func TestEveryPodHasItsTurn(t *testing.T) {
	t.Parallel()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}}
	var s snapshot.Snapshot
	s.Add(n)
	for i := range 3 * maxEvictions {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("web-%02d", i), Namespace: "default", UID: types.UID(fmt.Sprint("pod-", i))}
		s.Add(&corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: n.Name}})
	}
	seen := map[string]bool{}
	for i := range 100 {
		s.Invocation = fmt.Sprint(i)
		turn := evictionOf(s, n, nil).now()
		if len(turn) != maxEvictions {
			t.Fatalf("%d pods in one invocation, want %d", len(turn), maxEvictions)
		}
		for _, seq := range turn {
			if a, ok := seq.Do[0].(plan.Evict); ok {
				seen[a.Pod.Name] = true
			}
		}
	}
	if len(seen) != 3*maxEvictions {
		t.Errorf("%d of %d pods had their turn in 100 invocations", len(seen), 3*maxEvictions)
	}
}
