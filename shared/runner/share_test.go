// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

// slow is an API server that takes its time to write.
type slow struct {
	cluster.Cluster
	takes time.Duration
}

func (s slow) Apply(ctx context.Context, a plan.Action) error {
	time.Sleep(s.takes)
	return s.Cluster.Apply(ctx, a)
}

// What cannot be begun in time is left for the next scan, which is no failure; nothing is cut off in the middle.
func TestWhatIsTooLateIsNotBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := apiserver.New(time.Now)
		r := testRunner(label(wantLabel), slow{api.As("label"), 900 * time.Millisecond})
		fill(t, api, 300)
		began := time.Now()
		if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
			t.Errorf("a scan: %v", err)
		}
		if took := time.Since(began); took > budget {
			t.Errorf("took %v", took)
		}
		wrote := 0
		for _, w := range api.Writes() {
			if w.Actor == "label" && w.Verb == "patch" {
				wrote++
			}
			if w.Err != nil {
				t.Error(w)
			}
		}
		if want := 26 * maxParallel; wrote != want {
			t.Errorf("wrote %d times, want %d", wrote, want)
		}
	})
}

// A thousand Machines of one set: their account's Secret is read once in an observation, and their spec resolved once.
func TestEqualSpecsShareAccountAndResolution(t *testing.T) {
	t.Parallel()
	api := apiserver.New(time.Now)
	spec := fmt.Sprintf(`{"kind":%q,"type":"small"}`, memory.Kind)
	for i := range 1000 {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: fmt.Sprint("m", i), UID: types.UID(fmt.Sprint(i))}}
		m.Labels = map[string]string{machine.LabelCluster: "c"}
		m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(spec)}
		if err := api.Put(m); err != nil {
			t.Fatal(err)
		}
	}
	var secrets, resolved atomic.Int64
	cloud := &memory.Cloud{Fault: func(_ context.Context, c memory.Call) error {
		if c.Op == memory.OpResolve && !c.After {
			resolved.Add(1)
		}
		return nil
	}}
	p := cloud.Provider()
	p.Account = func(json.RawMessage) (string, string, error) { return "here", "credentials", nil }
	seen := 0
	f := function.Function{
		Name: "look",
		Reads: func(s snapshot.Snapshot) snapshot.Scope {
			sc := snapshot.Scope{Objects: []snapshot.Query{snapshot.All("Machine")}}
			for _, m := range s.Machines {
				sc.Lookups = append(sc.Lookups, snapshot.Lookup{UID: m.UID, Open: true, Resolve: true})
			}
			return sc
		},
		Decide: func(s snapshot.Snapshot) plan.Plan {
			for _, c := range s.Clouds {
				if c.Err == nil && len(c.Resolved) > 0 {
					seen++
				}
			}
			return plan.Plan{}
		},
	}
	r := testRunner(f, api.As("look"))
	r.Clouds = NewClouds([]provider.Provider{p}, func(context.Context, string, string) (map[string][]byte, string, error) {
		secrets.Add(1)
		return nil, "1", nil
	})
	if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
		t.Fatal(err)
	}
	if seen != 1000 || secrets.Load() != 1 || resolved.Load() != 1 {
		t.Errorf("%d answers, %d readings of the Secret, %d resolutions", seen, secrets.Load(), resolved.Load())
	}
}
