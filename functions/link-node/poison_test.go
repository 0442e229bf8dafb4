// SPDX-License-Identifier: Apache-2.0

package linknode

import (
	"testing"

	"github.com/machine-functions/machine-functions/test/scenario"
)

func TestPoisonIsOfOneObject(t *testing.T) {
	t.Parallel()
	scenario.Poison(t, Function, "testdata")
}
