// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A driver panics when it lists one account, or opens it: what nobody owns in another one goes all the same, in the one nothing does,
// and that it is not listed is told (2c, R-L4, R-S12).
func TestOrphanGoesBesideAPoisonedList(t *testing.T) {
	t.Parallel()
	for what, opens := range map[string]bool{"list": true, "open": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { sweepBesidePoison(t, what, opens) })
		})
	}
}

func sweepBesidePoison(t *testing.T, what string, opens bool) {
	t.Helper()
	defer func() {
		if v := recover(); v != nil {
			t.Errorf("the sweep ends: %.200v", v)
		}
	}()
	cloud := &memory.Cloud{Fault: func(_ context.Context, c memory.Call) error {
		if c.Op == memory.OpList && strings.Contains(c.Account, "/a-poison/") {
			panic("nil map in a cloud's answer")
		}
		return nil
	}}
	p := cloud.Provider()
	p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
		if !opens && a.Region == "a-poison" {
			panic("nil map in a cloud's answer")
		}
		return cloud.Open(ctx, a)
	}
	api := apiserver.New(time.Now)
	for _, region := range []string{"a-poison", "other"} {
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
	var log bytes.Buffer
	sweeper := &runner.Runner{Function: Function, Cluster: api.As("sweep-instances"), Log: slog.New(slog.NewTextHandler(&log, nil))}
	sweeper.Clouds = runner.NewClouds([]provider.Provider{p}, nil)
	for range 36 {
		_, _ = sweeper.Handle(t.Context(), snapshot.Request{})
		time.Sleep(5 * time.Minute)
	}
	var left []string
	for _, in := range cloud.Instances() {
		left = append(left, in.Name)
	}
	if got := fmt.Sprint(left); got != "[a-poison other orphan-a-poison]" && got != "[a-poison orphan-a-poison other]" {
		t.Errorf("left are %s", got)
	}
	if !strings.Contains(log.String(), "AccountNotListed") || !strings.Contains(log.String(), what+": the driver panicked") {
		t.Error("nobody is told that the account is not listed, and why")
	}
}
