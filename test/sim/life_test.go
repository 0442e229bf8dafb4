// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	drainnode "github.com/machine-functions/machine-functions/functions/drain-node"
	linknode "github.com/machine-functions/machine-functions/functions/link-node"
	provisionmachine "github.com/machine-functions/machine-functions/functions/provision-machine"
	scalemachineset "github.com/machine-functions/machine-functions/functions/scale-machineset"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
)

func machineLayer() *World {
	return NewWorld(scalemachineset.Function, provisionmachine.Function, linknode.Function, drainnode.Function)
}

// settle ticks until a tick writes nothing and changes nothing in the cloud, and fails if that takes more than limit ticks.
func settle(t *testing.T, w *World, limit int) {
	t.Helper()
	for range limit {
		before, cloud := len(w.API.Writes()), len(w.Cloud.History())
		if err := w.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(w.API.Writes()) == before && len(w.Cloud.History()) == cloud {
			return
		}
	}
	var last []string
	for _, wr := range w.API.Writes() {
		last = append(last, wr.String())
	}
	t.Fatalf("still writing after %d ticks:\n%s", limit, strings.Join(last[max(0, len(last)-20):], "\n"))
}

// run ticks n times, because waiting is quiet, then holds that the world has settled.
func run(t *testing.T, w *World, n int) {
	t.Helper()
	for range n {
		if err := w.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, w, 1)
}

// state is what a person would see: phases of the Machines, Nodes, instances with their children.
func state(w *World) string {
	phases := map[string]int{}
	for _, m := range memory.List[*machine.Machine](w.API) {
		p := ""
		if m.Status.Phase != nil {
			p = *m.Status.Phase
		}
		phases[p]++
	}
	return fmt.Sprintf("machines %v nodes %d instances %d", phases, len(memory.List[*corev1.Node](w.API)), len(w.Cloud.Instances()))
}

// A cloud calls its region and its zone what no label can be: the Machine lives and goes like any other (E20, R-S2, R-L2).
func TestLifeInAZoneThatIsNoLabel(t *testing.T) {
	t.Parallel()
	w := machineLayer()
	set := Set("worker", 2)
	set.Spec.Template.Spec.ProviderSpec.Value = rawExtension(fmt.Sprintf(`{"kind":%q,"type":"small","region":"東京","zone":"Data Center 1"}`, cloud.Kind))
	if err := w.API.Put(set); err != nil {
		t.Fatal(err)
	}
	settle(t, w, 12)
	if got, want := state(w), "machines map[Running:2] nodes 2 instances 2"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	for _, m := range memory.List[*machine.Machine](w.API) {
		if zone, region := machine.Word(m, machine.LabelZone), machine.Word(m, machine.LabelRegion); zone != "Data Center 1" || region != "東京" {
			t.Errorf("%s is in zone %q of region %q", m.Name, zone, region)
		}
	}
	if err := w.API.Scale(machine.Namespace, "worker", 0); err != nil {
		t.Fatal(err)
	}
	settle(t, w, 12)
	if got, want := state(w), "machines map[] nodes 0 instances 0"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
}

// The whole life in one process after another: up, down, replaced by hand, gone (S12, S26, S78; R-L1, R-S14).
func TestLifeOfASet(t *testing.T) {
	t.Parallel()
	w := machineLayer()
	if err := w.API.Put(Set("worker", 3)); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		do   func() error
		want string
	}{
		{"up to three", func() error { return nil }, "machines map[Running:3] nodes 3 instances 3"},
		{"down to one", func() error { return w.API.Scale(machine.Namespace, "worker", 1) }, "machines map[Running:1] nodes 1 instances 1"},
		{"one deleted by hand", func() error {
			m := memory.List[*machine.Machine](w.API)[0]
			return w.API.Remove("Machine", m.Namespace, m.Name, memory.Background)
		}, "machines map[Running:1] nodes 1 instances 1"},
		{"the set deleted", func() error {
			return w.API.Remove("MachineSet", machine.Namespace, "worker", memory.Background)
		}, "machines map[] nodes 0 instances 0"},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		settle(t, w, 12)
		if got := state(w); got != step.want {
			t.Fatalf("%s: %s, want %s", step.name, got, step.want)
		}
	}
	created := 0
	for _, e := range w.Cloud.History() {
		if e.What == cloud.Created {
			created++
		}
	}
	if created != 4 {
		t.Errorf("%d instances were ever made, want 4", created)
	}
}

// The same on a cloud that works in steps, lags, and gives no tokens.
func TestLifeOnASlowCloud(t *testing.T) {
	t.Parallel()
	w := machineLayer()
	w.Cloud.Untokened, w.Cloud.Ports, w.Cloud.Lag = true, 2, 15*time.Second
	w.Cloud.Boot, w.Cloud.Removal = time.Minute, time.Minute
	if err := w.API.Put(Set("worker", 2)); err != nil {
		t.Fatal(err)
	}
	run(t, w, 20)
	if got, want := state(w), "machines map[Running:2] nodes 2 instances 6"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	if err := w.API.Scale(machine.Namespace, "worker", 0); err != nil {
		t.Fatal(err)
	}
	run(t, w, 30)
	if got, want := state(w), "machines map[] nodes 0 instances 0"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	deleted := 0 // told once by every Machine, though each of those scans was a process that remembers nothing (B68)
	for _, e := range w.API.Events() {
		if e.Reason == "Delete" {
			deleted += int(e.Count)
		}
	}
	if deleted != 2 {
		t.Errorf("two Machines told %d times that they are deleted", deleted)
	}
}

// A set is emptied while no read of the cloud shows the instance that was just made: its Machine stays until that is gone (2b.9).
func TestMachineThatGoesAtOnceLeavesNothing(t *testing.T) {
	t.Parallel()
	w := machineLayer()
	w.Cloud.Lag = 2 * time.Minute
	if err := w.API.Put(Set("worker", 1)); err != nil {
		t.Fatal(err)
	}
	machines := func() []*machine.Machine {
		if err := w.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		return memory.List[*machine.Machine](w.API)
	}
	for len(w.Cloud.Instances()) == 0 {
		machines()
	}
	if err := w.API.Scale(machine.Namespace, "worker", 0); err != nil {
		t.Fatal(err)
	}
	for rounds := 0; len(machines()) > 0; rounds++ {
		if rounds == 30 {
			t.Fatalf("%s after %d rounds", state(w), rounds)
		}
	}
	if left := w.Cloud.Instances(); len(left) > 0 {
		t.Errorf("the Machine is gone, its instance %s is %s", left[0].ID, left[0].State)
	}
}

// A cloud that works in steps refuses after some of them: what the refused attempt made is removed before the next one
// makes it anew, without any sweep, so that a quota of ports is never used up by attempts (R-B12, RELIABILITY 2b.8).
func TestRefusedAttemptLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, untokened := range []bool{false, true} {
		t.Run(fmt.Sprintf("untokened=%v", untokened), func(t *testing.T) {
			t.Parallel()
			const ports, refusals = 2, 7 // of which the sixth is one too many
			w := machineLayer()
			w.Cloud.Untokened, w.Cloud.Ports = untokened, ports
			var refused atomic.Int32
			w.Cloud.Fault = func(_ context.Context, c cloud.Call) error {
				if c.Op == cloud.OpCreate && !c.After && strings.Count(string(c.Ref.Progress), ",") == ports-1 && refused.Load() < refusals {
					refused.Add(1)
					return provider.Errorf(provider.Exhausted, "no host has room")
				}
				return nil
			}
			if err := w.API.Put(Set("worker", 1)); err != nil {
				t.Fatal(err)
			}
			for range 6 * 15 {
				if err := w.Tick(t.Context()); err != nil {
					t.Fatal(err)
				}
				if n := len(w.Cloud.Instances()); n > 1+ports {
					t.Fatalf("%s after %d refusals: those of former attempts are left", state(w), refused.Load())
				}
			}
			if got, want := state(w), "machines map[Running:1] nodes 1 instances 3"; got != want || refused.Load() != refusals {
				t.Errorf("%s after %d refusals, want %s after %d", got, refused.Load(), want, refusals)
			}
		})
	}
}

// retag has the only Machine ask for the tag team=b alone.
func retag(t *testing.T, w *World) {
	t.Helper()
	m := memory.List[*machine.Machine](w.API)[0]
	if err := memory.Patch(w.API, m.Namespace, m.Name, func(m *machine.Machine) {
		m.Spec.ProviderSpec.Value = rawExtension(fmt.Sprintf(`{"kind":%q,"type":"small","tags":{"team":"b"}}`, cloud.Kind))
	}); err != nil {
		t.Fatal(err)
	}
}

// Tags that are changed on a Machine that runs come to its instance, in one call; tags of others stay (E1, B20).
func TestTagsFollowTheSpec(t *testing.T) {
	t.Parallel()
	w := machineLayer()
	var updates atomic.Int32
	w.Cloud.Fault = func(_ context.Context, c cloud.Call) error {
		if c.Op == cloud.OpUpdate && !c.After {
			updates.Add(1)
		}
		return nil
	}
	set := Set("worker", 1)
	set.Spec.Template.Spec.ProviderSpec.Value = rawExtension(fmt.Sprintf(`{"kind":%q,"type":"small","tags":{"team":"a","keep":"1"}}`, cloud.Kind))
	if err := w.API.Put(set); err != nil {
		t.Fatal(err)
	}
	settle(t, w, 12)
	retag(t, w)
	run(t, w, 3)
	want := map[string]string{"team": "b", "keep": "1"}
	if in := w.Cloud.Instances(); len(in) != 1 || !maps.Equal(in[0].Tags, want) {
		t.Errorf("instances %+v, want one with the tags %v", in, want)
	}
	if n := updates.Load(); n != 1 {
		t.Errorf("%d calls, want one", n)
	}
}

// A process freezes just before it asks the cloud to remove what a refused attempt left. Nobody begins the next attempt before its
// claim ends: what is removed late is known by the Machine's tag, which the next instance would carry too (RELIABILITY 2b.2).
func TestFrozenCleanUpRemovesNoInstance(t *testing.T) {
	t.Parallel()
	w := machineLayer()
	w.Cloud.Ports = 1
	var refused, frozen atomic.Bool
	w.Cloud.Fault = func(_ context.Context, c cloud.Call) error {
		switch {
		case c.After:
		case c.Op == cloud.OpCreate && len(c.Ref.Progress) > 0 && !refused.Swap(true):
			return provider.Errorf(provider.NotFound, "what was made is gone")
		case c.Op == cloud.OpDelete && !frozen.Swap(true):
			for range 4 { // others go on meanwhile
				if err := w.Tick(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
		return nil
	}
	if err := w.API.Put(Set("worker", 1)); err != nil {
		t.Fatal(err)
	}
	run(t, w, 30)
	if got, want := state(w), "machines map[Running:1] nodes 1 instances 2"; got != want || !frozen.Load() {
		t.Errorf("%s, want %s", got, want)
	}
	for _, e := range w.Cloud.History() {
		if e.What == cloud.Deleted && !e.Child {
			t.Errorf("instance %s was removed", e.ID)
		}
	}
}
