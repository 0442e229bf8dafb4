// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// The addresses that move between the Nodes are told to the driver, unless they are of somebody's load balancer (E14).
func TestDriverIsToldTheVirtualIPs(t *testing.T) {
	t.Parallel()
	status := configv1.OpenStackPlatformStatus{
		APIServerInternalIP: "10.0.0.5", APIServerInternalIPs: []string{"10.0.0.5", "fd00::5"}, IngressIPs: []string{"10.0.0.7"}, //nolint:staticcheck // the older form is read too
	}
	theirs := status
	theirs.LoadBalancer = &configv1.OpenStackPlatformLoadBalancer{Type: configv1.LoadBalancerTypeUserManaged}
	for _, c := range []struct {
		name   string
		status *configv1.PlatformStatus
		want   string
	}{
		{"of the cluster", &configv1.PlatformStatus{OpenStack: &status}, "10.0.0.5 10.0.0.7 fd00::5"},
		{"of somebody's load balancer", &configv1.PlatformStatus{OpenStack: &theirs}, ""},
		{"of oVirt's", &configv1.PlatformStatus{Ovirt: &configv1.OvirtPlatformStatus{APIServerInternalIPs: []string{"10.0.0.5"}, IngressIPs: []string{"10.0.0.7"}}}, "10.0.0.5 10.0.0.7"},
		{"another platform", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			api := apiserver.New(time.Now)
			m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "worker-0", UID: "worker-0"}}
			m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":%q,"type":"small"}`, memory.Kind)}
			i := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: machine.InfrastructureName}}
			i.Status.InfrastructureName, i.Status.PlatformStatus = "c", c.status
			if err := api.Put(m); err != nil {
				t.Fatal(err)
			}
			if err := api.Put(i); err != nil {
				t.Fatal(err)
			}
			told := "nothing was opened"
			p := (&memory.Cloud{}).Provider()
			open := p.Open
			p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
				told = strings.Join(a.VirtualIPs, " ")
				return open(ctx, a)
			}
			r := testRunner(function.Function{
				Name: "look",
				Reads: func(s snapshot.Snapshot) snapshot.Scope {
					sc := snapshot.Scope{Objects: []snapshot.Query{snapshot.All("Machine"), snapshot.All("Infrastructure")}}
					for _, m := range s.Machines {
						sc.Lookups = append(sc.Lookups, snapshot.Lookup{UID: m.UID})
					}
					return sc
				},
				Decide: func(snapshot.Snapshot) plan.Plan { return plan.Plan{} },
			}, api.As("look"))
			r.Clouds = NewClouds([]provider.Provider{p}, nil)
			if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
				t.Fatal(err)
			}
			if told != c.want {
				t.Errorf("the driver was told %q, want %q", told, c.want)
			}
		})
	}
}
