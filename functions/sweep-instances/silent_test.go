// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster/clustertest"
	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Clouds that do not answer, neither when their accounts are opened nor when they are listed, keep what nobody owns in another
// one for half a day at most, by sweeps of processes that remember nothing of each other; and one whose list takes eight seconds is
// seen. So it is beside an API server, too, that takes its time each time that Machines and Nodes are read (R-L2, R-L4).
func TestOrphanGoesBesideSilentClouds(t *testing.T) {
	t.Parallel()
	for name, opens := range map[string]bool{"silent when listed": true, "silent when opened": false} {
		for _, reading := range []time.Duration{0, time.Second, 1700 * time.Millisecond} {
			t.Run(fmt.Sprint(name, " ", reading), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { sweepBesideSilentClouds(t, opens, reading) })
			})
		}
	}
}

// sweepBesideSilentClouds sweeps for half a day, where accounts open or do not, and the API server takes its time.
func sweepBesideSilentClouds(t *testing.T, opens bool, reading time.Duration) {
	t.Helper()
	var seen atomic.Bool
	wait := func(ctx context.Context, account string) error {
		switch {
		case strings.Contains(account, "/a-silent/"), strings.Contains(account, "/b-silent/"):
			<-ctx.Done()
		case strings.Contains(account, "/c-slow/"):
			select {
			case <-time.After(8 * time.Second):
				seen.Store(true)
			case <-ctx.Done():
			}
		}
		return ctx.Err()
	}
	cloud := &memory.Cloud{}
	cloud.Fault = func(ctx context.Context, c memory.Call) error {
		if c.After || c.Op != memory.OpList {
			return nil
		}
		return wait(ctx, c.Account)
	}
	p := cloud.Provider()
	p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
		if !opens && strings.Contains(a.Key(), "-silent/") {
			return nil, wait(ctx, a.Key())
		}
		return cloud.Open(ctx, a)
	}
	api := apiserver.New(time.Now)
	key := func(region string) string { return memory.Kind + "/" + region + "/" + machine.Namespace + "/" }
	for _, region := range []string{"a-silent", "b-silent", "c-slow", "other"} {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: region, UID: types.UID(region), Finalizers: []string{machine.Finalizer}}}
		m.Labels = map[string]string{machine.LabelCluster: "c"}
		m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":%q,"type":"small","region":%q}`, memory.Kind, region)}
		m.Spec.ProviderID = new("memory:///" + cloud.Add(key(region), "c", provider.Instance{Name: region, UID: m.UID, State: provider.StateRunning}))
		i := machine.NewIntent(m, 1, key(region), []byte(`{}`)).Released(machine.OutcomeCreated, time.Time{})
		m.Annotations = map[string]string{machine.AnnotationIntent: i.String()}
		if err := api.Put(m); err != nil {
			t.Fatal(err)
		}
	}
	cloud.Add(key("other"), "c", provider.Instance{Name: "orphan", UID: "nobody", State: provider.StateRunning})
	for began := time.Now(); time.Since(began) < 12*time.Hour; time.Sleep(5 * time.Minute) {
		sweeper := &runner.Runner{Function: Function, Cluster: clustertest.SlowReads{Cluster: api.As("sweep-instances"), Takes: reading}, Log: slog.New(slog.DiscardHandler)}
		sweeper.Clouds = runner.NewClouds([]provider.Provider{p}, nil)
		_, _ = sweeper.Handle(t.Context(), snapshot.Request{}) // one that is cut off is repeated
	}
	for _, in := range cloud.Instances() {
		if in.Name == "orphan" {
			t.Error("the orphan is there")
		}
	}
	if !seen.Load() {
		t.Error("the slow cloud is never listed")
	}
}

// Of clouds that answer, however slowly, nobody is told that they are not listed: a sweep that has no time for another look ends.
func TestSlowCloudsAreListed(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{time.Second, 3 * time.Second, 6 * time.Second, 8 * time.Second, 9 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			cloud := &memory.Cloud{}
			cloud.Fault = func(ctx context.Context, c memory.Call) error {
				after := time.Second
				if c.Op == memory.OpList {
					after = takes
				}
				if c.After {
					return nil
				}
				select {
				case <-time.After(after):
				case <-ctx.Done():
				}
				return ctx.Err()
			}
			api := apiserver.New(time.Now)
			for _, region := range []string{"a", "b"} {
				key := memory.Kind + "/" + region + "/" + machine.Namespace + "/"
				m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: region, UID: types.UID(region), Finalizers: []string{machine.Finalizer}}}
				m.Labels = map[string]string{machine.LabelCluster: "c"}
				m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":%q,"type":"small","region":%q}`, memory.Kind, region)}
				m.Spec.ProviderID = new("memory:///" + cloud.Add(key, "c", provider.Instance{Name: region, UID: m.UID, State: provider.StateRunning}))
				i := machine.NewIntent(m, 1, key, []byte(`{}`)).Released(machine.OutcomeCreated, time.Time{})
				m.Annotations = map[string]string{machine.AnnotationIntent: i.String()}
				if err := api.Put(m); err != nil {
					t.Fatal(err)
				}
				cloud.Add(key, "c", provider.Instance{Name: "orphan-" + region, UID: types.UID("nobody-" + region), State: provider.StateRunning})
			}
			for range 72 {
				var log bytes.Buffer
				sweeper := &runner.Runner{Function: Function, Cluster: api.As("sweep-instances"), Log: slog.New(slog.NewTextHandler(&log, nil))}
				sweeper.Clouds = runner.NewClouds([]provider.Provider{cloud.Provider()}, nil)
				_, _ = sweeper.Handle(t.Context(), snapshot.Request{}) // one that is cut off is repeated
				if strings.Contains(log.String(), "AccountNotListed") {
					t.Fatalf("lists take %v: %s", takes, log.String())
				}
				time.Sleep(5 * time.Minute)
			}
			if n := len(cloud.Instances()); n != 2 {
				t.Errorf("lists take %v: %d instances are there, want 2", takes, n)
			}
		})
	}
}
