// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster/clustertest"
	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// Machines whose Nodes were silent before they were drained go with the scan, which reads all Nodes once for all of them, as their hosts may
// be other Nodes by now; one whose Node fell silent as its instance went goes with the event. No event reads all Nodes.
func TestEventsOfDeletedMachinesReadNoOtherNodes(t *testing.T) {
	t.Parallel()
	const nodes, deleted = 300, 60
	for _, c := range []struct{ gone, ordinary bool }{{false, false}, {true, false}, {true, true}} {
		gone := c.gone
		synctest.Test(t, func(t *testing.T) {
			api := apiserver.New(time.Now)
			cloud := &memory.Cloud{}
			for k := range nodes {
				name := fmt.Sprintf("worker-%04d", k)
				id := "gone-" + name
				if !gone {
					id = cloud.Add(slowAccount, "c", provider.Instance{Name: name, UID: types.UID(name), State: provider.StateRunning})
				}
				n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name)}}
				n.Spec.ProviderID, n.Spec.Unschedulable = "memory:///"+id, k < deleted
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.Now()}}
				if err := api.Put(n); err != nil {
					t.Fatal(err)
				}
				m := slowMachine(name, id, machine.PhaseRunning)
				if k < deleted {
					m.DeletionTimestamp = new(metav1.Now())
					m.Status.Phase = new(machine.PhaseDeleting)
					drained := machine.NodeDrained(n.UID)
					drained.LastTransitionTime = metav1.NewTime(time.Now().Add(time.Second))
					if c.ordinary {
						drained.LastTransitionTime = metav1.NewTime(time.Now().Add(-time.Minute))
					}
					m.Status.Conditions = []machine.Condition{drained}
				}
				m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.%d.%d", k/250, k%250)}}
				m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: name, UID: n.UID}
				if err := api.Put(m); err != nil {
					t.Fatal(err)
				}
			}
			count := &clustertest.NodeLists{Cluster: api.As(name)}
			r := &runner.Runner{Function: Function, Cluster: count, Log: slog.New(slog.DiscardHandler)}
			r.Clouds = runner.NewClouds([]provider.Provider{cloud.Provider()}, nil)
			left := func() (n int) {
				for k := range deleted {
					if api.Object("Machine", machine.Namespace, fmt.Sprintf("worker-%04d", k)) != nil {
						n++
					}
				}
				return n
			}
			versions := map[string]string{}
			events := func() {
				for range 5 {
					for k := range deleted {
						name := fmt.Sprintf("worker-%04d", k)
						m, _ := api.Object("Machine", machine.Namespace, name).(*machine.Machine)
						if m == nil || versions[name] == m.ResourceVersion {
							continue
						}
						versions[name] = m.ResourceVersion
						if _, err := r.Handle(t.Context(), snapshot.Request{Kind: "Machine", Namespace: machine.Namespace, Name: name}); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(2 * time.Second)
				}
			}
			events()
			if n := left(); c.ordinary != (n == 0) || !c.ordinary && n != deleted {
				t.Errorf("%+v: the events leave %d of %d Machines", c, n, deleted)
			}
			for range 6 {
				if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
					t.Fatal(err)
				}
				events()
			}
			if n := left(); n > 0 || count.ByEvents > 0 {
				t.Errorf("%+v: %d of %d Machines are left, events list all Nodes %d times", c, n, deleted, count.ByEvents)
			}
		})
	}
}

// What the attempt of a deleted Machine made may run, with Pods on it, and not be on record: an event looks for it too before it
// goes (R-S8). Where that is on record, or nothing was made, the cloud is not asked for it.
func TestWhatIsNotCompleteIsLookedForBeforeItGoes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name             string
		outcome          string
		unanswered, made bool
		looks            bool
	}{
		{"a lost answer", "", false, false, true},
		{"midway", machine.OutcomePartial, false, true, true},
		{"a lost answer midway", machine.OutcomePartial, true, true, true},
		{"refused midway", machine.OutcomeRefused, false, true, true},
		{"refused", machine.OutcomeRefused, false, false, false},
		{"not sent", machine.OutcomePartial, false, false, false},
	} {
		m := slowMachine("worker-a", "", machine.PhaseDeleting)
		m.Spec.ProviderID, m.DeletionTimestamp = nil, new(metav1.Now())
		m.Status.Conditions = []machine.Condition{machine.True(machine.ConditionDrained, machine.ReasonNoNode, "")}
		i := machine.NewIntent(m, 1, slowAccount, []byte("{}"))
		i.StartedAt, i.Outcome = metav1.Now(), tt.outcome
		if tt.unanswered {
			i.Unanswered = new(metav1.Now())
		}
		if tt.made {
			i.Progress = []byte("p")
		}
		m.Annotations = map[string]string{machine.AnnotationIntent: i.String()}
		s := snapshot.Snapshot{Now: time.Now(), Machines: []*machine.Machine{m}, Request: snapshot.Request{Kind: "Machine", Namespace: m.Namespace, Name: m.Name}}
		if l, asks := lookupOf(s, m); !asks || l.Open == tt.looks {
			t.Errorf("%s: asked %v, lookup %+v", tt.name, asks, l)
		}
	}
}

// A host that is power-cycled is its Machine's all the while: beside a Node that is linked no event reads the other Machines, Ready or not.
func TestEventsOfAPowerCycleReadNoOtherMachines(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"restart-takes-the-node-of-a-host-that-is-off", "restart-is-over-when-the-node-is-back"} {
		s, _, err := scenario.Load("testdata/" + file + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		m, n := s.World.Machines[0], s.World.Nodes[0]
		m.Status.NodeRef.UID = n.UID
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(s.World.Now)}}
		s.World.Request = snapshot.Request{Kind: "Machine", Namespace: m.Namespace, Name: m.Name}
		seen, _, err := scenario.Observe(Function, s)
		if err != nil {
			t.Fatal(err)
		}
		if node := snapshot.One("Node", "", n.Name); !seen.Has(node) || seen.Has(snapshot.All("Machine")) || seen.Has(snapshot.All("Node")) {
			t.Errorf("%s: the Node is read: %v, all Machines: %v, all Nodes: %v", file, seen.Has(node), seen.Has(snapshot.All("Machine")), seen.Has(snapshot.All("Node")))
		}
	}
}
