// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// explain tells Pods that nothing is done for them, with the reason of every group (SPEC C34). It says so only in a
// scan that does not grow anything.
func (sc *scan) explain() {
	refusals := map[string]int{}
	total := sc.total()
	for _, g := range sc.groups {
		if why := sc.refusal(g, total); why != "" {
			refusals[why]++
		}
	}
	told := 0
	for i, shape := range sc.placement.Shapes {
		from := len(shape.Pods) - sc.placement.Left[i] - sc.placement.Helped[i]
		if from == len(shape.Pods) {
			continue
		}
		reasons := maps.Clone(refusals)
		for k := range sc.options {
			why := sc.placement.Why(i, k)
			switch {
			case why == "" && sc.full():
				why = "max total nodes in cluster reached"
			case why == "": // an empty Node would take it, its place among the others forbids it
				why = scheduling.ReasonSpread
			}
			reasons[why]++
		}
		message := "pod didn't trigger scale-up: " + counted(reasons)
		for _, p := range shape.Pods[from:] {
			if !waits(p) {
				continue
			}
			if told++; told > maxTold {
				return
			}
			sc.notes = append(sc.notes, plan.Normal(p, "NotTriggerScaleUp", message).From(source))
		}
	}
}

// counted renders reasons with how many groups gave each, the most frequent first.
func counted(reasons map[string]int) string {
	if len(reasons) == 0 {
		return "no node group can be resized"
	}
	keys := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b))
	})
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = fmt.Sprintf("%d %s", reasons[k], k)
	}
	return strings.Join(parts, ", ")
}
