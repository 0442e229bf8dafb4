// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/drivertest"
	"github.com/machine-functions/machine-functions/test/engine"
)

// wire leads to an engine in this process.
type wire struct {
	*engine.Engine
	takes time.Duration // each request

	mu   sync.Mutex
	hook func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error)
}

// RoundTrip implements [http.RoundTripper].
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	hook := w.hook
	w.mu.Unlock()
	next := func() (*http.Response, error) {
		if err := pause(r.Context(), w.takes); err != nil {
			return nil, err
		}
		rec := httptest.NewRecorder()
		if r.Body == nil {
			r.Body = http.NoBody
		}
		w.ServeHTTP(rec, r)
		return rec.Result(), nil
	}
	if hook != nil {
		return hook(r, next)
	}
	return next()
}

func (w *wire) set(hook func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hook = hook
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func newWire() *wire {
	e := engine.New()
	e.Password = "canary"
	e.Lock, e.Boot, e.Halt = time.Second, 2*time.Second, time.Second
	return &wire{Engine: e}
}

func (w *wire) provider() provider.Provider {
	return served(func(*tls.Config) http.RoundTripper { return w })
}

var engines atomic.Int64

// accountOf has an address of its own, so that tests do not share a limiter.
func accountOf() provider.Account {
	return provider.Account{
		Kind: Kind, Namespace: "openshift-machine-api", Secret: "ovirt-credentials", ClusterID: "ocp43-abcde", ClusterUID: uuid.NewUUID(),
		Credentials: map[string][]byte{
			keyURL: fmt.Appendf(nil, "https://engine-%d.test/ovirt-engine/api", engines.Add(1)), keyUser: []byte(engine.User), keyPassword: []byte("canary"), keyInsecure: []byte("false"), keyFile: nil,
		},
		UserData: func(_ context.Context, name string) (map[string][]byte, string, error) {
			if name != "worker-user-data" {
				return nil, "", provider.Errorf(provider.Exhausted, "secret %s is not there", name)
			}
			return map[string][]byte{"userData": []byte(`{"ignition":{"version":"3.2.0"}}`)}, "1", nil
		},
	}
}

// specWith is a spec that works, with more fields, which count if they are said twice; null takes one away.
func specWith(more string) json.RawMessage {
	spec := map[string]json.RawMessage{}
	for _, text := range []string{`{
		"apiVersion": "ovirtproviderconfig.machine.openshift.io/v1beta1", "kind": "OvirtMachineProviderSpec", "id": "", "name": "",
		"cluster_id": "` + engine.Cluster + `", "template_name": "` + engine.Template + `", "type": "server",
		"cpu": {"sockets": 1, "cores": 4, "threads": 1}, "memory_mb": 16348, "os_disk": {"size_gb": 31},
		"network_interfaces": [{"vnic_profile_id": "` + engine.Profile + `"}],
		"credentialsSecret": {"name": "ovirt-credentials"}, "userDataSecret": {"name": "worker-user-data"}}`, "{" + more + "}"} {
		if err := json.Unmarshal([]byte(text), &spec); err != nil {
			panic(err)
		}
	}
	for name, v := range spec {
		if string(v) == "null" {
			delete(spec, name)
		}
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		panic(err)
	}
	return raw
}

const typed = `"cpu": null, "memory_mb": null, "instance_type_id": "` + engine.InstanceType + `"`

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		more        string
		typed, slow bool
		with        func(*wire)
	}{
		"plain":              {with: func(*wire) {}},
		"instance type":      {more: typed, typed: true, with: func(*wire) {}},
		"everything":         {more: `"affinity_groups_names": ["workers", "infra"], "auto_pinning_policy": "resize_and_pin", "hugepages": 2048, "format": "raw", "sparse": false, "clone": true`, with: func(*wire) {}},
		"slow disks":         {slow: true, with: func(w *wire) { w.Lock, w.Boot, w.Halt = 3*time.Second, 3*time.Second, 3*time.Second }},
		"at once":            {slow: true, with: func(w *wire) { w.Lock, w.Boot, w.Halt = 0, 0, 0 }},
		"short-lived tokens": {slow: true, with: func(w *wire) { w.Expires = 2 * time.Second }},
		"numbers as text":    {with: func(w *wire) { w.Texts = true }},
		"slow wire":          {slow: true, with: func(w *wire) { w.takes = 30 * time.Millisecond }},
	} {
		if testing.Short() && c.slow {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drivertest.RunVirtual(t, func(t *testing.T) drivertest.Harness {
				t.Helper()
				w := newWire()
				c.with(w)
				return harness(w, c.more, c.typed)
			})
		})
	}
}

func harness(w *wire, more string, typed bool) drivertest.Harness {
	hang := func(hangs bool) {
		if !hangs {
			w.set(nil)
			return
		}
		w.set(func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
	}
	made := 0
	return drivertest.Harness{
		Provider: w.provider(), Account: accountOf(), Spec: specWith(more), Patience: time.Minute,
		Invalid: []drivertest.Bad{
			{Spec: specWith(`"template_name": null`), Names: []string{"providerSpec.value.template_name"}},
			{Spec: specWith(`"template_name": "rhcos or name=other"`), Names: []string{"providerSpec.value.template_name", "rhcos or name=other"}},
			{Spec: specWith(`"cluster_id": "../../vms"`), Names: []string{"providerSpec.value.cluster_id", "../../vms"}},
			{Spec: specWith(`"clone": false, "format": "raw"`), Names: []string{"providerSpec.value.format", "raw", "clone"}},
			{Spec: specWith(`"type": "desktop", "sparse": false`), Names: []string{"providerSpec.value.sparse", "clone"}},
			{Spec: specWith(`"memory_mb": 9007199254740993, "cpu": {"sockets": 1, "cores": 1, "threads": 1}, "instance_type_id": null`), Names: []string{"providerSpec.value.memory_mb", "9007199254740993"}},
			{Spec: specWith(`"memory_mb": 1024, "cpu": {"sockets": 4294967296, "cores": 4294967296, "threads": 1}, "instance_type_id": null`), Names: []string{"providerSpec.value.cpu"}},
			{Spec: specWith(`"hugepages": 4`), Names: []string{"providerSpec.value.hugepages", "4"}},
			{Spec: specWith(`"cpu": {"sockets": 0, "cores": 4, "threads": 1}, "instance_type_id": null`), Names: []string{"providerSpec.value.cpu.sockets", "0"}},
			{Spec: specWith(`"cpu": {"sockets": 1, "cores": 4, "threads": 1}, "instance_type_id": "` + engine.InstanceType + `"`), Names: []string{"providerSpec.value.instance_type_id", engine.InstanceType}},
		},
		Missing: &drivertest.Bad{
			Spec:  specWith(`"network_interfaces": [{"vnic_profile_id": "` + engine.Profile + `"}, {"vnic_profile_id": "5a0e0004-0000-4000-8000-00000000000f"}]`),
			Names: []string{"providerSpec.value.network_interfaces[1].vnic_profile_id", "5a0e0004-0000-4000-8000-00000000000f"},
		},
		Exhaust: w.Fill, Hang: hang, Writes: w.Writes,
		Untagged: func() (string, func() bool) {
			made++
			id := w.Make(fmt.Sprintf("somebody-elses-%d", made), "a comment")
			return scheme + id, func() bool { return w.has(id) }
		},
		Foreign:       func(cluster string) string { return scheme + w.Make("of-the-installer", "", cluster) },
		OnePerMachine: true, UniqueNames: true, TokensReused: true, OwnNames: !typed,
	}
}

func (w *wire) has(id string) bool {
	for _, i := range w.Instances() {
		if i.ID == id {
			return true
		}
	}
	return false
}
