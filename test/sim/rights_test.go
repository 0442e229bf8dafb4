// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"

	"github.com/machine-functions/machine-functions/test/replay"
)

// beyond is what functions asked in any test of this package, a line each, that config/rbac does not let them: TestMain fails for
// it (RELIABILITY §4).
func beyond(again *replay.Again) (lines []string) {
	for c := range again.Calls() {
		rights, err := replay.ReadRights("../..", c.Function)
		switch {
		case err != nil:
			lines = append(lines, fmt.Sprintf("rights of %s: %v", c.Function, err))
		case !rights.Allow(c) && !c.Foreign():
			lines = append(lines, "not allowed: "+c.String())
		}
	}
	slices.Sort(lines)
	return lines
}
