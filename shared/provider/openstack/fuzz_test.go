// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Whatever clouds.yaml says: it names whom to ask, over http or https, and who asks; or an error tells what is wrong, and no secret.
func FuzzClouds(f *testing.F) {
	const canary = "canary-7f3a"
	for _, rest := range []string{
		"", "region_name: a", "verify: false", "cacert: /etc/ca.pem", "profile: x", "auth: []", "\t", "? [", "&a [*a, *a]", "auth: {auth_url: http://b}",
		"interface: internal", "auth_type: v3token", "verify: " + strings.Repeat("[", 9000),
	} {
		f.Add("http://a:5000", "u", "openstack", rest, []byte(nil))
	}
	f.Add("https://a/v3", "", "other", "", []byte("-----BEGIN CERTIFICATE-----"))
	f.Add("ftp://a:b@c", "u", "openstack", "", []byte{0, 1})
	f.Fuzz(func(t *testing.T, at, user, name, rest string, ca []byte) {
		text := fmt.Sprintf("clouds:\n  openstack:\n    auth: {auth_url: %q, username: %q, password: %s, token: \"\"}\n    %s\n", at, user, canary, rest)
		c, err := readClouds(map[string][]byte{cloudsKey: []byte(text), caKey: ca}, name)
		if err != nil {
			if strings.Contains(err.Error(), canary) {
				t.Errorf("%v tells the secret of\n%s", err, text)
			}
			return
		}
		u, err := url.Parse(c.auth.IdentityEndpoint)
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" || !strings.HasSuffix(u.String(), "/v3/") {
			t.Errorf("%q is asked: %v", c.auth.IdentityEndpoint, err)
		}
		if c.auth.Password == "" && c.auth.ApplicationCredentialSecret == "" && c.auth.TokenID == "" {
			t.Errorf("nothing proves who asks:\n%s", text)
		}
	})
}

// refusing is a fake that refuses what it has no answer to, as OpenStack does.
type refusing struct{ *fake }

func (f refusing) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	defer func() {
		if recover() != nil {
			answer, err = nil, errors.New("connection reset by peer")
		}
	}()
	return f.fake.RoundTrip(r)
}

// Whatever stands in a Machine for what was made and resolved: a step is made or refused, and an instance is the
// Machine's own.
func FuzzCreate(f *testing.F) {
	opened := func(tb testing.TB) provider.Driver {
		tb.Helper()
		cloud := line(func(*cloud) (http.RoundTripper, error) { return refusing{newFake()}, nil })
		d, err := cloud.Open(tb.Context(), accountOf("secret"))
		if err != nil {
			tb.Fatal(err)
		}
		return d
	}
	usual, err := opened(f).Resolve(f.Context(), specWith(""))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(nil), []byte(usual))
	f.Add([]byte(`{"ports":["a"]}`), []byte(usual))
	f.Add([]byte(`{"ports":["../servers/a"],"refused":"x@9999999999999999999"}`), []byte(usual))
	f.Add([]byte(`null`), []byte(`{"ports":[{}]}`))
	f.Add([]byte(`{"ports":[null,null]}`), []byte(`{"ports":[null,null],"disks":[{}],"root":{},"floatingIP":"x"}`))
	f.Add([]byte(`[`), []byte(`{"ports":[{"body":{"network_id":"../x"}}],"flavor":"?a=b","image":"/"}`))
	f.Fuzz(func(t *testing.T, progress, request []byte) {
		in, err := opened(t).Create(t.Context(), provider.Ref{UID: "machine-uid", Name: "worker-a", Token: "token-1", Progress: progress}, request)
		switch {
		case err != nil && in.ID != "", err != nil && len(in.Progress) > 0 && !json.Valid(in.Progress):
			t.Errorf("%v, and yet %+v", err, in)
		case err == nil && in.State == provider.StateIncomplete && !json.Valid(in.Progress):
			t.Errorf("a step whose progress is %q", in.Progress)
		case err == nil && in.State != provider.StateIncomplete && in.UID != "machine-uid":
			t.Errorf("the instance is %+v", in)
		}
	})
}
