// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	drainnode "github.com/machine-functions/machine-functions/functions/drain-node"
	linknode "github.com/machine-functions/machine-functions/functions/link-node"
	provisionmachine "github.com/machine-functions/machine-functions/functions/provision-machine"
	sweepinstances "github.com/machine-functions/machine-functions/functions/sweep-instances"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
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

// A cloud refuses for good to remove what five former attempts left: what a sixth left goes all the same, and people are told what the
// cloud says, but not in each sweep (R-L4, 2b.10).
func TestWhatACloudKeepsHoldsNoSweepUp(t *testing.T) {
	t.Parallel()
	w := NewWorld(provisionmachine.Function, linknode.Function, drainnode.Function, sweepinstances.Function)
	w.Cloud.Ports, w.Cloud.Untokened = 1, true
	lost, kept := map[string]bool{}, map[string]bool{}
	w.Cloud.Fault = func(_ context.Context, c cloud.Call) error {
		if c.Op == cloud.OpCreate && c.After && !lost[c.Ref.Name] {
			lost[c.Ref.Name] = true
			return errors.New("timeout")
		}
		if c.Op == cloud.OpDelete && !c.After && kept[c.Ref.ID] {
			return provider.Errorf(provider.Denied, "volume is in use")
		}
		return nil
	}
	made := func(i int) {
		t.Helper()
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: fmt.Sprintf("alone-%d", i), Labels: map[string]string{machine.LabelCluster: "sim"}}}
		m.Spec.ProviderSpec.Value = rawExtension(fmt.Sprintf(`{"kind":%q,"type":"small"}`, cloud.Kind))
		if err := w.API.Put(m); err != nil {
			t.Fatal(err)
		}
	}
	const machines = 6
	for i := range machines - 1 {
		made(i)
	}
	for range 3 {
		if err := w.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, in := range w.Cloud.Instances() {
		kept[in.ID] = in.Child
	}
	run(t, w, 60)
	made(machines - 1)
	run(t, w, 60)
	told := func() (finds, times int) {
		for _, e := range w.API.Events() {
			if e.Reason == "FailedDelete" && strings.Contains(e.Message, "volume is in use") {
				finds, times = finds+1, times+int(e.Count)
			}
		}
		return finds, times
	}
	_, before := told()
	for range 24 * 12 {
		w.Pass(5 * time.Minute)
		sweep(t, w)
	}
	if n := len(w.Cloud.Instances()); n != 3*machines-1 { // each instance with its port, and what is kept
		t.Errorf("%s after a day: %d: %+v", state(w), n, w.Cloud.Instances())
	}
	if finds, times := told(); finds != machines-1 || times-before > finds*24 {
		t.Errorf("%d of %d refusals are told, %d times in a day", finds, machines-1, times-before)
	}
}
