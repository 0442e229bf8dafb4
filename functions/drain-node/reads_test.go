// SPDX-License-Identifier: Apache-2.0

package drainnode

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
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Machines of a zone that is silent are deleted at once: the events about them read no Nodes but their own, and end no drain, as their
// hosts may be other Nodes by now. The scan reads all Nodes once for all of them.
func TestEventsOfSilentMachinesReadNoOtherNodes(t *testing.T) {
	t.Parallel()
	const nodes, deleted, pods = 500, 100, 3
	synctest.Test(t, func(t *testing.T) {
		api := apiserver.New(time.Now)
		put := func(o plan.Object) {
			if err := api.Put(o); err != nil {
				t.Fatal(err)
			}
		}
		for k := range nodes {
			name := fmt.Sprintf("worker-%04d", k)
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name)}}
			n.Spec.ProviderID = "kubemark://" + name
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			if k < deleted {
				n.Status.Conditions[0].Status = corev1.ConditionUnknown
				for p := range pods {
					pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("pod-%s-%d", name, p), UID: types.UID(fmt.Sprintf("pod-%s-%d", name, p))}}
					pod.Spec.NodeName, pod.Status.Phase = name, corev1.PodRunning
					put(pod)
				}
			}
			put(n)
			m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: name, UID: types.UID("machine-" + name), Finalizers: []string{machine.Finalizer}}}
			if k < deleted {
				m.DeletionTimestamp = new(metav1.Now())
			}
			m.Spec.ProviderID = new("kubemark://" + name)
			m.Status.Phase = new(machine.PhaseRunning)
			m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: name, UID: n.UID}
			put(m)
		}
		c := &clustertest.NodeLists{Cluster: api.As("drain-node")}
		r := &runner.Runner{Function: Function, Cluster: c, Log: slog.New(slog.DiscardHandler)}
		drained := func() (n int) {
			for k := range deleted {
				if m, _ := api.Object("Machine", machine.Namespace, fmt.Sprintf("worker-%04d", k)).(*machine.Machine); machine.Drained(m) {
					n++
				}
			}
			return n
		}
		versions := map[string]string{}
		for range 20 { // each change of a Machine is an event about it
			for k := range deleted {
				name := fmt.Sprintf("worker-%04d", k)
				m, _ := api.Object("Machine", machine.Namespace, name).(*machine.Machine)
				if m.ResourceVersion == versions[name] {
					continue
				}
				versions[name] = m.ResourceVersion
				if _, err := r.Handle(t.Context(), snapshot.Request{Kind: "Machine", Namespace: machine.Namespace, Name: name}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
		}
		for k := range deleted { // once more, now that the Pods are gone
			name := fmt.Sprintf("worker-%04d", k)
			if _, err := r.Handle(t.Context(), snapshot.Request{Kind: "Machine", Namespace: machine.Namespace, Name: name}); err != nil {
				t.Fatal(err)
			}
		}
		if n := drained(); c.ByScans+c.ByEvents > 0 || n > 0 {
			t.Errorf("the events list all Nodes %d times, and end %d drains", c.ByScans+c.ByEvents, n)
		}
		const scans = deleted / maxDrains
		for range scans {
			if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
				t.Fatal(err)
			}
		}
		if n := drained(); n != deleted || c.ByScans+c.ByEvents > 2*scans { // each looks again at what it has done
			t.Errorf("%d scans list all Nodes %d times, and end %d of %d drains", scans, c.ByScans+c.ByEvents, n, deleted)
		}
	})
}
