// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/arm"
)

func TestSecretThatLacksKeys(t *testing.T) {
	t.Parallel()
	for key, value := range map[string]string{
		"azure_subscription_id": "", "azure_tenant_id": "", "azure_client_id": "", "azure_client_secret": "",
		"azure_subscription_id ": "../../x", "azure_tenant_id ": "a/b",
	} {
		a := account()
		key = strings.TrimSpace(key)
		a.Credentials[key] = []byte(value)
		_, err := open(a)
		if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "machines/azure-cloud-credentials") {
			t.Errorf("Open = %v, want Denied naming %s", err, key)
		}
	}
}

// Location and resource group are the spec's, else the Secret's; without both nothing is asked.
func TestWhereInstancesAre(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		region, ofSecret, group       string
		location, in, networks, names string
	}{
		{"westus/own", "East US 2", "Shared", "westus", "own", "shared", ""},
		{"westus", "eastus2", "Shared", "westus", "shared", "shared", ""},
		{"", "East US 2", "Shared", "eastus2", "shared", "shared", ""},
		{"/own", "eastus2", "", "eastus2", "own", "own", ""},
		{"west us?", "eastus2", "Shared", "", "", "", "west us?"},
		{"westus/a b", "eastus2", "Shared", "", "", "", "a b"},
		{"westus/..", "eastus2", "Shared", "", "", "", ".."},
	} {
		a := account()
		a.Region = c.region
		a.Credentials["azure_region"], a.Credentials["azure_resourcegroup"] = []byte(c.ofSecret), []byte(c.group)
		d, err := open(a)
		if c.names != "" {
			if provider.CodeOf(err) != provider.Invalid || !strings.Contains(err.Error(), c.names) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || d.location != c.location || d.group != c.in || d.network != c.networks {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if who, err := d.Identity(t.Context()); err != nil || who != arm.Subscription+":"+c.location+"/"+c.in {
			t.Errorf("%+v: the account is %s, %v", c, who, err)
		}
	}
}

// Nobody who writes a spec or a Secret chooses a host: a location leads to one of three clouds (RELIABILITY §4).
func TestNoSpecNamesAHost(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]string{
		"eastus2": "https://management.azure.com", "usgovvirginia": "https://management.usgovcloudapi.net", "usdodeast": "https://management.usgovcloudapi.net",
		"chinanorth3": "https://management.chinacloudapi.cn", "germanywestcentral": "https://management.azure.com",
	} {
		a := account()
		a.Region = location
		a.Credentials["azure_region"] = []byte(location)
		a.Credentials["azure_endpoint_url"] = []byte("https://example.com")
		d, err := open(a)
		if err != nil || d.endpoint != want {
			t.Errorf("%s is at %s, %v; want %s", location, d.endpoint, err, want)
		}
	}
	for _, location := range []string{"example.com", "eastus@example.com", "a#b", strings.Repeat("a", 64), "east/us"} {
		region, _, err := Provider().Account(spec(map[string]any{"location": location, "resourceGroup": ""}))
		must(t, err)
		a := account()
		if a.Region = region; strings.Contains(location, "/") {
			continue // what follows is the resource group
		}
		if _, err := open(a); provider.CodeOf(err) != provider.Invalid || !strings.Contains(err.Error(), "location") {
			t.Errorf("%s: Open = %v", location, err)
		}
	}
}

// The credentials go to the cloud that their Secret is of: no spec has them sent to who runs another one (RELIABILITY §4).
func TestSpecLeadsToNoOtherCloud(t *testing.T) {
	t.Parallel()
	for home, code := range map[string]provider.Code{"eastus2": provider.Denied, "": provider.Denied, "usgovvirginia": provider.Denied} {
		a := account()
		a.Region = "chinaeast/" + arm.Group
		a.Credentials["azure_region"] = []byte(home)
		if _, err := open(a); provider.CodeOf(err) != code || !strings.Contains(fmt.Sprint(err), "chinaeast") {
			t.Errorf("%q: Open = %v (%v)", home, err, provider.CodeOf(err))
		}
	}
}

// Nor are they sent to the public cloud from one that is not served: OpenShift knows one for secret data of the United States.
func TestCloudThatIsNotServedIsAskedForNothing(t *testing.T) {
	t.Parallel()
	for _, home := range []string{"usseceast", "USSec West", "usnatwest"} {
		a := account()
		a.Region = ""
		a.Credentials["azure_region"] = []byte(home)
		if _, err := open(a); provider.CodeOf(err) != provider.Denied || !strings.Contains(fmt.Sprint(err), normal(home)) {
			t.Errorf("%q: Open = %v (%v)", home, err, provider.CodeOf(err))
		}
		a = account()
		a.Region = home + "/" + arm.Group
		if _, err := open(a); err == nil {
			t.Errorf("%q is taken for a location of %s's cloud", home, arm.Location)
		}
	}
}

// What the Secret lacks and the spec does not say is mended in the Secret: no Machine fails for good by it.
func TestSecretThatNamesNoPlace(t *testing.T) {
	t.Parallel()
	for key, region := range map[string]string{"azure_region": "", "azure_resourcegroup": "eastus2"} {
		a := account()
		a.Region = region
		delete(a.Credentials, key)
		if _, err := open(a); provider.CodeOf(err) != provider.Denied || !strings.Contains(fmt.Sprint(err), key) {
			t.Errorf("%s: Open = %v", key, err)
		}
	}
}

// So is what the Secret says and no place has as its name; what the spec says is the spec's.
func TestWhoNamesWhatIsNoPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		region, key, value string
		code               provider.Code
	}{
		{"", "azure_region", "east-us2", provider.Denied},
		{"eastus2", "azure_region", "east-us2", provider.Denied},
		{"eastus2", "azure_resourcegroup", "my group!", provider.Denied},
		{"eastus2/clusters", "azure_resourcegroup", "my group!", provider.Denied},
		{"east-us2", "azure_region", "eastus2", provider.Invalid},
		{"eastus2/my group!", "azure_resourcegroup", "clusters", provider.Invalid},
		{"eastus2/my group!", "azure_resourcegroup", "", provider.Invalid},
	} {
		a := account()
		a.Region = c.region
		a.Credentials[c.key] = []byte(c.value)
		if _, err := open(a); provider.CodeOf(err) != c.code || !strings.Contains(fmt.Sprint(err), c.key) {
			t.Errorf("%+v: Open = %v", c, err)
		}
	}
}

// A federated token is read where such tokens are mounted: no Secret has another file sent away (RELIABILITY §4).
func TestWhichFilesAreSentAsTokens(t *testing.T) {
	t.Parallel()
	for file, ok := range map[string]bool{
		"/var/run/secrets/azure/tokens/azure-identity-token":  true,
		"/var/run/secrets/openshift/serviceaccount/token":     true,
		"/var/run/secrets/kubernetes.io/serviceaccount/token": false,
		"/var/run/secrets/azure/tokens/../../kubernetes.io/x": false,
		"/etc/passwd":                    false,
		"var/run/secrets/azure/tokens/x": false,
		"/var/run/secrets/azure/tokens/": false,
		"/var/run/secrets/openshift/serviceaccount/../../../etc/passwd": false,
	} {
		a := account()
		delete(a.Credentials, "azure_client_secret")
		a.Credentials["azure_federated_token_file"] = []byte(file)
		_, err := open(a)
		if ok != (err == nil) || err != nil && (provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "azure_federated_token_file")) {
			t.Errorf("%s: Open = %v", file, err)
		}
	}
}

// The client follows no redirect, speaks no old TLS, waits its turn and dials what clouds are at: a spec cannot lead it elsewhere.
func TestClientGoesNowhereElse(t *testing.T) {
	t.Parallel()
	d, err := open(account())
	must(t, err)
	if err := d.http.CheckRedirect(nil, nil); err != http.ErrUseLastResponse { //nolint:errorlint // the very one
		t.Errorf("redirects: %v", err)
	}
	limited, ok := d.http.Transport.(pacer)
	if !ok || limited.Limiter != d.limiter {
		t.Fatalf("the transport is %T", d.http.Transport)
	}
	base, ok := limited.Base.(*http.Transport)
	if !ok || base.TLSClientConfig.MinVersion < tls.VersionTLS12 {
		t.Fatalf("the transport below is %T", limited.Base)
	}
	for _, address := range []string{"169.254.169.254:80", "168.63.129.16:80"} {
		if c, err := base.DialContext(t.Context(), "tcp", address); provider.CodeOf(err) != provider.Denied {
			t.Errorf("%s is dialed: %v, %v", address, c, err)
		}
	}
}

// A driver that is open tells nobody its credentials, however it is printed, nor do its errors.
func TestDriverTellsNoCredentials(t *testing.T) {
	t.Parallel()
	d, _ := wired(t, &arm.Cloud{Secret: "another"}, account())
	_, listed := d.List(t.Context())
	_, resolved := d.Resolve(t.Context(), spec(nil))
	text, err := json.Marshal([]any{d})
	for _, told := range []string{fmt.Sprint(d), fmt.Sprintf("%+v", d), fmt.Sprintf("%#v", d), fmt.Sprint(string(text), err), fmt.Sprint(listed), fmt.Sprint(resolved)} {
		for _, form := range []string{secret, strings.Trim(fmt.Sprint([]byte(secret)), "[]"), "0x63, 0x61, 0x6e, 0x61, 0x72, 0x79", "Y2FuYXJ5"} {
			if strings.Contains(told, form) {
				t.Errorf("it tells %s: %s", form, told)
			}
		}
	}
}

// User data is passed on as it is, up to what Azure takes; it is nobody's to be told.
func TestUserDataThatIsTooLongIsNoInvalidSpec(t *testing.T) {
	t.Parallel()
	a := account()
	size := 65536
	a.UserData = func(context.Context, string) (map[string][]byte, string, error) {
		return map[string][]byte{"userData": []byte(strings.Repeat("x", size))}, "1", nil
	}
	d, _ := wired(t, &arm.Cloud{}, a)
	_, err := d.Resolve(t.Context(), spec(nil))
	if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "machines/worker-user-data: 65536 bytes") {
		t.Errorf("Resolve = %v", err)
	}
	size--
	if _, err := d.Resolve(t.Context(), spec(nil)); err != nil {
		t.Errorf("Resolve = %v", err)
	}
}

// Over sockets, with TLS and through a proxy, as in a cluster, an instance comes and goes; whoever is not believed is told nothing.
func TestLifeOverTheNetwork(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{Secret: secret, Page: 1}
	front, err := cloud.Serve(t.Context())
	must(t, err)
	t.Cleanup(front.Stop)
	at, err := url.Parse(front.Proxy)
	must(t, err)
	over := func(believed bool) *driver {
		d, err := open(account())
		must(t, err)
		limited, _ := d.http.Transport.(pacer)
		base, _ := limited.Base.(*http.Transport)
		base.Proxy = http.ProxyURL(at)
		if believed {
			base.TLSClientConfig.RootCAs = x509.NewCertPool()
			base.TLSClientConfig.RootCAs.AppendCertsFromPEM(front.CA)
		}
		return d
	}
	if _, err := over(false).List(t.Context()); provider.CodeOf(err) != provider.Unknown || !strings.Contains(fmt.Sprint(err), "certificate") || len(cloud.Calls()) > 0 {
		t.Errorf("List = %v (%v), asked is %v", err, provider.CodeOf(err), cloud.Calls())
	}
	d := over(true)
	for _, name := range []string{"worker-a", "worker-b"} {
		_, _, err = create(t, d, name, spec(map[string]any{"publicIP": true}))
		must(t, err)
	}
	all, err := d.List(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("List = %+v, %v", all, err)
	}
	for _, in := range all {
		deleted(t, d, provider.Ref{ID: in.ID})
		deleted(t, d, provider.Ref{UID: in.UID, Name: in.Name, ProviderID: in.ProviderID})
	}
	if left := cloud.Names(arm.Instances, arm.Cards, arm.Addresses, arm.Disks); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}
