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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A cloud that does not answer any more, with a dozen sets whose prices are followed, keeps nobody from seeing within one scan that
// an instance in another cloud is gone; and it is asked for its types by one scan in a minute (R-L4, R-S12, E4).
func TestSilentCloudHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var silent atomic.Bool
		var asked atomic.Int32
		cloud := &memory.Cloud{Types: []provider.InstanceType{{Name: "small", MilliCPU: 2000, Memory: 8 << 30}}}
		cloud.Fault = func(ctx context.Context, c memory.Call) error {
			if c.After || !silent.Load() || !strings.Contains(c.Account, "/east/") {
				return nil
			}
			if c.Op == memory.OpInstanceTypes {
				asked.Add(1)
			}
			<-ctx.Done()
			return ctx.Err()
		}
		api := apiserver.New(time.Now)
		spec := func(region string) *runtime.RawExtension {
			return &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":%q,"type":"small","region":%q}`, memory.Kind, region)}
		}
		for i := range 12 {
			name := fmt.Sprintf("set-%02d", i)
			set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: name, UID: types.UID(name)}}
			set.Labels = map[string]string{machine.LabelCluster: "c"}
			set.Spec.Template.Spec.ProviderSpec.Value = spec("east")
			if err := api.Put(set); err != nil {
				t.Fatal(err)
			}
		}
		put := func(region, id string) {
			m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: region, UID: types.UID(region), Finalizers: []string{machine.Finalizer}}}
			m.Labels = map[string]string{machine.LabelCluster: "c"}
			m.Spec.ProviderSpec.Value, m.Spec.ProviderID = spec(region), new("memory:///"+id)
			m.Status.Phase = new(machine.PhaseProvisioned)
			m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.5"}}
			if err := api.Put(m); err != nil {
				t.Fatal(err)
			}
		}
		put("east", cloud.Add(memory.Kind+"/east/"+machine.Namespace+"/", "c", provider.Instance{Name: "east", UID: "east", State: provider.StateRunning}))
		process := &runner.Runner{Function: Function, Cluster: api.As(name), Log: slog.New(slog.DiscardHandler)}
		process.Clouds = runner.NewClouds([]provider.Provider{cloud.Provider()}, nil)
		scan := func() {
			if _, err := process.Handle(t.Context(), snapshot.Request{}); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Second)
		}
		scan()
		put("west", "gone")
		silent.Store(true)
		time.Sleep(time.Hour)
		scan()
		if m := api.Object("Machine", machine.Namespace, "west").(*machine.Machine); !missed(m) {
			t.Errorf("after one scan nobody knows that the instance is gone: %+v", m.Status.Conditions)
		}
		scan()
		if n := asked.Load(); n != 1 {
			t.Errorf("two scans ask for the types %d times", n)
		}
	})
}

// While a cloud does not answer, a Machine in another one whose instance is gone goes within two minutes: the list does not show the
// instance any more, and its removal is asked for once again to have that confirmed (R-L2, R-L4). Ones that wait there for their
// addresses are asked about one by one, and take no more time.
func TestDeletionEndsBesideASilentCloud(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cloud := &memory.Cloud{}
		cloud.Fault = func(ctx context.Context, c memory.Call) error {
			if c.After || strings.Contains(c.Account, "/west/") {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		api := apiserver.New(time.Now)
		put := func(name, region string, phase string) {
			m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: name, UID: types.UID(name), Finalizers: []string{machine.Finalizer}}}
			m.Labels = map[string]string{machine.LabelCluster: "c"}
			m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":%q,"type":"small","region":%q}`, memory.Kind, region)}
			i := machine.NewIntent(m, 1, memory.Kind+"/"+region+"/"+machine.Namespace+"/", []byte(`{}`)).Released(machine.OutcomeCreated, time.Time{})
			i.Instance = "i-" + name
			m.Annotations = map[string]string{machine.AnnotationIntent: i.String()}
			m.Spec.ProviderID, m.Status.Phase = new("memory:///i-"+name), &phase
			if phase == machine.PhaseDeleting {
				m.DeletionTimestamp = new(metav1.NewTime(time.Now()))
				m.Status.Conditions = machine.SetCondition(nil, machine.True(machine.ConditionDrained, machine.ReasonNoNode, ""), time.Now())
			} else if region == "east" {
				m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.5"}}
			}
			if err := api.Put(m); err != nil {
				t.Fatal(err)
			}
		}
		put("listed", "east", machine.PhaseProvisioned)
		for i := range 20 {
			put(fmt.Sprintf("waits-%02d", i), "north", machine.PhaseProvisioned)
		}
		put("west", "west", machine.PhaseDeleting)
		process := &runner.Runner{Function: Function, Cluster: api.As(name), Log: slog.New(slog.DiscardHandler)}
		process.Clouds = runner.NewClouds([]provider.Provider{cloud.Provider()}, nil)
		for began := time.Now(); time.Since(began) < 2*time.Minute; time.Sleep(10 * time.Second) {
			if _, err := process.Handle(t.Context(), snapshot.Request{}); err != nil {
				t.Error(err)
			}
		}
		if api.Object("Machine", machine.Namespace, "west") != nil {
			t.Error("the Machine whose instance is gone is there after two minutes")
		}
	})
}

// Where the list comes, or the account is asked too often already, no deletion that failed costs it a question of its own, and new Machines
// do not wait for such (R-L4).
func TestDeletionsThatFailedAreInTheList(t *testing.T) {
	t.Parallel()
	for of, throttled := range map[string]memory.Op{"deletions": memory.OpDelete, "lists": memory.OpList} {
		synctest.Test(t, func(t *testing.T) {
			w := newSlowWorld(t, nil)
			var finds atomic.Int32
			w.cloud.Fault = func(_ context.Context, c memory.Call) error {
				if c.Op == memory.OpFind && !c.After {
					finds.Add(1)
				}
				if c.Op == throttled {
					return provider.Errorf(provider.Throttled, "RequestLimitExceeded")
				}
				return nil
			}
			w.putGoing(t, 20)
			for range 30 {
				w.scan()
				time.Sleep(10 * time.Second)
			}
			if m := w.machine("goes-00"); m == nil || m.Status.ErrorReason == nil {
				t.Errorf("throttled %s: nothing failed: %+v", of, m)
			}
			if n := finds.Load(); n > 0 {
				t.Errorf("throttled %s: %d instances were asked for by themselves", of, n)
			}
		})
	}
}

// A cloud whose list does not come, while it answers about one instance, keeps no deletion that only the scan may end: what failed is taken
// up again without the list (R-L2, R-L4).
func TestDeletionEndsWithoutAList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, map[memory.Op]time.Duration{memory.OpList: time.Hour})
		adopted, renamed := deletedMachine("adopted"), deletedMachine("renamed")
		var none *machine.Intent
		i := none.Adopted(adopted, slowAccount, "gone", "former-uid", time.Now())
		adopted.Annotations[machine.AnnotationIntent] = i.String()
		former := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "former", UID: "node-1"}, Spec: corev1.NodeSpec{ProviderID: "memory:///gone", Unschedulable: true}}
		w.put(t, former)
		former, _ = w.api.Object("Node", "", "former").(*corev1.Node)
		renamed.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: "former", UID: former.UID}
		renamed.Status.Conditions = []machine.Condition{machine.NodeDrained(former.UID), machine.False(machine.ConditionSoleNode, "", "", "")}
		living := slowMachine("living", "i-1", machine.PhaseProvisioned)
		living.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.5"}}
		w.cloud.Removal = 5 * time.Minute
		goes := deletedMachine("goes")
		goes.Spec.ProviderID = new("memory:///" + w.cloud.Add(slowAccount, "c", provider.Instance{Name: "goes", UID: "goes", State: provider.StateRunning}))
		w.put(t, adopted, renamed, goes, living)
		there := map[string]int{} // in how many scans
		writes, version := 0, ""
		for range 40 {
			w.scan()
			for _, name := range []string{"adopted", "renamed", "goes"} {
				if w.machine(name) != nil {
					there[name]++
				}
			}
			if m := w.machine("goes"); m != nil && m.ResourceVersion != version {
				writes, version = writes+1, m.ResourceVersion
			}
			time.Sleep(10 * time.Second)
		}
		if there["adopted"] > 4 || there["renamed"] > 4 || there["goes"] == 40 || writes > 6 {
			t.Errorf("of 40 scans so many find the Machines: %v; that whose instance takes a while changes in %d of them", there, writes)
		}
		if m := w.machine("living"); m == nil || phase(m) == machine.PhaseFailed || missed(m) {
			t.Errorf("of a Machine is known without a list that its instance is gone: %+v", m)
		}
	})
}

// Once a cloud answers again nothing says of a deleted Machine, which waits for what may surface, that the cloud cannot be asked, and it goes
// as soon as beside one that always answered (R-L2).
func TestDeletionAfterAnOutageIsNotLate(t *testing.T) {
	t.Parallel()
	for what, fails := range map[string]func(memory.Call) bool{
		"everything":   func(memory.Call) bool { return true },
		"the list":     func(c memory.Call) bool { return c.Op == memory.OpList },
		"the deletion": func(c memory.Call) bool { return c.Op == memory.OpDelete },
	} {
		for k := range 8 {
			t.Run(fmt.Sprintf("%s fails/%d", what, k), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { deletedInAnOutage(t, fmt.Sprintf("lost-%d", k), fails) })
			})
		}
	}
}

func deletedInAnOutage(t *testing.T, name string, fails func(memory.Call) bool) {
	t.Helper()
	w := newSlowWorld(t, nil)
	w.cloud.Window = 10 * time.Minute
	began := time.Now()
	w.cloud.Fault = func(_ context.Context, c memory.Call) error {
		if time.Since(began) < time.Minute && fails(c) {
			return provider.Errorf(provider.Unknown, "503 service unavailable")
		}
		return nil
	}
	m := deletedMachine(name)
	m.Spec.ProviderID = nil
	i := machine.NewIntent(m, 1, slowAccount, []byte(`{}`))
	i.StartedAt = metav1.NewTime(began)
	m.Annotations[machine.AnnotationIntent] = i.String()
	w.put(t, m)
	for w.machine(name) != nil && time.Since(began) < 11*time.Minute {
		w.scan()
		is := w.machine(name)
		if is != nil && is.Status.ErrorMessage != nil && time.Since(began) > 2*time.Minute {
			t.Fatalf("%v after the outage: %s", time.Since(began)-time.Minute, *is.Status.ErrorMessage)
		}
		time.Sleep(10 * time.Second)
	}
	if w.machine(name) != nil {
		t.Errorf("%s is there a minute after nothing can surface any more", name)
	}
}
