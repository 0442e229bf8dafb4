// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster"
	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// namespaces counts how often the namespace of the mark is read, and may let that fail.
type namespaces struct {
	cluster.Cluster
	read int
	err  error
}

func (n *namespaces) Observe(ctx context.Context, s snapshot.Snapshot, queries []snapshot.Query) (snapshot.Snapshot, error) {
	if slices.Contains(queries, snapshot.System) {
		if n.read++; n.err != nil {
			return s, n.err
		}
	}
	return n.Cluster.Observe(ctx, s, queries)
}

// The driver is told the mark of the cluster in each invocation, for which the API server is asked until it has told it once; as long as
// it does not, no cloud is asked for anything.
func TestDriverIsToldTheMark(t *testing.T) {
	t.Parallel()
	api := apiserver.New(time.Now)
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "worker-0", UID: "worker-0"}}
	m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":%q,"type":"small"}`, memory.Kind)}
	m.Labels = map[string]string{machine.LabelCluster: "c"}
	if err := api.Put(m, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: machine.NamespaceSystem, UID: "this-cluster"}}); err != nil {
		t.Fatal(err)
	}
	var told, seen []types.UID
	p := (&memory.Cloud{}).Provider()
	open := p.Open
	p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
		told = append(told, a.ClusterUID)
		return open(ctx, a)
	}
	f := function.Function{
		Name: "look",
		Reads: func(s snapshot.Snapshot) snapshot.Scope {
			sc := snapshot.Scope{Objects: []snapshot.Query{snapshot.All("Machine"), snapshot.System}}
			for _, m := range s.Machines {
				sc.Lookups = append(sc.Lookups, snapshot.Lookup{UID: m.UID})
			}
			return sc
		},
		Decide: func(s snapshot.Snapshot) plan.Plan {
			seen = append(seen, s.ClusterUID())
			return plan.Plan{}
		},
	}
	asked := &namespaces{Cluster: api.As("look"), err: errors.New("forbidden")}
	r := testRunner(f, asked)
	r.Clouds = NewClouds([]provider.Provider{p}, nil)
	if _, err := r.Handle(t.Context(), snapshot.Request{}); err == nil || len(told)+len(seen) > 0 {
		t.Errorf("without the right to read it: %v, the driver was told %q", err, told)
	}
	asked.err = nil
	for range 3 {
		if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(told, []types.UID{"this-cluster"}) || !slices.Equal(seen, []types.UID{"this-cluster", "this-cluster", "this-cluster"}) || asked.read != 2 {
		t.Errorf("the driver was told %q, the function %q, the API server was asked %d times", told, seen, asked.read)
	}
}
