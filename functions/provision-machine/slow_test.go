// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/clustertest"
	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// slowAccount is the account of slowWorld's Machines.
const slowAccount = memory.Kind + "//" + machine.Namespace + "/"

// slowWorld is a cloud whose calls take their time and always come, unless nobody waits for them, with who provisions in it.
type slowWorld struct {
	cloud *memory.Cloud
	api   *apiserver.Server
	scan  func() plan.Plan
}

func newSlowWorld(t *testing.T, takes map[memory.Op]time.Duration) slowWorld {
	t.Helper()
	w := slowWorld{cloud: &memory.Cloud{}, api: apiserver.New(time.Now)}
	w.cloud.Fault = func(ctx context.Context, c memory.Call) error {
		if c.After {
			return nil
		}
		select {
		case <-time.After(takes[c.Op]):
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	process := w.process(w.api.As(name))
	w.scan = func() plan.Plan {
		p, err := process.Handle(t.Context(), snapshot.Request{})
		if err != nil {
			t.Error(err)
		}
		return p
	}
	return w
}

// process returns one of the function, which finds the API server so.
func (w slowWorld) process(api cluster.Cluster) *runner.Runner {
	r := &runner.Runner{Function: Function, Cluster: api, Log: slog.New(slog.DiscardHandler)}
	r.Clouds = runner.NewClouds([]provider.Provider{w.cloud.Provider()}, nil)
	return r
}

// putGoing puts n deleted Machines whose instances run.
func (w slowWorld) putGoing(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		m := deletedMachine(fmt.Sprintf("goes-%02d", i))
		m.Spec.ProviderID = new("memory:///" + w.cloud.Add(slowAccount, "c", provider.Instance{Name: m.Name, UID: m.UID, State: provider.StateRunning}))
		m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", i)}}
		w.put(t, m)
	}
}

func (w slowWorld) put(t *testing.T, objects ...plan.Object) {
	t.Helper()
	for _, o := range objects {
		if err := w.api.Put(o); err != nil {
			t.Fatal(err)
		}
	}
}

func (w slowWorld) machine(name string) *machine.Machine {
	m, _ := w.api.Object("Machine", machine.Namespace, name).(*machine.Machine)
	return m
}

// slowMachine returns a Machine for which an instance was made.
func slowMachine(name, id, phase string) *machine.Machine {
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: name, UID: types.UID(name), Finalizers: []string{machine.Finalizer}}}
	m.Labels = map[string]string{machine.LabelCluster: "c"}
	m.Spec.ProviderSpec.Value = slowSpec("small")
	i := machine.NewIntent(m, 1, slowAccount, []byte(`{}`)).Released(machine.OutcomeCreated, time.Time{})
	i.Instance = id
	m.Annotations = map[string]string{machine.AnnotationIntent: i.String()}
	m.Spec.ProviderID, m.Status.Phase = new("memory:///"+id), &phase
	return m
}

func slowSpec(of string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":%q,"type":%q}`, memory.Kind, of)}
}

// deletedMachine returns one of an instance that is gone.
func deletedMachine(name string) *machine.Machine {
	m := slowMachine(name, "gone", machine.PhaseDeleting)
	m.DeletionTimestamp = new(metav1.Now())
	m.Status.Conditions = []machine.Condition{machine.True(machine.ConditionDrained, machine.ReasonNoNode, "")}
	return m
}

func unheard(m *machine.Machine) bool {
	c := machine.FindCondition(m.Status.Conditions, machine.ConditionInstanceExists)
	return c != nil && c.Status == corev1.ConditionUnknown
}

// A cloud that answers what a scan asks first, and has no time left in it to answer that again, is not silent: nobody is told so, what
// it shows is not written again and again, and an instance that it does not show is given up (R-S14, B21).
func TestSlowCloudIsNotSilent(t *testing.T) {
	t.Parallel()
	for _, takes := range []struct{ list, find time.Duration }{{8 * time.Second, 0}, {9 * time.Second, 0}, {6 * time.Second, 3 * time.Second}, {5 * time.Second, 5 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			w := newSlowWorld(t, map[memory.Op]time.Duration{memory.OpList: takes.list, memory.OpFind: takes.find})
			healthy := []string{"healthy-0", "healthy-1", "healthy-2"}
			put := func(name, id string) {
				m := slowMachine(name, id, machine.PhaseProvisioned)
				m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.5"}}
				w.put(t, m)
			}
			for _, name := range healthy {
				put(name, w.cloud.Add(slowAccount, "c", provider.Instance{Name: name, UID: types.UID(name), State: provider.StateRunning}))
			}
			put("lost", "gone")
			version, writes := map[string]string{}, 0
			for began := time.Now(); time.Since(began) < 10*time.Minute; time.Sleep(10 * time.Second) {
				w.scan()
				for _, name := range healthy {
					m := w.machine(name)
					if unheard(m) {
						t.Fatalf("a list takes %v, a find %v: nobody knows whether the instance of %s is there", takes.list, takes.find, name)
					}
					if version[name] != m.ResourceVersion {
						writes++
					}
					version[name] = m.ResourceVersion
				}
			}
			if m := w.machine("lost"); phase(m) != machine.PhaseFailed || writes > 2*len(healthy) {
				t.Errorf("a list takes %v, a find %v: after ten minutes the Machine without an instance is %s, and %d versions of others were seen", takes.list, takes.find, phase(m), writes)
			}
		})
	}
}

// A hundred Machines wait for their addresses at a cloud that answers about each within a second: those for whom a scan has no time
// are told nothing (R-L4).
func TestNobodyIsUnknownForWantOfTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, map[memory.Op]time.Duration{memory.OpFind: time.Second})
		names := make([]string, 100)
		for n := range names {
			names[n] = fmt.Sprintf("worker-%03d", n)
			w.put(t, slowMachine(names[n], w.cloud.Add(slowAccount, "c", provider.Instance{Name: names[n], UID: types.UID(names[n]), State: provider.StatePending}), machine.PhaseProvisioning))
		}
		for range 6 {
			w.scan()
			for _, name := range names {
				if m := w.machine(name); unheard(m) {
					t.Fatalf("%s: %+v", name, m.Status.Conditions)
				}
			}
			time.Sleep(10 * time.Second)
		}
	})
}

// A set whose type somebody changes while a scan waits for a slow cloud gets no capacity of the former type (E4).
func TestCapacityIsNotOfTheFormerType(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, map[memory.Op]time.Duration{memory.OpList: 8 * time.Second, memory.OpDelete: 8 * time.Second})
		w.cloud.Types = []provider.InstanceType{{Name: "small", MilliCPU: 2000, Memory: 8 << 30}, {Name: "big", MilliCPU: 64000, Memory: 256 << 30}}
		set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "set", UID: "set"}}
		set.Labels = map[string]string{machine.LabelCluster: "c"}
		set.Spec.Template.Spec.ProviderSpec.Value = slowSpec("small")
		w.put(t, deletedMachine("worker"), set)
		now := func() *machine.MachineSet {
			return w.api.Object("MachineSet", machine.Namespace, "set").(*machine.MachineSet)
		}
		time.AfterFunc(10*time.Second, func() {
			edited := now().DeepCopy()
			edited.Spec.Template.Spec.ProviderSpec.Value = slowSpec("big")
			w.put(t, edited)
		})
		for range 3 {
			w.scan()
			if a := now().Annotations; a[machine.AnnotationCapacityOf] == specOf(snapshot.Snapshot{}, now()) && a[machine.AnnotationVCPU] != "64" {
				t.Errorf("the capacity of a former type is on record: %v", a)
			}
		}
		if a := now().Annotations; a[machine.AnnotationVCPU] != "64" {
			t.Errorf("after three scans: %v", a)
		}
	})
}

// Where a list, a removal and another list take more than a scan has, that the instance is gone ends the deletion all the same: what
// the change answered needs no second list (R-L2). That goes for an instance too that was made for another Machine before.
func TestDeletionEndsAtASlowCloud(t *testing.T) {
	t.Parallel()
	for _, takes := range []struct{ list, removal time.Duration }{{5 * time.Second, 5 * time.Second}, {8 * time.Second, 8 * time.Second}, {9 * time.Second, 6 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			w := newSlowWorld(t, map[memory.Op]time.Duration{memory.OpList: takes.list, memory.OpDelete: takes.removal})
			adopted := deletedMachine("adopted")
			var none *machine.Intent
			i := none.Adopted(adopted, slowAccount, "gone", "former-uid", time.Now())
			adopted.Annotations[machine.AnnotationIntent] = i.String()
			missing := slowMachine("missing", "i-000001", machine.PhaseRunning) // for half a minute more it may be there
			missing.Annotations = nil
			missing.Status.Conditions = []machine.Condition{missingCondition(unfound)}
			missing.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Now().Add(takes.list - time.Minute + 2*time.Second))
			time.AfterFunc(takes.list+time.Second, func() {
				w.cloud.Add(slowAccount, "c", provider.Instance{Name: "missing", UID: "missing", State: provider.StateRunning})
			})
			w.put(t, deletedMachine("worker"), adopted, missing)
			for range 3 {
				w.scan()
			}
			for _, name := range []string{"worker", "adopted"} {
				if w.machine(name) != nil {
					t.Errorf("a list takes %v, a removal %v: Machine %s is there after three scans", takes.list, takes.removal, name)
				}
			}
			if m := w.machine("missing"); phase(m) == machine.PhaseFailed {
				t.Errorf("a list takes %v, a removal %v: a Machine is %s by an answer of before its time was up", takes.list, takes.removal, phase(m))
			}
		})
	}
}

// That a slow cloud does not remove a duplicate is told, though nobody looks there again in the same scan (2b.7).
func TestDuplicateThatStaysIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, map[memory.Op]time.Duration{memory.OpList: 9 * time.Second, memory.OpDelete: 6 * time.Second})
		takes := w.cloud.Fault
		w.cloud.Fault = func(ctx context.Context, c memory.Call) error {
			if err := takes(ctx, c); err != nil || c.After || c.Op != memory.OpDelete {
				return err
			}
			return provider.Errorf(provider.Denied, "not you")
		}
		m := slowMachine("worker", w.cloud.Add(slowAccount, "c", provider.Instance{Name: "worker", UID: "worker", State: provider.StateRunning}), machine.PhaseProvisioned)
		m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.5"}}
		w.cloud.Add(slowAccount, "c", provider.Instance{Name: "worker", UID: "worker", State: provider.StateRunning})
		w.put(t, m)
		var told []plan.Note
		for range 3 { // the first ones write what the instance is like
			told = append(told, w.scan().Notes...)
		}
		if !slices.ContainsFunc(told, func(n plan.Note) bool { return strings.Contains(n.Message, "is not removed: ") }) {
			t.Errorf("told: %+v", told)
		}
	})
}

// A cloud whose list answers and whose question about one instance never does is told of, however little time its list, or the API
// server, leaves for that question (B19).
func TestCloudThatNeverTellsOfOneInstanceIsTold(t *testing.T) {
	t.Parallel()
	for _, takes := range []struct{ api, list time.Duration }{{0, time.Second}, {0, 4 * time.Second}, {3 * time.Second, time.Second}} {
		t.Run(fmt.Sprint(takes), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newSlowWorld(t, map[memory.Op]time.Duration{memory.OpList: takes.list, memory.OpFind: time.Hour})
				m := slowMachine("lost", "gone", machine.PhaseProvisioned)
				m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.9"}}
				w.put(t, m)
				r := &runner.Runner{Function: Function, Cluster: clustertest.SlowReads{Cluster: w.api.As(name), Takes: takes.api}, Log: slog.New(slog.DiscardHandler)}
				r.Clouds = runner.NewClouds([]provider.Provider{w.cloud.Provider()}, nil)
				for range 6 {
					_, _ = r.Handle(t.Context(), snapshot.Request{}) // it may have no time for all that is to be done
					time.Sleep(10 * time.Second)
				}
				if m := w.machine("lost"); !unheard(m) {
					t.Errorf("nobody is told: %+v", m.Status.Conditions)
				}
			})
		})
	}
}

// What a cloud has against a question tells nothing of the spec: a Machine for which nothing was made yet waits until it answers, instead of
// failing for good (B18, B19).
func TestRefusedQuestionFailsNoMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, nil)
		refused := true
		w.cloud.Fault = func(_ context.Context, c memory.Call) error {
			if refused && c.Op == memory.OpFind {
				return provider.Errorf(provider.Invalid, "InvalidAction: the action is not valid for this endpoint")
			}
			return nil
		}
		m := slowMachine("new", "", machine.PhaseProvisioning)
		m.Spec.ProviderID, m.Annotations = nil, nil
		w.put(t, m)
		time.Sleep(2 * Young)
		w.scan()
		if got := w.machine("new"); machine.Phase(got) != machine.PhaseProvisioning || !unheard(got) {
			t.Errorf("%+v", got.Status)
		}
		refused = false
		time.Sleep(time.Minute)
		w.scan()
		if got := w.machine("new"); got.Spec.ProviderID == nil {
			t.Errorf("no instance is made once the cloud answers: %+v", got.Status)
		}
	})
}
