// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Two processes scan in turns, each with a list of types that is ten minutes old at most. A price that changes is written once,
// within that time: the process that still has the old list asks anew before it would write that back (C29, E4, R-L4).
func TestPricesFollowWithoutFlapping(t *testing.T) {
	t.Parallel()
	const (
		list    = 10 * time.Minute // as long as a list of types is believed
		changed = 27 * time.Minute / 2
		end     = time.Hour
	)
	synctest.Test(t, func(t *testing.T) {
		api := apiserver.New(time.Now)
		var asked atomic.Int32 // by several goroutines
		cloud := &memory.Cloud{Types: []provider.InstanceType{{Name: "small", MilliCPU: 2000, Memory: 8 << 30, PriceHour: 0.1}}}
		cloud.Fault = func(_ context.Context, c memory.Call) error {
			if c.Op == memory.OpInstanceTypes && !c.After {
				asked.Add(1)
			}
			return nil
		}
		set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "worker", UID: "set-1"}}
		set.Labels = map[string]string{machine.LabelCluster: "c"}
		set.Spec.Template.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":%q,"type":"small"}`, memory.Kind)}
		if err := api.Put(set); err != nil {
			t.Fatal(err)
		}
		var processes [2]*runner.Runner
		for i := range processes {
			processes[i] = &runner.Runner{Function: Function, Cluster: api.As(name), Log: slog.New(slog.DiscardHandler)}
			processes[i].Clouds = runner.NewClouds([]provider.Provider{cloud.Provider()}, nil)
		}
		began, followed := time.Now(), time.Duration(0)
		for n := 0; time.Since(began) < end; n++ {
			if time.Since(began) == changed {
				cloud.Types = []provider.InstanceType{{Name: "small", MilliCPU: 2000, Memory: 8 << 30, PriceHour: 0.2}}
			}
			before := len(api.Writes())
			if _, err := processes[n%2].Handle(t.Context(), snapshot.Request{}); err != nil {
				t.Fatal(err)
			}
			if wrote := len(api.Writes()) > before; wrote && time.Since(began) > 0 {
				if followed != 0 {
					t.Errorf("written at %v, and again at %v", followed, time.Since(began))
				}
				followed = time.Since(began)
			}
			time.Sleep(3 * time.Minute / 2)
		}
		if followed < changed || followed > changed+list {
			t.Errorf("the price of %v was written at %v", changed, followed)
		}
		if most := len(processes)*int(end/list) + 1; int(asked.Load()) > most {
			t.Errorf("%d lists of types, want %d at most", asked.Load(), most)
		}
	})
}
