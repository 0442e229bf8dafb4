// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/drivertest"
	"github.com/machine-functions/machine-functions/test/ec2"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		t.Helper()
		return harness(t)
	})
}

func harness(t *testing.T) drivertest.Harness {
	t.Helper()
	const lag = 30 * time.Millisecond
	cloud := &ec2.Cloud{Lag: lag, Boot: 20 * time.Millisecond, Shutdown: 20 * time.Millisecond, Page: 2}
	r := serve(t, cloud)
	var hangs atomic.Bool
	p := Provider(nil)
	p.Open = func(_ context.Context, a provider.Account) (provider.Driver, error) {
		d, w := r.wired(t, a)
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
		Provider: p, Account: r.account(), Spec: spec(nil),
		Invalid: []drivertest.Bad{
			{Spec: spec(map[string]any{"instanceType": ""}), Names: []string{"providerSpec.value.instanceType"}},
			{Spec: spec(map[string]any{"placement": map[string]any{"region": "us-east-2", "tenancy": "shared"}}), Names: []string{"providerSpec.value.placement.tenancy", "shared"}},
			{Spec: spec(map[string]any{"placement": map[string]any{"region": "us-east-2", "availabilityZone": "us-east-2f"}}), Names: []string{"providerSpec.value.subnet", "us-east-2f"}},
			{Spec: spec(map[string]any{"securityGroups": []any{map[string]any{}}}), Names: []string{"providerSpec.value.securityGroups[0]"}},
			{Spec: spec(map[string]any{"deviceIndex": "first"}), Names: []string{"providerSpec.value.deviceIndex", "first"}},
		},
		Missing: &drivertest.Bad{
			Spec:  spec(map[string]any{"subnet": map[string]any{"filters": []any{map[string]any{"name": "tag:Name", "values": []string{"outer"}}}}}),
			Names: []string{"providerSpec.value.subnet", "tag:Name=outer"},
		},
		Pace: 10 * time.Millisecond, Lag: lag, Exhaust: cloud.Exhaust, Hang: func(hang bool) { hangs.Store(hang) },
		Writes: func() int { return writes(cloud) },
		Untagged: func() (string, func() bool) {
			id := cloud.Add("us-east-2b", "m5.large", map[string]string{"Name": "somebody-elses"})
			return id, func() bool { _, live := cloud.Live()[id[strings.LastIndexByte(id, '/')+1:]]; return live }
		},
		Foreign: func(clusterID string) string {
			return cloud.Add("us-east-2b", "m5.large", map[string]string{"Name": "master-0", "kubernetes.io/cluster/" + clusterID: "owned"})
		},
		OwnNames: true, // Nodes have the names that the cloud gives (SPEC S77)
	}
}

func writes(cloud *ec2.Cloud) (n int) {
	for _, call := range cloud.Calls() {
		if !strings.HasPrefix(call, "Describe") && call != "GetCallerIdentity" {
			n++
		}
	}
	return n
}

// region is a cloud that is served.
type region struct{ server *httptest.Server }

var keys atomic.Int32

func serve(t *testing.T, cloud *ec2.Cloud) region {
	t.Helper()
	s := httptest.NewServer(cloud)
	t.Cleanup(s.Close)
	return region{s}
}

// account is that of another key each time, whose calls are counted by themselves.
func (r region) account() provider.Account {
	return provider.Account{
		Kind: Kind, ClusterID: "cluster-8trtb-rlgsx", Region: "us-east-2", Namespace: "machines", Secret: "aws-cloud-credentials",
		Credentials: map[string][]byte{
			"aws_access_key_id": fmt.Appendf(nil, "AKIA%016d", keys.Add(1)), "aws_secret_access_key": []byte("canary-7f3a"),
			"aws_endpoint_url": []byte(r.server.URL),
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

// spec is the providerSpec of the workshop with fields replaced.
func spec(change map[string]any) json.RawMessage {
	filter := func(value string) map[string]any {
		return map[string]any{"filters": []any{map[string]any{"name": "tag:Name", "values": []string{value}}}}
	}
	s := map[string]any{
		"apiVersion": "machine.openshift.io/v1beta1", "kind": Kind, "ami": map[string]any{"id": "ami-0f1d83dd6ffe4c9de"}, "instanceType": "m5a.4xlarge",
		"placement": map[string]any{"region": "us-east-2", "availabilityZone": "us-east-2b"},
		"subnet":    filter("cluster-8trtb-rlgsx-private-us-east-2*"), "securityGroups": []any{filter("cluster-8trtb-rlgsx-*")},
		"iamInstanceProfile": map[string]any{"id": "cluster-8trtb-rlgsx-worker-profile"},
		"blockDevices":       []any{map[string]any{"ebs": map[string]any{"volumeSize": 120, "volumeType": "gp3", "iops": 3000, "throughputMib": 250, "encrypted": true}}},
		"userDataSecret":     map[string]any{"name": "worker-user-data"}, "credentialsSecret": map[string]any{"name": "aws-cloud-credentials"},
	}
	for k, v := range change {
		s[k] = v
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
	cut  func(action string, next func() (*http.Response, error)) (*http.Response, error)
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	action := actionOf(r)
	w.mu.Lock()
	w.sent = append(w.sent, action)
	cut := w.cut
	w.mu.Unlock()
	if cut != nil {
		return cut(action, func() (*http.Response, error) { return w.next.RoundTrip(r) })
	}
	return w.next.RoundTrip(r)
}

func (w *wire) set(cut func(action string, next func() (*http.Response, error)) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
}

// since returns the calls that were sent after the first n.
func (w *wire) since(n int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.sent[n:]...)
}

// wired opens a driver whose traffic the test holds.
func (r region) wired(t *testing.T, a provider.Account) (*driver, *wire) {
	t.Helper()
	d, err := open(a, nil)
	must(t, err)
	w := &wire{next: d.http.Transport.(apiOnly).next}
	d.http.Transport = apiOnly{w}
	return d, w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
