// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"
	"testing"
)

// Who issues tokens may be somewhere else than the API server, as on EKS. It is believed for the name; keys come from itself all the same,
// wherever its document says they are.
func TestIssuerIsWhoTheServerNames(t *testing.T) {
	t.Parallel()
	f, c := serve(t,
		reply(200, typeJSON, `{"issuer":"https://oidc.example.com/id/1","jwks_uri":"https://10.0.0.1:6443/openid/v1/jwks"}`),
		reply(200, "application/jwk-set+json", `{"keys":[]}`),
	)
	name, keys, err := c.Issuer(t.Context())
	if name != "https://oidc.example.com/id/1" || string(keys) != `{"keys":[]}` || err != nil {
		t.Errorf("issuer %q, keys %s, error %v", name, keys, err)
	}
	if want := []string{"GET /.well-known/openid-configuration", "GET /openid/v1/jwks"}; !slices.Equal(f.asked, want) {
		t.Errorf("asked %q", f.asked)
	}
}
