// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"slices"

	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// similar returns the options among which the Nodes of an opening are balanced: the one that was chosen, with every
// similar one that takes the same Pods, if the settings want balance (SPEC C37–C40).
func (sc *scan) similar(options []*option, best *option, opening scheduling.Opening) []*option {
	if !sc.settings.BalanceSimilarNodeGroups {
		return []*option{best}
	}
	ignored := slices.Concat(scheduling.IgnoredLabels, sc.settings.BalancingIgnoredLabels)
	if sc.settings.IgnorePlatformLabels {
		ignored = append(ignored, scheduling.PlatformLabels...)
	}
	all := []*option{best}
	for i, o := range options {
		if o != best && sc.world.Similar(best.template, o.template, ignored) && sc.placement.Movable(opening, i) {
			all = append(all, o)
		}
	}
	return all
}
