// SPDX-License-Identifier: Apache-2.0

package guards

// moves lets Pods leave their hosts and zones only for where they have a place, and buys nothing for them meanwhile (RELIABILITY 2d).
var moves = []Guard{
	{"who-goes-after-knows-who-left-its-domain", "2d", "shared/scheduling/move.go", ` && !m.meetsAny(i, m.moves.away)`, ``, "./shared/scheduling -run=TestPodsLeave"},
	{"who-leaves-its-domain-knows-who-moved", "2d", "shared/scheduling/elsewhere.go", `m.meetsAny(i, m.moves.to) {`, `i < 0 {`, "./shared/scheduling -run=TestPodsLeave"},
	{"who-is-never-planned-for-does-not-leave", "2d", "shared/scheduling/elsewhere.go", `m.moved[i].never`, `i < 0`, "./shared/scheduling -run=TestPodsLeave"},
	{"as-many-hosts-as-there-must-be", "2d", "shared/scheduling/elsewhere.go", `	if s.minDomains > 1 {`, `	if false {`, "./shared/scheduling -run=TestPodsLeave"},
	{"scheduler-is-asked-where-who-leaves-may-go", "2d", "shared/scheduling/elsewhere.go", `return q.Refused(at) == "" })`, `return q.Refused(at) != "\n" })`, "./shared/scheduling -run=TestPodsLeave"},
	{"new-hosts-that-are-full-hold-others-down", "2d", "shared/scheduling/skew.go", `l.takes(shape, p)+k.maxSkew)`, `math.MaxInt32)`, "./shared/scheduling -run=TestPlace$"},
	{"drained-node-holds-no-spread-down", "2d", autoscale + "look.go", `Gone: gone, `, `Gone: gone && false, `, "./functions/evaluate-autoscale -run=TestIdleNodes"},
	{"late-node-holds-a-spread-down", "2d", autoscale + "look.go", ` && (r.Committed == nil || sc.Now.Before(r.Committed.Add(maxDeletion)))`, ``, "./functions/evaluate-autoscale -run=TestDrainedNodes"},
	{"empty-node-holds-a-spread-down", "2d", autoscale + "look.go", `	return r != nil && r.Drain && (`, `	return r != nil && (`, "./functions/evaluate-autoscale -run=TestDrainedNodes"},
}
