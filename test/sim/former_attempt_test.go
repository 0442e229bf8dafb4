// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	drainnode "github.com/machine-functions/machine-functions/functions/drain-node"
	linknode "github.com/machine-functions/machine-functions/functions/link-node"
	provisionmachine "github.com/machine-functions/machine-functions/functions/provision-machine"
	sweepinstances "github.com/machine-functions/machine-functions/functions/sweep-instances"
	"github.com/machine-functions/machine-functions/shared/machine"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The first step towards every instance makes a port, and its answer is lost: on a cloud without tokens the next attempt makes another.
// The first ports go by the sweep while their Machines live, however many, and nothing else does (R-B12, 2b.10).
func TestWhatUnansweredAttemptsLeftIsSwept(t *testing.T) {
	t.Parallel()
	w := NewWorld(provisionmachine.Function, linknode.Function, drainnode.Function, sweepinstances.Function)
	w.Cloud.Ports, w.Cloud.Untokened = 1, true
	lost := map[string]bool{}
	w.Cloud.Fault = func(_ context.Context, c cloud.Call) error {
		if c.Op == cloud.OpCreate && c.After && !lost[c.Ref.Name] {
			lost[c.Ref.Name] = true
			return errors.New("timeout")
		}
		return nil
	}
	const machines = 5
	for i := range machines {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: fmt.Sprintf("alone-%d", i), Labels: map[string]string{machine.LabelCluster: "sim"}}}
		m.Spec.ProviderSpec.Value = rawExtension(fmt.Sprintf(`{"kind":%q,"type":"small"}`, cloud.Kind))
		if err := w.API.Put(m); err != nil {
			t.Fatal(err)
		}
	}
	run(t, w, 60)
	if n := len(w.Cloud.Instances()); len(lost) != machines || n < 2*machines {
		t.Errorf("%s: %d answers were lost: %+v", state(w), len(lost), w.Cloud.Instances())
	}
	for range 24 {
		w.Pass(time.Hour)
		run(t, w, 2)
	}
	if n := len(w.Cloud.Instances()); n != 2*machines { // each instance with its port
		t.Errorf("%s after a day: %d: %+v", state(w), n, w.Cloud.Instances())
	}
}
