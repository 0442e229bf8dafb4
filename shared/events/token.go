// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ErrUnauthorized is a request whose sender did not prove to be one of those who may send. Nothing of it is read.
var ErrUnauthorized = errors.New("unauthorized")

const (
	maxToken = 16 << 10 // tokens of service accounts have about 1 kB
	skew     = 30 * time.Second
)

// Verifier checks the tokens that Eventing sends where its flag authentication-oidc is on: signature, issuer, audience,
// subject and time. It is safe for concurrent use.
type Verifier struct {
	Audience string
	Subjects []string // patterns of path.Match; a token must fit one
	// Issuer says who issues the cluster's tokens, and with which keys: a JSON Web Key Set.
	Issuer func(context.Context) (name string, keys []byte, err error)
	Clock  func() time.Time

	trusted atomic.Pointer[authority]
	mu      sync.Mutex // held while the issuer is asked
	next    time.Time  // when the issuer may be asked again
	failed  error      // why its last answer was none
}

type claims struct {
	Issuer    string          `json:"iss"`
	Subject   string          `json:"sub"`
	Audience  json.RawMessage `json:"aud"`
	Expires   float64         `json:"exp"`
	NotBefore float64         `json:"nbf"`
}

// Verify returns nil if r carries a token of one of the subjects, meant for the audience, now. Otherwise its error is
// ErrUnauthorized, or that the issuer could not be asked, which may pass.
func (v *Verifier) Verify(r *http.Request) error {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || len(token) > maxToken {
		return fmt.Errorf("%w: no token", ErrUnauthorized)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return fmt.Errorf("%w: not a signed token", ErrUnauthorized)
	}
	var header struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
	}
	if err := decode(parts[0], &header); err != nil {
		return err
	}
	issuer, err := v.issuer(r.Context(), header.KeyID)
	if err != nil {
		return err
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return fmt.Errorf("%w: signature", ErrUnauthorized)
	}
	if !signed(header.Algorithm, issuer.keys[header.KeyID], parts[0]+"."+parts[1], signature) {
		return fmt.Errorf("%w: the signature is not the issuer's", ErrUnauthorized)
	}
	var c claims
	if err := decode(parts[1], &c); err != nil {
		return err
	}
	return v.accept(c, issuer.name)
}

func decode(part string, into any) error {
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("%w: not a token", ErrUnauthorized)
	}
	return nil
}

// signed reports whether the key made the signature. The key's type chooses the algorithm; the header's word must agree.
func signed(algorithm string, key crypto.PublicKey, text string, signature []byte) bool {
	digest := sha256.Sum256([]byte(text))
	switch key := key.(type) {
	case *rsa.PublicKey:
		return algorithm == "RS256" && rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature) == nil
	case *ecdsa.PublicKey:
		if algorithm != "ES256" || len(signature) != 64 {
			return false
		}
		return ecdsa.Verify(key, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:]))
	}
	return false
}

func (v *Verifier) accept(c claims, issuer string) error {
	var one string
	var several []string
	if json.Unmarshal(c.Audience, &several) != nil && json.Unmarshal(c.Audience, &one) == nil {
		several = []string{one}
	}
	now := v.Clock()
	fits := func(pattern string) bool {
		ok, err := path.Match(pattern, c.Subject)
		return ok && err == nil
	}
	switch {
	case issuer == "" || c.Issuer != issuer:
		return fmt.Errorf("%w: issuer %q", ErrUnauthorized, c.Issuer)
	case v.Audience == "" || !slices.Contains(several, v.Audience):
		return fmt.Errorf("%w: audience %q", ErrUnauthorized, several)
	case !slices.ContainsFunc(v.Subjects, fits):
		return fmt.Errorf("%w: subject %q", ErrUnauthorized, c.Subject)
	case c.Expires <= 0 || now.After(seconds(c.Expires).Add(skew)):
		return fmt.Errorf("%w: expired", ErrUnauthorized)
	case c.NotBefore > 0 && now.Before(seconds(c.NotBefore).Add(-skew)):
		return fmt.Errorf("%w: not valid yet", ErrUnauthorized)
	}
	return nil
}

func seconds(s float64) time.Time { return time.Unix(int64(s), 0) }
