// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// Nodes that somebody takes away need not be ready: the cluster is as well without them, and is scaled (SPEC C3).
func TestNodesThatAreTakenAwayNeedNotBeReady(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		taken bool
		want  int32
	}{{"taken away", true, 5}, {"lost", false, 4}} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.pool(t, "s", 4, 20, nil, nil)
		for i := range 9 {
			n := fmt.Sprint("s-", i)
			w.idler(t, "s", n)
			if i < 4 {
				w.must(t, w.Put(pod("default", "p-"+n, n, resources("cpu", "3"))))
				continue
			}
			w.must(t, memory.Patch(w.Server, "", n, func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }))
			if tt.taken {
				w.must(t, memory.Patch(w.Server, machine.Namespace, n, func(m *machine.Machine) { m.Finalizers = []string{"machine.openshift.io"} }))
				w.must(t, w.Remove("Machine", machine.Namespace, n, memory.Background))
			}
		}
		w.must(t, w.Put(pod("default", "new", "", resources("cpu", "3"))))
		w.pass(t, 20*time.Second)
		if got := w.replicas("s"); got[0] != tt.want {
			t.Errorf("five of nine Nodes %s: replicas %v, want %d", tt.name, got, tt.want)
		}
	}
}
