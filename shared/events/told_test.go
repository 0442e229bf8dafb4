// SPDX-License-Identifier: Apache-2.0

package events

import (
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A decision that could not be carried out is no success, whatever was decided: the event would not be delivered again.
func TestFailureIsToldBesideADecision(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	if err := Reply(t.Context(), w, "1", &Decision{Function: "f", Plan: "p"}, errors.New("timeout")); err != nil || w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "timeout") {
		t.Errorf("%v: %d %s", err, w.Code, w.Body)
	}
}

// deadlines are what a connection is told of.
type deadlines struct {
	*httptest.ResponseRecorder
	set int
}

func (d *deadlines) SetReadDeadline(time.Time) error {
	d.set++
	return nil
}

// Who sends no body waits for his answer, as all do whose event has no data: a deadline would end the request that is being handled.
func TestNobodyIsHurriedWithoutABody(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		r    *http.Request
		want int
	}{
		"a body":  {httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x")), 1},
		"none":    {httptest.NewRequest(http.MethodPost, "/", http.NoBody), 0},
		"nothing": {&http.Request{}, 0},
	} {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		if Hurry(w, tt.r); w.set != tt.want {
			t.Errorf("%s: %d deadlines, want %d", name, w.set, tt.want)
		}
	}
}

// RELIABILITY §4: a key that anybody could sign with, or that is for something else, verifies nothing.
func TestKeysThatVerifyNothing(t *testing.T) {
	t.Parallel()
	number := func(bits uint) string {
		n := new(big.Int).Lsh(big.NewInt(1), bits-1)
		return base64.RawURLEncoding.EncodeToString(n.SetBit(n, 0, 1).Bytes())
	}
	const x, y = "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY", "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU" // the curve's own point
	for name, tt := range map[string]struct {
		key  string
		want int
	}{
		"RSA":                       {fmt.Sprintf(`{"kty": "RSA", "use": "sig", "n": %q, "e": "AQAB"}`, number(2048)), 1},
		"RSA, for anything":         {fmt.Sprintf(`{"kty": "RSA", "n": %q, "e": "AQAB"}`, number(2048)), 1},
		"RSA, of few bits":          {fmt.Sprintf(`{"kty": "RSA", "n": %q, "e": "AQAB"}`, number(2047)), 0},
		"RSA, with the exponent 1":  {fmt.Sprintf(`{"kty": "RSA", "n": %q, "e": "AQ"}`, number(2048)), 0},
		"RSA, with an even one":     {fmt.Sprintf(`{"kty": "RSA", "n": %q, "e": "AQAA"}`, number(2048)), 0},
		"RSA, with one of 32 bits":  {fmt.Sprintf(`{"kty": "RSA", "n": %q, "e": %q}`, number(2048), number(32)), 0},
		"RSA, to encrypt":           {fmt.Sprintf(`{"kty": "RSA", "use": "enc", "n": %q, "e": "AQAB"}`, number(2048)), 0},
		"EC":                        {fmt.Sprintf(`{"kty": "EC", "crv": "P-256", "x": %q, "y": %q}`, x, y), 1},
		"EC, of another curve":      {fmt.Sprintf(`{"kty": "EC", "crv": "P-384", "x": %q, "y": %q}`, x, y), 0},
		"of another kind":           {fmt.Sprintf(`{"kty": "OKP", "crv": "P-256", "x": %q, "y": %q}`, x, y), 0},
		"EC, beside the curve":      {fmt.Sprintf(`{"kty": "EC", "crv": "P-256", "x": %q, "y": %q}`, x, x), 0},
		"EC, x beyond all numbers":  {fmt.Sprintf(`{"kty": "EC", "crv": "P-256", "x": %q, "y": %q}`, number(257), y), 0},
		"EC, y beyond all numbers":  {fmt.Sprintf(`{"kty": "EC", "crv": "P-256", "x": %q, "y": %q}`, x, number(257)), 0},
		"what says nothing of what": {`{}`, 0},
	} {
		if keys, err := parseKeys([]byte(`{"keys": [` + tt.key + `]}`)); err != nil || len(keys) != tt.want {
			t.Errorf("%s: %d keys, want %d; %v", name, len(keys), tt.want, err)
		}
	}
}

// RELIABILITY §4: what no key of the issuer signed is not signed, whatever it says of itself.
func TestWithoutAKeyNothingIsSigned(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"RS256", "ES256", "HS256", "none", ""} {
		for name, key := range map[string]crypto.PublicKey{"none": nil, "a text": []byte("secret"), "of another kind": ed25519.PublicKey(make([]byte, 32))} {
			if signed(algorithm, key, "text", make([]byte, 64)) {
				t.Errorf("%s with key %s", algorithm, name)
			}
		}
	}
}
