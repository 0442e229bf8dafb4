// SPDX-License-Identifier: Apache-2.0

package events

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A key that is for something else than signatures makes none, and a token of nobody is not that of an issuer who does not say his name.
func TestIssuersThatProveNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		issuer func(name string, keys []byte) (string, []byte)
		claim  string
	}{
		"a key to encrypt with": {func(name string, keys []byte) (string, []byte) {
			return name, bytes.ReplaceAll(keys, []byte(`"use":"sig"`), []byte(`"use":"enc"`))
		}, issuer},
		"an issuer without a name": {func(_ string, keys []byte) (string, []byte) { return "", keys }, ""},
	} {
		a := newSigner(t)
		a.Issuer = func(ctx context.Context) (string, []byte, error) {
			who, keys, err := a.keys(ctx)
			who, keys = c.issuer(who, keys)
			return who, keys, err
		}
		r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+a.token(t, map[string]string{"alg": "RS256", "kid": "rsa"}, with("iss", c.claim)))
		if err := a.Verify(r); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
