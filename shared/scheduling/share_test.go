// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"testing"
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
