// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// However much a cloud says of each failure, and of how many sets: what is remembered of them and told has room in the ConfigMap
// (SPEC C49, C77).
func TestManyFailuresHaveRoom(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	said := "UnauthorizedOperation: not authorized. Encoded authorization failure message: " + strings.Repeat("ä\"", 2000)
	const sets = 100
	for i := range sets {
		name := fmt.Sprintf("general-purpose-%03d", i)
		w.set(t, name, 1, 9, midsize(), nil)
		s := memory.Get[*machine.MachineSet](w.Server, machine.Namespace, name)
		m := &machine.Machine{}
		m.Namespace, m.Name, m.UID, m.CreationTimestamp = machine.Namespace, name+"-x", types.UID("machine-"+name), metav1.NewTime(epoch.Add(-time.Minute))
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s, machineSetKind)}
		m.Status.Phase, m.Status.ErrorMessage = new(machine.PhaseFailed), &said
		w.must(t, w.Put(m))
	}
	w.scans(t, 2)
	cm := memory.Get[*corev1.ConfigMap](w.Server, machine.Namespace, machine.ConfigMapStatus)
	state, status := len(cm.Data[autoscaling.StateKey]), len(cm.Data[autoscaling.StatusKey])
	if strings.Count(cm.Data[autoscaling.StateKey], "UnauthorizedOperation: not authorized") != sets {
		t.Error("not all failures are remembered")
	}
	if (state+status)*500/sets > 3<<18 { // a ConfigMap holds a megabyte
		t.Errorf("of %d sets: state %d, status %d bytes", sets, state, status)
	}
}
