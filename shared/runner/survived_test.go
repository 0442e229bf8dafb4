// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/events"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/metrics"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A driver that panics ends neither the process nor the invocation: who it was asked about is told so (RELIABILITY 2c, 2g).
func TestServerSurvivesAPanicOfADriver(t *testing.T) {
	t.Parallel()
	cloud := &memory.Cloud{Fault: func(context.Context, memory.Call) error { panic("poison") }}
	api := apiserver.New(time.Now)
	if err := api.Put(machineIn("worker-0", "worker-0")); err != nil {
		t.Fatal(err)
	}
	var told *snapshot.Refusal
	r := testRunner(function.Function{Name: "look", Reads: inBulk, Decide: func(s snapshot.Snapshot) plan.Plan {
		told = s.Clouds["worker-0"].Err
		return plan.Plan{}
	}}, api.As("look"))
	r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
	if w := post(NewServer(r, nil), events.TypePing); w.Code == http.StatusInternalServerError || told == nil || told.Code != provider.Unknown || told.Message != "list: the driver panicked: poison" {
		t.Errorf("%d %s, told %+v", w.Code, w.Body, told)
	}
}

// dreadful panics whatever it is asked.
type dreadful struct{ provider.Driver }

func (dreadful) Close(context.Context) error                     { panic("of s3cret-word") }
func (dreadful) Tags(json.RawMessage) (map[string]string, error) { panic("of s3cret-word") }
func (dreadful) Update(context.Context, provider.Ref, map[string]string) error {
	panic("of s3cret-word")
}
func (dreadful) PowerCycle(context.Context, provider.Ref) error      { panic("of s3cret-word") }
func (dreadful) Identity(context.Context) (string, error)            { panic("of s3cret-word") }
func (dreadful) Ended(context.Context, provider.Ref) (string, error) { panic("of s3cret-word") }
func (dreadful) Stock(context.Context, json.RawMessage) (provider.Stock, error) {
	panic("of s3cret-word")
}

// Every call of a driver survives its panic: it is counted, its stack is logged once in five minutes, without secrets, and the error
// proves nothing, so that a create may have worked.
func TestEveryCallSurvivesAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := (&memory.Cloud{Fault: func(context.Context, memory.Call) error { panic("of s3cret-word") }}).Provider()
		kind, open, still := p.Kinds[0], p.Open, true
		p.Account = func(json.RawMessage) (string, string, error) {
			if still {
				panic("account")
			}
			return "here", "credentials", nil
		}
		p.InstanceType = func(json.RawMessage) (provider.InstanceType, error) { panic("type") }
		p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
			if still {
				panic("open")
			}
			d, err := open(ctx, a)
			return dreadful{d}, err
		}
		var log bytes.Buffer
		clouds := NewClouds([]provider.Provider{p}, func(context.Context, string, string) (map[string][]byte, string, error) {
			return map[string][]byte{"password": []byte("s3cret-word")}, "1", nil
		})
		var err error
		clouds.Log = slog.New(slog.NewTextHandler(&log, nil))
		if clouds.Metrics, err = metrics.New("look", time.Now); err != nil {
			t.Fatal(err)
		}
		panics := 0
		unknown := func(call string, err error) {
			t.Helper()
			panics++
			if o := cloudOutcome(provider.Instance{}, err); o.Result != plan.Failed || !strings.Contains(o.Message, call+": the driver panicked") || strings.Contains(o.Message, "s3cret-word") {
				t.Errorf("%s: %+v", call, o)
			}
		}
		spec := json.RawMessage(`{"kind": "` + kind + `", "type": "small"}`)
		_, _, _, err = clouds.named(t.Context(), clouds.secrets, "machines", "c", spec)
		unknown("read the spec", err)
		_, err = clouds.opened(t.Context(), p, provider.Account{ClusterID: "c"}, "1")
		unknown("open", err)
		still = false
		a, err := opened(t.Context(), clouds, "machines", "c", spec)
		if err != nil {
			t.Fatal(err)
		}
		d, ref := a.driver, provider.Ref{UID: "m", Token: "t"}
		_, err = clouds.instanceType(t.Context(), a, spec, time.Time{})
		unknown("read the spec", err)
		for call, do := range map[string]func() error{
			"resolve":     func() error { _, err := d.Resolve(t.Context(), spec); return err },
			"create":      func() error { _, err := d.Create(t.Context(), ref, spec); return err },
			"find":        func() error { _, err := d.Find(t.Context(), ref); return err },
			"list":        func() error { _, err := d.List(t.Context()); return err },
			"delete":      func() error { return d.Delete(t.Context(), ref) },
			"types":       func() error { _, err := d.InstanceTypes(t.Context()); return err },
			"tags":        func() error { _, err := d.Tags(spec); return err },
			"update":      func() error { return d.Update(t.Context(), ref, nil) },
			"power-cycle": func() error { return d.power(t.Context(), ref, "") },
			"identity":    func() error { _, err := d.Identity(t.Context()); return err },
			"ended":       func() error { _, err := d.Ended(t.Context(), ref); return err },
			"stock":       func() error { _, err := d.Stock(t.Context(), spec); return err },
			"close":       func() error { return d.Close(t.Context()) },
		} {
			unknown(call, do())
			before := log.Len()
			unknown(call, do())
			if log.Len() > before {
				t.Errorf("%s: the same panic is logged again", call)
			}
		}
		stacks := strings.Count(log.String(), "a driver panicked")
		time.Sleep(toldFor)
		unknown("close", d.Close(t.Context()))
		if strings.Count(log.String(), "a driver panicked") != stacks+1 || strings.Contains(log.String(), "s3cret-word") || !strings.Contains(log.String(), "call=create") || !strings.Contains(log.String(), "dreadful.Tags") {
			t.Errorf("%d stacks are logged:\n%.5000s", stacks, log.String())
		}
		w := httptest.NewRecorder()
		clouds.Metrics.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if want := fmt.Sprintf("machines_look_invocations_total{result=\"panicked\"} %d\n", panics); !strings.Contains(w.Body.String(), want) {
			t.Errorf("want %s in\n%s", want, w.Body)
		}
	})
}
