// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	ofSilent = 80 // Machines whose account never answers: ten times as many as there are places
	ofOther  = 4
	// mostTicks is for what the others need where three functions come to it one after the other, each twice (R-L4).
	mostTicks = 6
)

// halves is a cluster in two accounts, with processes that live on and a clock that goes by itself.
type halves struct {
	*World
	runners []*runner.Runner
}

func newHalves(t *testing.T, silent func(cloud.Op) bool) *halves {
	t.Helper()
	h := &halves{World: NewWorld(Machines.functions()...)}
	h.API = memory.New(time.Now)
	h.Cloud = &cloud.Cloud{Clock: time.Now, Fault: func(ctx context.Context, c cloud.Call) error {
		if c.After || !strings.Contains(c.Account, "east") || !silent(c.Op) {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}}
	for _, f := range h.Functions {
		r := h.Runner(f)
		r.Clock = time.Now
		h.runners = append(h.runners, r)
	}
	for region, n := range map[string]int32{"east": ofSilent, "west": ofOther} {
		set := Set(region, n)
		set.Spec.Template.Spec.ProviderSpec.Value = rawExtension(fmt.Sprintf(`{"kind":%q,"type":"small","region":%q}`, cloud.Kind, region))
		if err := h.API.Put(set); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// tick lets every function scan at once, and waits for the slowest.
func (h *halves) tick(t *testing.T) {
	t.Helper()
	time.Sleep(10 * time.Second)
	h.clock = time.Now()
	if err := h.Kubelets(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, r := range h.runners {
		all.Go(func() { _, _ = r.Handle(t.Context(), snapshot.Request{}) }) // that a cloud is silent is no success
	}
	all.Wait()
}

// within holds that something is so after so many ticks.
func (h *halves) within(t *testing.T, what string, ticks int, so func() bool) {
	t.Helper()
	for n := range ticks {
		if so() {
			t.Logf("%s: after %d ticks", what, n)
			return
		}
		h.tick(t)
	}
	if !so() {
		t.Errorf("%s: not after %d ticks: %s", what, ticks, state(h.World))
	}
}

// of are the Machines of a set.
func (h *halves) of(set string) []*machine.Machine {
	return slices.DeleteFunc(slices.Clone(memory.List[*machine.Machine](h.API)), func(m *machine.Machine) bool { return m.Labels[machine.LabelMachineSet] != set })
}

// running reports whether all Machines of the other account run, and as many as are wanted.
func (h *halves) running() bool {
	all := h.of("west")
	return len(all) == ofOther && !slices.ContainsFunc(all, func(m *machine.Machine) bool {
		return machine.Phase(m) != machine.PhaseRunning || m.DeletionTimestamp != nil
	})
}

// One account is silent for good, whatever it is asked, or about one thing; twenty times as many Machines are of it. Those of the other
// account come, go and are replaced, and what is nobody's there is swept, in as many ticks as if that were not there (R-L4).
func TestSilentAccountHoldsUpNobody(t *testing.T) {
	t.Parallel()
	for what, silent := range map[string]func(cloud.Op) bool{
		"all":      func(cloud.Op) bool { return true },
		"creates":  func(o cloud.Op) bool { return o == cloud.OpCreate },
		"lists":    func(o cloud.Op) bool { return o == cloud.OpList || o == cloud.OpFind },
		"removals": func(o cloud.Op) bool { return o == cloud.OpDelete },
		"types":    func(o cloud.Op) bool { return o == cloud.OpInstanceTypes || o == cloud.OpResolve },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHalves(t, silent)
				h.within(t, "they run", mostTicks, h.running) // claimed, made, linked
				for _, m := range append(h.of("west")[:1:1], h.of("east")...) {
					if err := h.API.Remove("Machine", m.Namespace, m.Name, memory.Background); err != nil {
						t.Fatal(err)
					}
				}
				gone := h.of("west")[0].UID
				h.within(t, "it is gone", mostTicks, func() bool { // drained, removed, let go
					return !slices.ContainsFunc(h.of("west"), func(m *machine.Machine) bool { return m.UID == gone })
				})
				h.within(t, "another one runs", mostTicks, h.running)
				h.Cloud.SetState(h.Cloud.Add(accountOf(t, h.of("west")[0]), "sim", provider.Instance{Name: "nobody", UID: "nobody"}), provider.StateStopped)
				h.within(t, "nobody's is swept", mostTicks, func() bool {
					return !slices.ContainsFunc(h.Cloud.Instances(), func(i provider.Instance) bool { return i.UID == "nobody" })
				})
			})
		})
	}
}

func accountOf(t *testing.T, m *machine.Machine) string {
	t.Helper()
	i, err := machine.ParseIntent(m)
	if err != nil || i == nil {
		t.Fatal(err)
	}
	return i.Account
}
