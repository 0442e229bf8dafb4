// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
)

// One call of the last step is not answered, the next is refused for good: the Machine is Failed. What the attempt made before goes once
// nothing of the lost answer can surface (R-B12).
func TestFailedAfterALostAnswerKeepsNothing(t *testing.T) {
	t.Parallel()
	w := machineLayer()
	w.Cloud.Ports = 2
	calls := 0
	w.Cloud.Fault = func(_ context.Context, c cloud.Call) error {
		if c.Op == cloud.OpCreate && !c.After && strings.Count(string(c.Ref.Progress), ",") == 1 {
			if calls++; calls == 1 {
				return errors.New("timeout")
			}
			return provider.Errorf(provider.Invalid, "the image is of another architecture")
		}
		return nil
	}
	if err := w.API.Put(Set("worker", 1)); err != nil {
		t.Fatal(err)
	}
	for range 6 * 30 {
		if err := w.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	all := memory.List[*machine.Machine](w.API)
	if len(all) != 1 || machine.Phase(all[0]) != machine.PhaseFailed {
		t.Errorf("%s: nothing failed", state(w))
	}
	if left := w.Cloud.Instances(); len(left) > 0 {
		t.Errorf("%s: after half an hour there is left of a Machine that is Failed: %+v", state(w), left)
	}
}
