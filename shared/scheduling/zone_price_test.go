// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Who may choose between zones goes to where it costs least: to Nodes that exist or that others need, to room on its own new ones, then
// to the cheapest (SPEC C20, C28). The first by name is only the last resort.
func TestZonesAreChosenByPrice(t *testing.T) {
	t.Parallel()
	zone := func(name, zone, cpu string, price int64) Offer {
		return Offer{Name: name, Node: aNode(name, cpu, "64Gi", inZone(zone)), Price: price, Limit: 9}
	}
	dear := []Offer{zone("a", "a", "4", 1000), zone("b", "b", "4", 10), zone("c", "c", "4", 100)}
	alike := []Offer{zone("a", "a", "4", 10), zone("b", "b", "4", 10), zone("c", "c", "4", 10)}
	web := func(rule func(*corev1.Pod)) *corev1.Pod { return aPod("web", "1", "1Gi", rule) }
	inB := aPod("back", "1", "1Gi", selecting(zoneKey, "b"))
	for _, tt := range []struct {
		name    string
		nodes   []Node
		waiting []*corev1.Pod
		offers  []Offer
		want    string
	}{
		{"one that spreads", nil, several(1, web(spreadBy(zoneKey, 1))), dear, "0 fit, 1 helped by map[b:1], 0 left"},
		{"one that keeps apart", nil, several(1, web(apartBy(zoneKey))), dear, "0 fit, 1 helped by map[b:1], 0 left"},
		{"two that keep apart", nil, several(2, web(apartBy(zoneKey))), dear, "0 fit, 2 helped by map[b:1 c:1], 0 left"},
		{"those that stay together", nil, several(3, web(togetherBy(zoneKey))), dear, "0 fit, 3 helped by map[b:1], 0 left"},
		{"who spreads goes to the dear zone too", nil, several(3, web(spreadBy(zoneKey, 1))), dear, "0 fit, 3 helped by map[a:1 b:1 c:1], 0 left"},
		{"beside others", nil, append(several(2, inB), web(spreadBy(zoneKey, 1))), alike, "0 fit, 3 helped by map[b:1], 0 left"},
		{"beside others, apart", nil, append(several(2, inB), web(apartBy(zoneKey))), alike, "0 fit, 3 helped by map[b:1], 0 left"},
		{"beside others, where new ones are dearer", nil, append(several(2, aPod("back", "1", "1Gi", selecting(zoneKey, "a"))), web(spreadBy(zoneKey, 1))), dear, "0 fit, 3 helped by map[a:1], 0 left"},
		{"not beside whom it does not like", nil, append(several(2, inB), web(apartBy(zoneKey)), aPod("lone", "1", "1Gi", selecting(zoneKey, "b"), away(corev1.LabelHostname, "web"))), alike, "0 fit, 4 helped by map[a:1 b:1], 0 left"},
		{"as many in one zone as may be", nil, several(3, web(spreadBy(zoneKey, 3))), alike, "0 fit, 3 helped by map[a:1], 0 left"},
		{"more than may be in one zone", nil, several(4, web(spreadBy(zoneKey, 3))), alike, "0 fit, 4 helped by map[a:1 b:1], 0 left"},
		{"many go to Nodes that are cheap for many", nil, several(8, web(spreadBy(zoneKey, 9))),
			[]Offer{zone("a", "a", "1", 10), zone("b", "b", "8", 40)}, "0 fit, 8 helped by map[b:1], 0 left"},
		{"one goes to a Node that is cheap for one", nil, several(1, web(spreadBy(zoneKey, 9))),
			[]Offer{zone("b", "a", "8", 40), zone("a", "b", "1", 10)}, "0 fit, 1 helped by map[a:1], 0 left"},
		{"a Node that exists in a dear zone", []Node{aNode("n", "4", "8Gi")}, several(1, web(spreadBy(zoneKey, 1))), dear, "1 fit, 0 helped by map[], 0 left"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := outcome(NewWorld(tt.nodes, tt.waiting, nil).Place(tt.waiting, tt.offers)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
