// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"testing"

	"github.com/machine-functions/machine-functions/test/scenario"
)

func TestScenarios(t *testing.T) {
	t.Parallel()
	scenario.Run(t, Function)
}
