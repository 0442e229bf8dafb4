// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

func TestCloudsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for name, c := range map[string]struct{ text, want string }{
		"no YAML":            {"clouds: [" + secret, "is no YAML"},
		"another cloud":      {"clouds: {other: {auth: {password: " + secret + "}}}", `has no cloud "openstack", but other`},
		"no user":            {"clouds: {openstack: {auth: {auth_url: http://a, password: " + secret + "}}}", "neither a user"},
		"no URL":             {"clouds: {openstack: {auth: {auth_url: nowhere, username: a, password: " + secret + "}}}", "auth_url"},
		"neither http":       {"clouds: {openstack: {auth: {auth_url: 'ftp://a:5000', username: a, password: " + secret + "}}}", "auth_url"},
		"a socket":           {"clouds: {openstack: {auth: {auth_url: 'unix://run/keystone.sock', username: a, password: " + secret + "}}}", "auth_url"},
		"no host":            {"clouds: {openstack: {auth: {auth_url: 'https:///v3', username: a, password: " + secret + "}}}", "auth_url"},
		"password in URL":    {"clouds: {openstack: {auth: {auth_url: 'http://a:" + secret + "@b', username: a, password: b}}}", "auth_url"},
		"a file's CA":        {"clouds: {openstack: {cacert: /etc/ca.pem, auth: {auth_url: https://a, username: a, password: " + secret + "}}}", "under the key cacert"},
		"a file's key":       {"clouds: {openstack: {cert: /etc/cert.pem, auth: {auth_url: https://a, username: a, password: " + secret + "}}}", "cert names a file"},
		"a public profile":   {"clouds: {openstack: {profile: vexxhost, auth: {auth_url: https://a, username: a, password: " + secret + "}}}", "profile"},
		"a field that is no": {"clouds: {openstack: {auth: " + secret + "}}", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := accountOf("")
			a.Credentials = map[string][]byte{"clouds.yaml": []byte(c.text)}
			_, err := Provider().Open(t.Context(), a)
			if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "openshift-machine-api/openstack-cloud-credentials") {
				t.Errorf("Open = %v, want Denied, naming the Secret and %q", err, c.want)
			}
			if strings.Contains(fmt.Sprint(err), secret) {
				t.Errorf("%v tells the secret", err)
			}
		})
	}
}

func TestWaysToLogIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ auth, want string }{
		"names":                  {`{auth_url: "http://a:5000", username: u, password: p, project_name: x, user_domain_name: Users, project_domain_name: Projects}`, "http://a:5000/v3/|||Users|u|||| Projects"},
		"ids":                    {`{auth_url: "http://a/v3/", user_id: u, password: p, project_id: x}`, "http://a/v3/|u||||||| "},
		"one domain":             {`{auth_url: "http://a", username: u, password: p, project_name: x, domain_id: d}`, "http://a/v3/||d||u|||| d"},
		"no domain":              {`{auth_url: "http://a", username: u, password: p, project_name: x}`, "http://a/v3/||default||u|||| default"},
		"application credential": {`{auth_url: "http://a", application_credential_id: i, application_credential_secret: s}`, "http://a/v3/|||||||i|"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readClouds(map[string][]byte{"clouds.yaml": []byte("clouds: {openstack: {auth: " + c.auth + "}}")}, "openstack")
			if err != nil {
				t.Fatal(err)
			}
			who := got.identity()
			if scope := got.auth.Scope; scope != nil {
				who += " " + scope.DomainID + scope.DomainName
			}
			if strings.ReplaceAll(who, " ", "") != strings.ReplaceAll(c.want, " ", "") {
				t.Errorf("logs in as %q, want %q", who, c.want)
			}
			if text := fmt.Sprintf("%v %+v %#v", got, got, got); strings.Contains(text, "Password") {
				t.Errorf("%s tells more than the name", text)
			}
		})
	}
}

// TestRefusedCredentialsAreNotTriedAgainForAMinute: a cloud locks accounts that try too often. A new Secret is tried at
// once.
func TestRefusedCredentialsAreNotTriedAgainForAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.refuses = "wrong"
		d, err := providerOf(f).Open(t.Context(), accountOf("wrong"))
		if err != nil {
			t.Fatal(err)
		}
		logins := 0
		f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
			if !after && strings.HasSuffix(r.URL.Path, "/auth/tokens") {
				logins++
			}
			return nil, nil
		}
		for range 30 { // five minutes of scans
			_, err := d.List(t.Context())
			if provider.CodeOf(err) != provider.Denied || strings.Contains(fmt.Sprint(err), "wrong") {
				t.Fatalf("List = %v, want Denied", err)
			}
			time.Sleep(10 * time.Second)
		}
		if logins != 5 {
			t.Errorf("%d logins in five minutes", logins)
		}
		mended, err := providerOf(f).Open(t.Context(), accountOf("right"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := mended.List(t.Context()); err != nil {
			t.Errorf("with the right password: %v", err)
		}
	})
}

// TestPasswordThatChangesUnderWay: the token runs out, and there is no other.
func TestPasswordThatChangesUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.tokenIs = 30 * time.Second
		l := newLife(t, f, "")
		l.up(t)
		f.mu.Lock()
		f.refuses = "secret"
		f.mu.Unlock()
		time.Sleep(time.Minute)
		before := len(f.calls)
		for range 5 {
			if _, err := l.Find(t.Context(), l.ref); provider.CodeOf(err) != provider.Denied {
				t.Errorf("Find = %v, want Denied", err)
			}
		}
		if asked := len(f.calls) - before; asked > 2 {
			t.Errorf("the cloud was asked %d times", asked)
		}
		f.mu.Lock()
		f.refuses = ""
		f.mu.Unlock()
		time.Sleep(time.Minute)
		if found, err := l.Find(t.Context(), l.ref); err != nil || len(found) != 1 {
			t.Errorf("Find = %v, %v", found, err)
		}
	})
}

// TestCertificates is about the one thing that no fake shows: TLS.
func TestCertificates(t *testing.T) {
	t.Parallel()
	f := newFake()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := f.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return
		}
		for k, v := range answer.Header {
			w.Header()[k] = v
		}
		w.WriteHeader(answer.StatusCode)
		_, _ = strings.NewReader("{}").WriteTo(w)
	}))
	t.Cleanup(server.Close)
	signer := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, c := range map[string]struct {
		ca     []byte
		more   string
		accept bool
	}{
		"signed by the Secret's": {signer, "", true},
		"signed by a stranger's": {nil, "", false},
		"not checked":            {nil, "verify: false, ", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := "clouds: {openstack: {" + c.more + "auth: {auth_url: '" + server.URL + "/identity', username: " + name[:3] + ", password: b, project_name: c}}}"
			d, err := Provider().Open(t.Context(), provider.Account{Kind: Kind, Region: "openstack", Namespace: "n", Secret: "s", ClusterID: "c", Credentials: map[string][]byte{"clouds.yaml": []byte(text), "cacert": c.ca}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = d.List(t.Context())
			said := fmt.Sprint(err)
			if refused := provider.CodeOf(err) == provider.Denied && strings.Contains(said, "secret n/s: ") && strings.Contains(said, "certificate") && strings.Contains(said, "key cacert"); refused == c.accept {
				t.Errorf("List = %v", err)
			}
		})
	}
	a := accountOf("secret")
	a.Credentials["cacert"] = []byte("no PEM")
	if _, err := Provider().Open(t.Context(), a); provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "no certificate") {
		t.Errorf("Open = %v", err)
	}
}

// What lets a cloud not prove who it is, is told with the Secret's key; asking needs no cloud (RELIABILITY 4).
func TestCloudsThatNeedNotProveWhoTheyAre(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"auth_url: 'https://keystone.test'":                       "",
		"auth_url: 'HTTPS://keystone.test'}, verify: true, x: {":  "",
		"auth_url: 'https://keystone.test'}, verify: false, x: {": `key clouds.yaml: cloud "openstack": verify is false`,
		"auth_url: 'http://keystone.test'":                        `key clouds.yaml: cloud "openstack": auth.auth_url is no https URL`,
	} {
		a := accountOf("")
		a.Credentials = map[string][]byte{"clouds.yaml": []byte("clouds: {openstack: {auth: {username: a, password: b, project_name: c, " + text + "}}}")}
		d, err := Provider().Open(t.Context(), a)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		i, tells := d.(provider.Insecure)
		if !tells || i.Insecure() != want {
			t.Errorf("%s: %q, want %q", text, i.Insecure(), want)
		}
	}
}

// Who has many clouds writes once what is the same in all: that is read.
func TestCloudsFileWithManyAliases(t *testing.T) {
	t.Parallel()
	text := "tls: &tls {verify: true, interface: public}\nbase: &base {<<: *tls, auth_type: password}\n" +
		"one: &one {auth_url: https://keystone-1:5000/v3, username: machines, password: canary}\n" +
		"two: &two {auth_url: https://keystone-2:5000/v3, username: machines, password: canary}\nclouds:\n"
	for i := range 20 {
		text += fmt.Sprintf("  one-%d: {<<: *base, region_name: one, auth: {<<: *one, project_name: p%d}}\n", i, i)
		text += fmt.Sprintf("  two-%d: {<<: *base, region_name: two, auth: {<<: *two, project_name: p%d}}\n", i, i)
	}
	c, err := readClouds(map[string][]byte{cloudsKey: []byte(text)}, "two-7")
	if err != nil || c.region != "two" || c.auth.Scope.ProjectName != "p7" || c.auth.IdentityEndpoint != "https://keystone-2:5000/v3/" {
		t.Errorf("%v: %v", c, err)
	}
}

// A file of 50 kB whose aliases repeat much would take more memory than a function has (2c).
func TestCloudsFileDoesNotExpand(t *testing.T) {
	t.Parallel()
	text := "a: &a " + strings.Repeat("e", 30000) + "\nb: [" + strings.Repeat("*a, ", 4000) + "*a]\nclouds: {openstack: {auth: {auth_url: https://keystone:5000}}}\n"
	if _, err := readClouds(map[string][]byte{cloudsKey: []byte(text)}, "openstack"); err == nil || !strings.Contains(err.Error(), "aliases") {
		t.Error(err)
	}
}
