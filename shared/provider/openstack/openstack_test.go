// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/drivertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	volumes := `"rootVolume": {"diskSize": 20, "volumeType": "fast"}, "additionalBlockDevices": [
		{"name": "etcd", "sizeGiB": 10, "storage": {"type": "Volume", "volume": {"type": "fast"}}}, {"name": "scratch", "sizeGiB": 5, "storage": {"type": "Local"}}]`
	shared := `"networks": [{"filter": {"name": "storage"}}, {"filter": {"name": "ocp43-net"}}]`
	for name, c := range map[string]struct {
		more string
		with func(*fake)
	}{
		"plain":              {"", func(*fake) {}},
		"trunk":              {`"trunk": true`, func(*fake) {}},
		"volumes":            {volumes, func(f *fake) { f.slow = 3 * time.Second }},
		"small pages":        {"", func(f *fake) { f.page = 1 }},
		"short-lived tokens": {"", func(f *fake) { f.tokenIs = 2 * time.Second }},
		"two networks":       {shared, func(*fake) {}},
		"no MAC addresses":   {"", func(f *fake) { f.macs = false }},
		"no Cinder":          {"", func(f *fake) { f.volumes = false }},
		"slow wire":          {"", func(f *fake) { f.takes = 100 * time.Millisecond }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drivertest.RunVirtual(t, func(t *testing.T) drivertest.Harness {
				t.Helper()
				f := newFake()
				c.with(f)
				return harness(t, f, c.more)
			})
		})
	}
}

// specWith is the walk-through's (SPEC S9), with more fields, which count if they are said twice.
func specWith(more string) json.RawMessage {
	spec := map[string]json.RawMessage{}
	for _, text := range []string{`{
		"apiVersion": "openstackproviderconfig.openshift.io/v1alpha1", "kind": "OpenstackProviderSpec", "cloudName": "openstack",
		"cloudsSecret": {"name": "openstack-cloud-credentials", "namespace": "openshift-machine-api"},
		"flavor": "4c12g30d", "image": "rhcos-ocp43",
		"networks": [{"filter": {}, "subnets": [{"filter": {"name": "ocp43-nodes", "tags": "openshiftClusterID=ocp43-abcde"}}]}],
		"securityGroups": [{"filter": {}, "name": "ocp43-worker"}],
		"serverMetadata": {"Name": "ocp43-worker", "openshiftClusterID": "ocp43-abcde"}, "tags": ["openshiftClusterID=ocp43-abcde"],
		"userDataSecret": {"name": "worker-user-data"}}`, "{" + more + "}"} {
		if err := json.Unmarshal([]byte(text), &spec); err != nil {
			panic(err)
		}
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		panic(err)
	}
	return raw
}

// accountOf has a user of its own, so that tests do not share a limiter.
func accountOf(password string) provider.Account {
	clouds := fmt.Sprintf(`clouds:
  openstack:
    auth: {auth_url: "http://cloud.test/identity", username: %q, password: %q, project_name: openshift, user_domain_name: Default}
    region_name: regionOne
`, uuid.NewUUID(), password)
	return provider.Account{
		Kind: Kind, Region: "openstack", Namespace: "openshift-machine-api", Secret: "openstack-cloud-credentials", ClusterID: "ocp43-abcde",
		Credentials: map[string][]byte{"clouds.yaml": []byte(clouds)},
		UserData: func(_ context.Context, name string) (map[string][]byte, string, error) {
			if name == "unread" {
				return nil, "", provider.Errorf(provider.Unknown, "the API server is not ready")
			}
			if name != "worker-user-data" {
				return nil, "", provider.Errorf(provider.Exhausted, "secret not found")
			}
			return map[string][]byte{"userData": []byte(`{"ignition": {"version": "3.2.0"}}`)}, "1", nil
		},
	}
}

func providerOf(f *fake) provider.Provider {
	return line(func(*cloud) (http.RoundTripper, error) { return f, nil })
}

func harness(t *testing.T, f *fake, more string) drivertest.Harness {
	t.Helper()
	var hangs atomic.Bool
	f.wire = func(ctx context.Context, _ *http.Request, after bool) (*http.Response, error) {
		if hangs.Load() && !after {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		time.Sleep(f.takes)
		return nil, ctx.Err()
	}
	bad := func(more string, names ...string) drivertest.Bad {
		return drivertest.Bad{Spec: specWith(more), Names: names}
	}
	missing := bad(`"networks": [{"filter": {}, "subnets": [{"filter": {"name": "ocp43-nowhere", "tags": "a"}}]}]`,
		"No network was found or provided", "providerSpec.value.networks[0].subnets[0].filter", `name: "ocp43-nowhere", tags: "a"`)
	return drivertest.Harness{
		Provider: providerOf(f),
		Account:  accountOf("secret"),
		Spec:     specWith(more),
		Invalid: []drivertest.Bad{
			bad(`"flavor": "99c99g"`, "providerSpec.value.flavor", "99c99g"),
			bad(`"image": "rhcos-nowhere"`, "providerSpec.value.image", "rhcos-nowhere"),
			bad(`"availabilityZone": "mars"`, "providerSpec.value.availabilityZone", "mars", "nova"),
			bad(`"networks": [{"filter": {}}]`, "providerSpec.value.networks[0].filter"),
			bad(`"flavor": 4`, "providerSpec.value"),
		},
		Missing: &missing,
		Exhaust: func(exhausted bool) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.quota = 0
			if exhausted {
				f.quota = len(f.things["servers"])
				if f.quota == 0 {
					f.quota = -1
				}
			}
		},
		Hang:     hangs.Store,
		Writes:   func() int { f.mu.Lock(); defer f.mu.Unlock(); return f.writes },
		Children: func() int { return f.count("ports") + f.count("trunks") + f.count("volumes") },
		Untagged: func() (string, func() bool) { return f.untagged(map[string]any{}) },
		Foreign: func(clusterID string) string {
			id, _ := f.untagged(map[string]any{"openshiftClusterID": clusterID})
			return id
		},
		TokensReused: true,
	}
}

// A field that is written otherwise than the API has it has no effect, as its warning says (B72): nobody is led to another account.
func TestCaseOfFieldsCounts(t *testing.T) {
	t.Parallel()
	p := providerOf(newFake())
	raw := specWith(`"cloudname": "other", "cloudssecret": {"name": "other"}`)
	if region, secret, err := p.Account(raw); err != nil || region != "openstack" || secret != "openstack-cloud-credentials" {
		t.Errorf("Account = %q, %q, %v", region, secret, err)
	}
}
