// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// An instance may be under the cluster's other id. Where the account of that cannot be opened, that it is not under the first
// proves nothing: a deleted Machine keeps its finalizer, a living one is not Failed (R-S2, R-S12, 2b.4).
func TestNobodyKnowsWithoutTheOtherClusterID(t *testing.T) {
	t.Parallel()
	for _, req := range []snapshot.Request{{}, {Kind: "Machine", Namespace: machine.Namespace, Name: "w"}} {
		for _, deleted := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				cloud := &memory.Cloud{}
				p := cloud.Provider()
				asked, open := 0, p.Open
				p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
					if a.ClusterID == "c-x7f2k" {
						asked++
						return nil, errors.New("the cloud's login is currently unable to handle the request")
					}
					return open(ctx, a)
				}
				infra := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: machine.InfrastructureName}}
				infra.Status.InfrastructureName = "c-x7f2k"
				id := cloud.Add(memory.Kind+"//"+machine.Namespace+"/", "c-x7f2k", provider.Instance{Name: "w", UID: "w", State: provider.StateRunning})
				m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "w", UID: "w", Finalizers: []string{machine.Finalizer}}}
				m.Labels = map[string]string{machine.LabelCluster: "c"}
				m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":%q,"type":"small"}`, memory.Kind)}
				m.Spec.ProviderID = new("memory:///" + id)
				m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.5"}}
				m.Status.Phase = new(machine.PhaseProvisioned)
				if deleted {
					m.DeletionTimestamp = new(metav1.Now())
					m.Status.Phase = new(machine.PhaseDeleting)
					m.Status.Conditions = []machine.Condition{machine.True(machine.ConditionDrained, machine.ReasonNoNode, "")}
				}
				api := apiserver.New(time.Now)
				for _, o := range []plan.Object{m, infra} {
					if err := api.Put(o); err != nil {
						t.Fatal(err)
					}
				}
				process := &runner.Runner{Function: Function, Cluster: api.As(name), Log: slog.New(slog.DiscardHandler), Order: func(int) int { return 0 }}
				process.Clouds = runner.NewClouds([]provider.Provider{p}, nil)
				_, _ = process.Handle(t.Context(), req) // whether it is repeated is another matter
				is, there := api.Object("Machine", machine.Namespace, "w").(*machine.Machine)
				if !there || len(is.Finalizers) == 0 || missed(is) || phase(is) == machine.PhaseFailed || asked == 0 && (deleted || req.Scan()) {
					t.Errorf("%v, deleted %v: %+v with %d instances, the other account was opened %d times", req, deleted, is, len(cloud.Instances()), asked)
				}
			})
		}
	}
}

// What our own record tells of an instance was made under the Machine's label: an Infrastructure that has another name by now is asked about
// nothing of it. What is left of the instance goes before the finalizer, and a list that leaves it out makes nobody Failed
// (2b.9, R-S2, R-S15).
func TestRecordedInstanceIsUnderItsOwnClusterID(t *testing.T) {
	t.Parallel()
	for _, left := range []string{"a port", "what no look shows", "what no list shows"} {
		for _, req := range []snapshot.Request{{}, {Kind: "Machine", Namespace: machine.Namespace, Name: "w"}} {
			synctest.Test(t, func(t *testing.T) {
				const key = memory.Kind + "//" + machine.Namespace + "/"
				cloud := &memory.Cloud{Removal: 5 * time.Second}
				cloud.Shown = func(_ context.Context, c memory.Call, all []provider.Instance) []provider.Instance {
					if left == "what no look shows" || left == "what no list shows" && c.Op == memory.OpList {
						return nil
					}
					return all
				}
				id := cloud.Add(key, "c", provider.Instance{Name: "w", UID: "w", State: provider.StateRunning})
				if left == "a port" {
					cloud.Vanish(id)
					cloud.Add(key, "c", provider.Instance{Name: "w-port", UID: "w", Child: true})
				}
				m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "w", UID: "w", Finalizers: []string{machine.Finalizer}}}
				m.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
				m.Labels = map[string]string{machine.LabelCluster: "c"}
				m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":%q,"type":"small"}`, memory.Kind)}
				i := machine.NewIntent(m, 1, key, []byte(`{"type":"small"}`)).In(m, "c")
				i.StartedAt, i.Instance = m.CreationTimestamp, id
				m.Annotations = map[string]string{machine.AnnotationIntent: i.Released(machine.OutcomeCreated, time.Time{}).String()}
				m.Spec.ProviderID, m.Status.Phase = new("memory:///"+id), new(machine.PhaseProvisioned)
				m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.5"}}
				living := left == "what no list shows"
				if !living {
					m.DeletionTimestamp, m.Status.Phase = new(metav1.Now()), new(machine.PhaseDeleting)
					m.Status.Conditions = []machine.Condition{machine.True(machine.ConditionDrained, machine.ReasonNoNode, "")}
				}
				infra := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: machine.InfrastructureName}}
				infra.Status.InfrastructureName = "c-x7f2k"
				api := apiserver.New(time.Now)
				for _, o := range []plan.Object{m, infra} {
					if err := api.Put(o); err != nil {
						t.Fatal(err)
					}
				}
				process := &runner.Runner{Function: Function, Cluster: api.As(name), Log: slog.New(slog.DiscardHandler), Order: func(int) int { return 0 }}
				process.Clouds = runner.NewClouds([]provider.Provider{cloud.Provider()}, nil)
				for range 15 {
					_, _ = process.Handle(t.Context(), req) // it is repeated
					time.Sleep(10 * time.Second)
				}
				is, there := api.Object("Machine", machine.Namespace, "w").(*machine.Machine)
				switch n := len(cloud.Instances()); {
				case living && (n != 1 || phase(is) != machine.PhaseProvisioned):
					t.Errorf("%s, %v: %d instances, %+v", left, req, n, is.Status)
				case !living && (n > 0 || there && len(is.Finalizers) > 0):
					t.Errorf("%s, %v: %d instances are left, the Machine is there: %v", left, req, n, there)
				}
			})
		}
	}
}
