// SPDX-License-Identifier: Apache-2.0

package drainnode

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
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
