// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/drivertest"
	"github.com/machine-functions/machine-functions/test/arm"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		t.Helper()
		return harness(t, nil)
	})
}

// The same with a public address for each instance, which is a step more, and goes last.
func TestConformanceWithPublicAddresses(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("ten seconds more")
	}
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		t.Helper()
		return harness(t, map[string]any{"publicIP": true})
	})
}

func harness(t *testing.T, change map[string]any) drivertest.Harness {
	t.Helper()
	const lag = 30 * time.Millisecond
	cloud := &arm.Cloud{Lag: lag, Boot: 2 * lag, Shutdown: 20 * time.Millisecond, Page: 2, Secret: secret}
	t.Cleanup(func() {
		for _, field := range cloud.Unknown() {
			t.Errorf("the API does not know the field %s", field)
		}
	})
	var hangs atomic.Bool
	p := Provider()
	p.Open = func(_ context.Context, a provider.Account) (provider.Driver, error) {
		d, w := wired(t, cloud, a)
		w.set(func(_ string, next func() (*http.Response, error)) (*http.Response, error) {
			if hangs.Load() {
				time.Sleep(400 * time.Millisecond) // longer than the suite waits
				return nil, context.DeadlineExceeded
			}
			return next()
		})
		return d, nil
	}
	return drivertest.Harness{
		Provider: p, Account: account(), Spec: spec(change), Invalid: invalid(),
		Missing: &drivertest.Bad{
			Spec:  spec(map[string]any{"subnet": "outer"}),
			Names: []string{"providerSpec.value.subnet", "outer", arm.Group},
		},
		Pace: 10 * time.Millisecond, Lag: lag, Exhaust: cloud.Exhaust, Hang: func(hang bool) { hangs.Store(hang) },
		Writes:   cloud.Writes,
		Children: func() int { return len(cloud.Names(arm.Cards, arm.Addresses, arm.Disks)) },
		Untagged: func() (string, func() bool) {
			name := fmt.Sprintf("somebody-elses-%d", strangers.Add(1))
			id := cloud.Add(name, map[string]string{"team": "a"})
			return providerID(id), func() bool { return cloud.Body(arm.Instances, name) != nil }
		},
		Foreign: func(clusterID string) string {
			return providerID(cloud.Add(fmt.Sprintf("master-%d", strangers.Add(1)), map[string]string{"kubernetes.io_cluster." + clusterID: "owned"}))
		},
		OnePerMachine: true, UniqueNames: true, TokensReused: true,
	}
}

var strangers atomic.Int32

func invalid() []drivertest.Bad {
	return []drivertest.Bad{
		{Spec: spec(map[string]any{"vmSize": ""}), Names: []string{"providerSpec.value.vmSize"}},
		{Spec: spec(map[string]any{"subnet": "", "vnet": ""}), Names: []string{"providerSpec.value.subnet"}},
		{Spec: spec(map[string]any{"subnet": "../../x"}), Names: []string{"providerSpec.value.subnet", "../../x"}},
		{Spec: spec(map[string]any{"acceleratedNetworking": "yes"}), Names: []string{"providerSpec.value.acceleratedNetworking", "yes"}},
		{Spec: spec(map[string]any{"zone": "1", "availabilitySet": "workers-as"}), Names: []string{"providerSpec.value.availabilitySet", "workers-as", "zone"}},
		{Spec: spec(map[string]any{"osDisk": map[string]any{"diskSizeGB": 128, "osType": "Windows"}}), Names: []string{"providerSpec.value.osDisk.osType", "Windows"}},
		{Spec: spec(map[string]any{"natRule": 0}), Names: []string{"providerSpec.value.natRule", "0", "publicLoadBalancer"}},
		{Spec: spec(map[string]any{"sshPublicKey": "not a key"}), Names: []string{"providerSpec.value.sshPublicKey"}},
		{Spec: spec(map[string]any{"tags": map[string]string{"a/b": "c"}}), Names: []string{"providerSpec.value.tags", "a/b"}},
	}
}

const (
	clusterID = "cluster-fz2xk"
	secret    = "canary-7f3a"
)

var clients atomic.Int32

// account is that of another client each time, whose calls are counted by themselves.
func account() provider.Account {
	return provider.Account{
		Kind: Kind, ClusterID: clusterID, Region: arm.Location + "/" + arm.Group, Namespace: "machines", Secret: "azure-cloud-credentials",
		Credentials: map[string][]byte{
			"azure_subscription_id": []byte(arm.Subscription), "azure_tenant_id": []byte(arm.Tenant), "azure_client_id": fmt.Appendf(nil, "client-%d", clients.Add(1)),
			"azure_client_secret": []byte(secret + "\n"), "azure_region": []byte(arm.Location), "azure_resourcegroup": []byte(arm.Group), "azure_resource_prefix": []byte(clusterID),
		},
		UserData: func(_ context.Context, name string) (map[string][]byte, string, error) {
			if name == "unread" {
				return nil, "", errors.New("the API server is not ready")
			}
			if name != "worker-user-data" {
				return nil, "", provider.Errorf(provider.Exhausted, "secret %s not found", name)
			}
			return map[string][]byte{"userData": []byte(`{"ignition": {"version": "3.2.0"}}`)}, "1", nil
		},
	}
}

// spec is the providerSpec that OpenShift's installer writes, with fields replaced.
func spec(change map[string]any) json.RawMessage {
	s := map[string]any{
		"apiVersion": "machine.openshift.io/v1beta1", "kind": Kind, "location": "East US 2", "vmSize": "Standard_D4s_v3",
		"image":                map[string]any{"publisher": "", "offer": "", "sku": "", "version": "", "resourceID": "/resourceGroups/cluster-fz2xk-rg/providers/Microsoft.Compute/galleries/gallery_cluster_fz2xk/images/cluster-fz2xk-gen2/versions/latest"},
		"osDisk":               map[string]any{"osType": "Linux", "diskSizeGB": 128, "managedDisk": map[string]any{"storageAccountType": "Premium_LRS"}},
		"networkResourceGroup": arm.Group, "resourceGroup": arm.Group, "vnet": "cluster-fz2xk-vnet", "subnet": "cluster-fz2xk-worker-subnet",
		"managedIdentity": "cluster-fz2xk-identity", "publicLoadBalancer": "cluster-fz2xk", "zone": "1",
		"userDataSecret": map[string]any{"name": "worker-user-data"}, "credentialsSecret": map[string]any{"name": "azure-cloud-credentials", "namespace": "machines"},
	}
	for k, v := range change {
		s[k] = v
	}
	if _, natted := change["natRule"]; natted && change["publicLoadBalancer"] == nil {
		delete(s, "publicLoadBalancer")
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}

// wire is the HTTP traffic of a driver, where a test may look and cut.
type wire struct {
	next http.RoundTripper
	mu   sync.Mutex
	sent []string
	cut  func(operation string, next func() (*http.Response, error)) (*http.Response, error)
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	operation := arm.Operation(r)
	w.mu.Lock()
	w.sent = append(w.sent, operation)
	cut := w.cut
	w.mu.Unlock()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if cut != nil {
		return cut(operation, func() (*http.Response, error) { return w.next.RoundTrip(r) })
	}
	return w.next.RoundTrip(r)
}

func (w *wire) set(cut func(operation string, next func() (*http.Response, error)) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
}

// since returns the operations that were asked for after the first n.
func (w *wire) since(n int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.sent[n:]...)
}

// wired opens a driver whose traffic the test holds.
func wired(t *testing.T, cloud http.RoundTripper, a provider.Account) (*driver, *wire) {
	t.Helper()
	d, err := open(a)
	must(t, err)
	w := &wire{next: cloud}
	d.http.Transport, d.pause = w, time.Millisecond
	return d, w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
