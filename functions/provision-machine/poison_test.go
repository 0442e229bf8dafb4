// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// poison panics where a driver is called.
func poison() { panic("nil map in a cloud's answer") }

// poisonWorld is an API server with a process that scans it.
type poisonWorld struct {
	t       *testing.T
	api     *apiserver.Server
	process *runner.Runner
}

func newPoisonWorld(t *testing.T, p provider.Provider) *poisonWorld {
	t.Helper()
	w := &poisonWorld{t: t, api: apiserver.New(time.Now)}
	w.process = &runner.Runner{Function: Function, Cluster: w.api.As(name), Log: slog.New(slog.DiscardHandler)}
	w.process.Clouds = runner.NewClouds([]provider.Provider{p}, nil)
	return w
}

// put adds a Machine. One with a phase records an instance that is not there.
func (w *poisonWorld) put(name, region, phase string) {
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: name, UID: types.UID(name), Finalizers: []string{machine.Finalizer}}}
	m.Labels = map[string]string{machine.LabelCluster: "c"}
	m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":%q,"type":"small","region":%q}`, memory.Kind, region)}
	if phase != "" {
		i := machine.NewIntent(m, 1, memory.Kind+"/"+region+"/"+machine.Namespace+"/", []byte(`{}`)).Released(machine.OutcomeCreated, time.Time{})
		i.Instance = "i-" + name
		m.Annotations = map[string]string{machine.AnnotationIntent: i.String()}
		m.Spec.ProviderID, m.Status.Phase = new("memory:///i-"+name), &phase
	}
	if phase == machine.PhaseDeleting {
		m.DeletionTimestamp = new(metav1.NewTime(time.Now()))
		m.Status.Conditions = machine.SetCondition(nil, machine.True(machine.ConditionDrained, machine.ReasonNoNode, ""), time.Now())
	}
	if err := w.api.Put(m); err != nil {
		w.t.Fatal(err)
	}
}

func (w *poisonWorld) machine(name string) *machine.Machine {
	m, _ := w.api.Object("Machine", machine.Namespace, name).(*machine.Machine)
	return m
}

// scan is one that does not end by a panic.
func (w *poisonWorld) scan() {
	w.t.Helper()
	defer func() {
		if v := recover(); v != nil {
			w.t.Fatalf("the scan ends: %.200v", v)
		}
	}()
	_, _ = w.process.Handle(w.t.Context(), snapshot.Request{})
	time.Sleep(10 * time.Second)
}

// A driver panics about one Machine's instance, or when it is opened for one account. Machines of another account, and of the first
// others of the same, whose instances are gone, go all the same; and the one is told so (2c, R-L4).
func TestPoisonDelaysNoOther(t *testing.T) {
	t.Parallel()
	for what, opens := range map[string]bool{"find": true, "open": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cloud := &memory.Cloud{}
				cloud.Fault = func(_ context.Context, c memory.Call) error {
					if !c.After && c.Op == memory.OpFind && c.Ref.Name == "poison" {
						poison()
					}
					return nil
				}
				p := cloud.Provider()
				p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
					if !opens && a.Region == "east" {
						poison()
					}
					return cloud.Open(ctx, a)
				}
				w := newPoisonWorld(t, p)
				w.put("poison", "east", machine.PhaseProvisioned)
				w.put("east", "east", machine.PhaseDeleting)
				w.put("west", "west", machine.PhaseDeleting)
				for range 12 {
					w.scan()
				}
				if w.machine("west") != nil {
					t.Error("the Machine in the other account is there after two minutes")
				}
				if opens && w.machine("east") != nil {
					t.Error("the other Machine of the same account is there after two minutes")
				}
				if c := machine.FindCondition(w.machine("poison").Status.Conditions, machine.ConditionInstanceExists); c == nil || !strings.Contains(c.Message, what) || !strings.Contains(c.Message, "panicked: nil map") {
					t.Errorf("the Machine is told %+v", c)
				}
			})
		})
	}
}

// A driver panics when it has made an instance: what became of the creates beside it is recorded in the same scan, and the one is
// looked for, and found, and not made twice (R-B02, R-B03, R-S1).
func TestPoisonAfterACreateIsAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	for _, untokened := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var panics, creates atomic.Int32 // calls come from several goroutines
			cloud := &memory.Cloud{Untokened: untokened, Lag: 30 * time.Second}
			cloud.Fault = func(_ context.Context, c memory.Call) error {
				if c.Op == memory.OpCreate && c.Ref.Name == "poison" {
					if !c.After {
						creates.Add(1)
					} else if panics.CompareAndSwap(0, 1) {
						poison()
					}
				}
				return nil
			}
			w := newPoisonWorld(t, cloud.Provider())
			all := []string{"a", "b", "poison", "y", "z"}
			for _, name := range all {
				w.put(name, "east", "")
			}
			for scans := 0; panics.Load() == 0 && scans < 12; scans++ {
				w.scan()
			}
			if m := w.machine("poison"); panics.Load() != 1 || m.Spec.ProviderID != nil || phase(m) == machine.PhaseFailed {
				t.Errorf("after %d panics the Machine has %v and is %s", panics.Load(), m.Spec.ProviderID, phase(m))
			}
			for _, name := range all {
				if w.machine(name).Spec.ProviderID == nil && name != "poison" {
					t.Errorf("without tokens %v: nobody recorded the instance of %s", untokened, name)
				}
			}
			for range 30 {
				w.scan()
			}
			owners := map[types.UID]int{}
			for _, in := range cloud.Instances() {
				owners[in.UID]++
			}
			if m := w.machine("poison"); m.Spec.ProviderID == nil || owners[m.UID] != 1 || len(owners) != len(all) || untokened && creates.Load() != 1 {
				t.Errorf("without tokens %v: recorded %v, instances %v, %d creates", untokened, m.Spec.ProviderID, owners, creates.Load())
			}
		})
	}
}

func TestPoisonIsOfOneObject(t *testing.T) {
	t.Parallel()
	scenario.Poison(t, Function, "testdata")
}
