// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Two revisions of an app are spread by one rule, which counts the Pods of both: what one leaves uneven the other evens out
// (SPEC C20, C26).
func TestRevisionsAreSpreadTogether(t *testing.T) {
	t.Parallel()
	var offers []Offer
	for _, z := range []string{"a", "b", "c"} {
		offers = append(offers, offersOf(9, aNode(z, "1", "8Gi", inZone(z)))...)
	}
	waiting := several(4, aPod("web", "1", "1Gi", spreadBy(zoneKey, 1)))
	for _, p := range several(4, waiting[0]) {
		p.Spec.Containers[0].Resources.Requests = resources("1", "2Gi")
		waiting = append(waiting, p)
	}
	p := NewWorld(nil, waiting, nil).Place(waiting, offers)
	if got := outcome(p); len(p.Shapes) != 2 || got != "0 fit, 8 helped by map[a:3 b:3 c:2], 0 left" {
		t.Errorf("%d shapes: %s", len(p.Shapes), got)
	}
}

// The place that a spread constraint leaves is the more important Pod's, whatever the digits of the priorities say as text: what is
// to come of another one stands only against Pods that come after it (SPEC C9).
func TestSpreadServesTheHigherPriority(t *testing.T) {
	t.Parallel()
	offers := append(offersOf(9, aNode("small", "4", "16Gi")), Offer{Name: "big", Node: aNode("big", "8", "64Gi"), Price: 20, Limit: 9})
	for _, tt := range []struct {
		high, low int32
		want      string
	}{{1000, 0, "big"}, {9, 10, "small"}, {10, 9, "big"}, {0, -10, "big"}} {
		high := aPod("web", "7", "1Gi", spreadBy(zoneKey, 1))
		low := aPod("web", "3", "1Gi", spreadBy(zoneKey, 1))
		low.Name, high.Spec.Priority, low.Spec.Priority = "low", &tt.high, &tt.low
		waiting := []*corev1.Pod{high, low}
		full := aNode("n", "1", "1Gi", inZone("b"))
		p := NewWorld([]Node{full}, waiting, nil).Place(waiting, offers)
		if got, want := outcome(p), "0 fit, 1 helped by map["+tt.want+":1], 1 left"; got != want {
			t.Errorf("7 cores at %d, 3 cores at %d: %s, want %s", tt.high, tt.low, got, want)
		}
	}
}
