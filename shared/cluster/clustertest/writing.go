// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

var writing = []test{
	{"a create gives uid, version, time and generation", createFillsIn},
	{"a create of a name that is taken is ErrExists and changes nothing", createExists},
	{"a create ignores the status", createWithStatus},
	{"a kubelet creates its node with its status", nodeWithStatus},
	{"a create that breaks the rules of metadata is refused", createRefused},
	{"kinds of kubernetes itself refuse finalizers without a domain", unqualifiedFinalizer},
	{"a set without replicas is kept without", replicasLeftOut},
	{"an update writes what differs", updateWrites},
	{"an update that changes nothing writes nothing", emptyUpdate},
	{"an update at an old version is ErrConflict and changes nothing", staleUpdate},
	{"a status update at an old version is ErrConflict", staleStatus},
	{"an update of what is gone is ErrGone", updateGone},
	{"an update of another object of that name is ErrConflict", updateReplaced},
	{"an update leaves the status alone", updateKeepsStatus},
	{"a status update leaves everything else alone", statusKeepsSpec},
	{"the generation counts changes of the spec", generations},
	{"a node has a status of its own", nodeStatus},
	{"labels, annotations and lists lose what an update leaves out", removedFields},
	{"an update that changes a uid is refused", uidImmutable},
	{"raw values come back with sorted keys", rawValues},
	{"times come back in whole seconds", wholeSeconds},
	{"an action on an instance is an error", cloudActions},
}

func createFillsIn(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	if m.UID == "" || m.ResourceVersion == "" || m.CreationTimestamp.IsZero() || m.Generation != 1 {
		t.Errorf("metadata %+v", m.ObjectMeta)
	}
	if again := create(t, h, h.machine("b")); again.UID == m.UID || again.ResourceVersion == m.ResourceVersion {
		t.Errorf("two objects share uid %s or version %s", again.UID, again.ResourceVersion)
	}
}

func createExists(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	other := h.machine("a")
	other.Labels = map[string]string{app: "x"}
	if err := h.Cluster.Apply(t.Context(), plan.Create{Object: other}); !errors.Is(err, cluster.ErrExists) {
		t.Errorf("error %v", err)
	}
	if now := find(t, h, m); now.ResourceVersion != m.ResourceVersion || len(now.Labels) != 0 {
		t.Errorf("became %+v", now.ObjectMeta)
	}
}

func createWithStatus(t *testing.T, h Harness) {
	m := h.machine("a")
	phase := machine.PhaseRunning
	m.Status.Phase = &phase
	if m = create(t, h, m); m.Status.Phase != nil {
		t.Errorf("phase %s", *m.Status.Phase)
	}
	p := h.pod("a", "")
	p.Status.Phase = corev1.PodRunning
	if p = create(t, h, p); p.Status.Phase != corev1.PodPending {
		t.Errorf("phase %s", p.Status.Phase)
	}
}

func nodeWithStatus(t *testing.T, h Harness) {
	n := h.node("a")
	n.Status.NodeInfo.KubeletVersion = "v1.0.0"
	if n = create(t, h, n); n.Status.NodeInfo.KubeletVersion != "v1.0.0" {
		t.Errorf("node info %+v", n.Status.NodeInfo)
	}
}

func createRefused(t *testing.T, h Harness) {
	for what, break_ := range map[string]func(*machine.Machine){
		"name":       func(m *machine.Machine) { m.Name = "A_b" },
		"long name":  func(m *machine.Machine) { m.Name = strings.Repeat("a", 254) },
		"label key":  func(m *machine.Machine) { m.Labels = map[string]string{"a b": ""} },
		"label":      func(m *machine.Machine) { m.Labels = map[string]string{app: "a b"} },
		"annotation": func(m *machine.Machine) { m.Annotations = map[string]string{"": ""} },
		"large":      func(m *machine.Machine) { m.Annotations = map[string]string{"a": strings.Repeat("a", 300_000)} },
		"finalizer":  func(m *machine.Machine) { m.Finalizers = []string{"a b"} },
		"owner":      func(m *machine.Machine) { m.OwnerReferences = []metav1.OwnerReference{{Name: "a"}} },
	} {
		m := h.machine("a")
		break_(m)
		err := h.Cluster.Apply(t.Context(), plan.Create{Object: m})
		if _, ok := errors.AsType[*cluster.RefusedError](err); !ok {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func unqualifiedFinalizer(t *testing.T, h Harness) {
	c := h.configMap("a")
	c.Finalizers = []string{finalizer}
	err := h.Cluster.Apply(t.Context(), plan.Create{Object: c})
	if _, ok := errors.AsType[*cluster.RefusedError](err); !ok {
		t.Errorf("create: %v", err)
	}
	c = create(t, h, h.configMap("a"))
	err = h.Cluster.Apply(t.Context(), edit(c, func(c *corev1.ConfigMap) { c.Finalizers = []string{finalizer} }))
	if _, ok := errors.AsType[*cluster.RefusedError](err); !ok {
		t.Errorf("update: %v", err)
	}
	m := h.machine("a")
	m.Finalizers = []string{finalizer}
	create(t, h, m)
}

func replicasLeftOut(t *testing.T, h Harness) {
	set := create(t, h, h.machineSet("a"))
	if set.Spec.Replicas != nil {
		t.Errorf("replicas are %d, and were left out", *set.Spec.Replicas)
	}
}

func updateWrites(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	id := "kubemark://a"
	n := update(t, h, m, func(m *machine.Machine) {
		m.Spec.ProviderID = &id
		m.Finalizers = []string{finalizer}
		m.Annotations = map[string]string{"a": "b"}
	})
	if n.Spec.ProviderID == nil || *n.Spec.ProviderID != id || len(n.Finalizers) != 1 || n.Annotations["a"] != "b" {
		t.Errorf("became %+v", n)
	}
	if n.UID != m.UID || n.ResourceVersion == m.ResourceVersion {
		t.Errorf("uid %s became %s, version %s became %s", m.UID, n.UID, m.ResourceVersion, n.ResourceVersion)
	}
}

func emptyUpdate(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	n := update(t, h, m, func(m *machine.Machine) { m.Labels = map[string]string{} })
	n = updateStatus(t, h, n, func(*machine.Machine) {})
	if n.ResourceVersion != m.ResourceVersion {
		t.Errorf("version %s became %s", m.ResourceVersion, n.ResourceVersion)
	}
}

func staleUpdate(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	n := update(t, h, m, func(m *machine.Machine) { m.Labels = map[string]string{app: "theirs"} })
	err := h.Cluster.Apply(t.Context(), edit(m, func(m *machine.Machine) { m.Annotations = map[string]string{"ours": ""} }))
	if !errors.Is(err, cluster.ErrConflict) {
		t.Errorf("error %v", err)
	}
	if now := find(t, h, m); now.ResourceVersion != n.ResourceVersion || len(now.Annotations) != 0 {
		t.Errorf("became %+v", now.ObjectMeta)
	}
}

func staleStatus(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	update(t, h, m, func(m *machine.Machine) { m.Labels = map[string]string{app: "theirs"} })
	err := h.Cluster.Apply(t.Context(), editStatus(m, setPhase(machine.PhaseRunning)))
	if !errors.Is(err, cluster.ErrConflict) {
		t.Errorf("error %v", err)
	}
}

func updateGone(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	h.apply(t, plan.Delete{Object: m})
	if err := h.Cluster.Apply(t.Context(), edit(m, func(m *machine.Machine) { m.Labels = map[string]string{app: "x"} })); !errors.Is(err, cluster.ErrGone) {
		t.Errorf("update: %v", err)
	}
	if err := h.Cluster.Apply(t.Context(), editStatus(m, setPhase(machine.PhaseRunning))); !errors.Is(err, cluster.ErrGone) {
		t.Errorf("update of the status: %v", err)
	}
	if exists(t, h, m) {
		t.Error("it is back")
	}
}

func updateReplaced(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	h.apply(t, plan.Delete{Object: m})
	n := create(t, h, h.machine("a"))
	err := h.Cluster.Apply(t.Context(), edit(m, func(m *machine.Machine) { m.Labels = map[string]string{app: "x"} }))
	if !errors.Is(err, cluster.ErrConflict) {
		t.Errorf("error %v", err)
	}
	if now := find(t, h, n); now.ResourceVersion != n.ResourceVersion {
		t.Errorf("became %+v", now.ObjectMeta)
	}
}

func updateKeepsStatus(t *testing.T, h Harness) {
	m := updateStatus(t, h, create(t, h, h.machine("a")), setPhase(machine.PhaseRunning))
	m = update(t, h, m, func(m *machine.Machine) {
		setPhase(machine.PhaseFailed)(m)
		m.Labels = map[string]string{app: "x"}
	})
	if *m.Status.Phase != machine.PhaseRunning || m.Labels[app] != "x" {
		t.Errorf("phase %s, labels %v", *m.Status.Phase, m.Labels)
	}
}

func statusKeepsSpec(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	n := updateStatus(t, h, m, func(m *machine.Machine) {
		setPhase(machine.PhaseRunning)(m)
		id := "kubemark://a"
		m.Spec.ProviderID = &id
		m.Labels = map[string]string{app: "x"}
		m.Finalizers = []string{finalizer}
	})
	if n.Status.Phase == nil || n.Spec.ProviderID != nil || len(n.Labels)+len(n.Finalizers) != 0 {
		t.Errorf("became %+v", n)
	}
}

func generations(t *testing.T, h Harness) {
	set := create(t, h, h.machineSet("a"))
	check := func(what string, want int64) {
		t.Helper()
		if set.Generation != want {
			t.Errorf("%s: generation %d, want %d", what, set.Generation, want)
		}
	}
	check("created", 1)
	three := int32(3)
	set = update(t, h, set, func(s *machine.MachineSet) { s.Spec.Replicas = &three })
	check("spec changed", 2)
	set = update(t, h, set, func(s *machine.MachineSet) { s.Annotations = map[string]string{"a": "b"} })
	check("annotation changed", 2)
	set = updateStatus(t, h, set, func(s *machine.MachineSet) { s.Status.ObservedGeneration = s.Generation })
	check("status changed", 2)
	if set.Status.ObservedGeneration != 2 {
		t.Errorf("observed generation %d", set.Status.ObservedGeneration)
	}
}

func nodeStatus(t *testing.T, h Harness) {
	n := create(t, h, h.node("a"))
	// The server's own controllers write to Nodes too.
	persist := func(action func(*corev1.Node) plan.Action) {
		t.Helper()
		eventually(t, "the node written", func() bool {
			err := h.Cluster.Apply(t.Context(), action(find(t, h, n)))
			if err != nil && !errors.Is(err, cluster.ErrConflict) {
				t.Fatal(err)
			}
			return err == nil
		})
		n = find(t, h, n)
	}
	persist(func(n *corev1.Node) plan.Action {
		return editStatus(n, func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			n.Spec.Unschedulable = true
		})
	})
	if len(n.Status.Conditions) != 1 || n.Spec.Unschedulable {
		t.Errorf("after the status update: %+v %+v", n.Spec, n.Status)
	}
	persist(func(n *corev1.Node) plan.Action {
		return edit(n, func(n *corev1.Node) {
			n.Spec.Unschedulable = true
			n.Status.Conditions = nil
		})
	})
	if len(n.Status.Conditions) == 0 || !n.Spec.Unschedulable {
		t.Errorf("after the update: %+v %+v", n.Spec, n.Status)
	}
}

func removedFields(t *testing.T, h Harness) {
	m := h.machine("a")
	m.Labels = map[string]string{"a": "1", "b": "2"}
	m.Annotations = map[string]string{"a": "1"}
	m.Spec.Taints = []corev1.Taint{{Key: "a", Effect: "NoSchedule"}, {Key: "b", Effect: "NoSchedule"}}
	id := "kubemark://a"
	m.Spec.ProviderID = &id
	m = create(t, h, m)
	m = update(t, h, m, func(m *machine.Machine) {
		delete(m.Labels, "a")
		m.Annotations = nil
		m.Spec.Taints = m.Spec.Taints[1:]
		m.Spec.ProviderID = nil
	})
	if fmt.Sprint(m.Labels) != "map[b:2]" || len(m.Annotations) != 0 || m.Spec.ProviderID != nil {
		t.Errorf("labels %v, annotations %v, provider id %v", m.Labels, m.Annotations, m.Spec.ProviderID)
	}
	if len(m.Spec.Taints) != 1 || m.Spec.Taints[0].Key != "b" {
		t.Errorf("taints %v", m.Spec.Taints)
	}
}

func uidImmutable(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	err := h.Cluster.Apply(t.Context(), edit(m, func(m *machine.Machine) { m.UID = types.UID("another") }))
	if _, ok := errors.AsType[*cluster.RefusedError](err); !ok {
		t.Errorf("error %v", err)
	}
}

func rawValues(t *testing.T, h Harness) {
	m := h.machine("a")
	m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{ "zone": "b", "count": 3, "any": {"y": 1.5, "x": [1, "<"]} }`)}
	m = create(t, h, m)
	if got, want := string(m.Spec.ProviderSpec.Value.Raw), `{"any":{"x":[1,"\u003c"],"y":1.5},"count":3,"zone":"b"}`; got != want {
		t.Errorf("provider spec %s, want %s", got, want)
	}
	m = updateStatus(t, h, m, func(m *machine.Machine) {
		m.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"b":1,"a":2}`)}
	})
	if got, want := string(m.Status.ProviderStatus.Raw), `{"a":2,"b":1}`; got != want {
		t.Errorf("provider status %s, want %s", got, want)
	}
}

func wholeSeconds(t *testing.T, h Harness) {
	at := metav1.NewTime(h.Clock().Truncate(1e9).Add(5e8))
	m := updateStatus(t, h, create(t, h, h.machine("a")), func(m *machine.Machine) { m.Status.LastUpdated = &at })
	if got := m.Status.LastUpdated; got == nil || got.Unix() != at.Unix() || got.Nanosecond() != 0 {
		t.Errorf("wrote %v, read %v", at, got)
	}
}

func cloudActions(t *testing.T, h Harness) {
	for _, a := range []plan.Action{plan.CreateInstance{}, plan.DeleteInstance{}, plan.UpdateInstance{}, plan.PowerCycle{}} {
		if err := h.Cluster.Apply(t.Context(), a); err == nil {
			t.Errorf("%T: no error", a)
		}
	}
	if s := h.observe(t, snapshot.All("Machine")); len(s.Machines) != 0 {
		t.Errorf("machines %v", s.Machines)
	}
}

func setPhase(phase string) func(*machine.Machine) {
	return func(m *machine.Machine) { m.Status.Phase = &phase }
}
