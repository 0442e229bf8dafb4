// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// A kubelet writes what it likes on its Node: of that nothing becomes a label but what can be a reason (SPEC C66).
func TestReasonsThatAreNoneAreOthers(t *testing.T) {
	t.Parallel()
	m, _ := measured(t, autoscales)
	of := func(name, why string) *corev1.Node {
		n := &corev1.Node{}
		n.Name, n.Annotations = name, map[string]string{machine.AnnotationScaleDownReason: why}
		return n
	}
	m.Invoked(scan("Node", of("a", "NoPlaceToMovePods: pod x/y"), of("b", "password is hunter2: no"), of("c", strings.Repeat("A", 100_000))))
	want(t, m, "cluster_autoscaler_unremovable_nodes_count", `{reason="NoPlaceToMovePods"} 1`, `{reason="other"} 2`)
}

// Who may write Machines makes no scrape larger than a name is long: a provider id of a megabyte is told in its beginning.
func TestLabelsAreShort(t *testing.T) {
	t.Parallel()
	m, _ := measured(t, provisions)
	long, usual := running("long"), running("usual")
	long.Spec.ProviderID = new("cloud://" + strings.Repeat("ü", 1<<20))
	usual.Spec.ProviderID = new("azure:///subscriptions/" + strings.Repeat("s", 700))
	m.Invoked(scan("Machine", long, usual))
	const name = "mapi_machine_created_timestamp_seconds"
	if got := series(t, m, name); len(got) > 4<<10 || !strings.Contains(got, `"cloud://üü`) || !strings.Contains(got, *usual.Spec.ProviderID+`"`) {
		t.Errorf("%d bytes: %.300s", len(got), got)
	}
	if families := parsed(t, m); len(families[name].GetMetric()) != 2 {
		t.Errorf("Prometheus reads %v", families[name])
	}
}
