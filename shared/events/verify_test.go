// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"math"
	"strings"
	"testing"
)

// Whatever a stranger sends for a token is unauthorized, unless it says what the issuer signed.
func FuzzVerify(f *testing.F) {
	a := newSigner(f)
	header := map[string]string{"alg": "RS256", "kid": "rsa"}
	good := []string{a.token(f, header, nil), a.token(f, map[string]string{"alg": "ES256", "kid": "ec"}, nil)}
	for _, token := range good {
		f.Add(token)
	}
	f.Add(a.token(f, header, func(c map[string]any) { c["exp"] = 1e300 }))
	f.Add(a.token(f, header, func(c map[string]any) { c["aud"] = map[string]any{"a": 1} }))
	f.Add("..")
	f.Add(b64([]byte(`{"alg":"none","kid":"rsa"}`)) + "." + b64([]byte(`{"exp":9e99}`)) + ".")
	f.Add(b64([]byte(strings.Repeat("[", 9000))) + ".a.b")
	f.Fuzz(func(t *testing.T, token string) {
		err := a.Verify(bearing(token))
		says := func(other string) bool { return strings.HasPrefix(token, other[:strings.LastIndex(other, ".")+1]) }
		switch {
		case err != nil && !errors.Is(err, ErrUnauthorized):
			t.Errorf("%q: %v", token, err)
		case err == nil && !says(good[0]) && !says(good[1]):
			t.Errorf("%q is let in", token)
		}
	})
}

// Whatever an issuer answers, its keys can verify something: RSA of 2048 bits with an exponent that Go takes, or points of P-256.
func FuzzKeys(f *testing.F) {
	a := newSigner(f)
	_, keys, err := a.keys(context.Background())
	if err != nil {
		f.Fatal(err)
	}
	long := strings.Repeat("_", 342)
	f.Add(string(keys))
	f.Add(`{"keys":[{"kty":"RSA","kid":"a","n":"` + long + `","e":"AQAB"}]}`)
	f.Add(`{"keys":[{"kty":"RSA","kid":"none","n":"` + long + `","e":""}]}`)
	f.Add(`{"keys":[{"kty":"RSA","kid":"one","n":"` + long + `","e":"AQ"}]}`)
	f.Add(`{"keys":[{"kty":"RSA","kid":"cut","n":"` + long + `","e":"AQAAAAAAAAEAAQ"}]}`)
	f.Add(`{"keys":[null,{"kty":"EC","crv":"P-256","x":"","y":""}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		known, err := parseKeys([]byte(text))
		if err != nil && len(known) > 0 {
			t.Errorf("%v, and yet %d keys", err, len(known))
		}
		for id, key := range known {
			if signed("RS256", key, "text", make([]byte, 256)) || signed("ES256", key, "text", make([]byte, 64)) {
				t.Errorf("key %q takes nothing for a signature", id)
			}
			switch key := key.(type) {
			case *rsa.PublicKey:
				if key.N.BitLen() < 2048 || key.E < 3 || key.E%2 == 0 || key.E > math.MaxInt32 {
					t.Errorf("key %q of %d bits has the exponent %d", id, key.N.BitLen(), key.E)
				}
			case *ecdsa.PublicKey:
				if key.Curve != elliptic.P256() {
					t.Errorf("key %q is of %v", id, key.Curve.Params().Name)
				}
			default:
				t.Errorf("key %q is a %T", id, key)
			}
		}
	})
}
