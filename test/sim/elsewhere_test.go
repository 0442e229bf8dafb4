// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	drainnode "github.com/machine-functions/machine-functions/functions/drain-node"
	linknode "github.com/machine-functions/machine-functions/functions/link-node"
	provisionmachine "github.com/machine-functions/machine-functions/functions/provision-machine"
	sweepinstances "github.com/machine-functions/machine-functions/functions/sweep-instances"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A region has no room after two ports were made there; somebody edits the Machine to another region, where it runs. What was made in the
// first one goes by the sweep, while the Machine lives, and nothing else does (2b.8, 2b.10).
func TestWhatIsLeftInAnotherRegionIsSwept(t *testing.T) {
	t.Parallel()
	w := NewWorld(provisionmachine.Function, linknode.Function, drainnode.Function, sweepinstances.Function)
	w.Cloud.Ports = 2
	w.Cloud.Fault = func(_ context.Context, c cloud.Call) error {
		if c.Op == cloud.OpCreate && !c.After && strings.Contains(fmt.Sprint(c), "east") && strings.Count(string(c.Ref.Progress), ",") == 1 {
			return provider.Errorf(provider.Exhausted, "no host has room in the east")
		}
		return nil
	}
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "alone", Labels: map[string]string{machine.LabelCluster: "sim"}}}
	m.Spec.ProviderSpec.Value = rawExtension(fmt.Sprintf(`{"kind":%q,"type":"small","region":"east"}`, cloud.Kind))
	if err := w.API.Put(m); err != nil {
		t.Fatal(err)
	}
	run(t, w, 12)
	if err := memory.Patch(w.API, machine.Namespace, "alone", func(m *machine.Machine) {
		m.Generation++
		m.Spec.ProviderSpec.Value = rawExtension(fmt.Sprintf(`{"kind":%q,"type":"small","region":"west"}`, cloud.Kind))
	}); err != nil {
		t.Fatal(err)
	}
	run(t, w, 60)
	for range 24 * 3 { // three days
		w.Pass(time.Hour)
		run(t, w, 2)
	}
	if n := len(w.Cloud.Instances()); n != 3 { // the instance and its two ports
		t.Errorf("%s after three days: %+v", state(w), w.Cloud.Instances())
	}
	if got := memory.List[*machine.Machine](w.API); len(got) != 1 || machine.Phase(got[0]) != machine.PhaseRunning && machine.Phase(got[0]) != machine.PhaseProvisioned {
		t.Errorf("the Machine: %+v", got)
	}
}
