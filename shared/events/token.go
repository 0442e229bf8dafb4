// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
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
	"time"
)

// ErrUnauthorized is a request whose sender did not prove to be one of those who may send. Nothing of it is read.
var ErrUnauthorized = errors.New("unauthorized")

const (
	maxToken = 16 << 10 // tokens of service accounts have about 1 kB
	skew     = 30 * time.Second
	// keysAnewAfter is how often keys are fetched at most: a stranger who invents key ids must not make us ask for each.
	keysAnewAfter = 10 * time.Second
)

// Verifier checks the tokens that Eventing sends where its flag authentication-oidc is on: signature, issuer, audience,
// subject and time. It is safe for concurrent use.
type Verifier struct {
	Issuer   string
	Audience string
	Subjects []string // patterns of path.Match; a token must fit one
	// Keys fetches the issuer's present keys, a JSON Web Key Set.
	Keys  func(context.Context) ([]byte, error)
	Clock func() time.Time

	mu      sync.Mutex
	known   map[string]crypto.PublicKey
	fetched time.Time
}

type claims struct {
	Issuer    string          `json:"iss"`
	Subject   string          `json:"sub"`
	Audience  json.RawMessage `json:"aud"`
	Expires   float64         `json:"exp"`
	NotBefore float64         `json:"nbf"`
}

// Verify returns nil if r carries a token of one of the subjects, meant for the audience, now. Otherwise its error is
// ErrUnauthorized, or that keys could not be fetched, which may pass.
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
	key, err := v.key(r.Context(), header.KeyID)
	if err != nil {
		return err
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return fmt.Errorf("%w: signature", ErrUnauthorized)
	}
	if !signed(header.Algorithm, key, parts[0]+"."+parts[1], signature) {
		return fmt.Errorf("%w: the signature is not the issuer's", ErrUnauthorized)
	}
	var c claims
	if err := decode(parts[1], &c); err != nil {
		return err
	}
	return v.accept(c)
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

func (v *Verifier) accept(c claims) error {
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
	case c.Issuer != v.Issuer:
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

// key returns the issuer's key of that id, which it fetches if it is new.
func (v *Verifier) key(ctx context.Context, id string) (crypto.PublicKey, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if key, ok := v.known[id]; ok {
		return key, nil
	}
	now := v.Clock()
	if !v.fetched.IsZero() && now.Sub(v.fetched) < keysAnewAfter {
		return nil, fmt.Errorf("%w: key %q is not the issuer's", ErrUnauthorized, id)
	}
	text, err := v.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("fetch the issuer's keys: %w", err)
	}
	known, err := parseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("read the issuer's keys: %w", err)
	}
	v.known, v.fetched = known, now
	if key, ok := v.known[id]; ok {
		return key, nil
	}
	return nil, fmt.Errorf("%w: key %q is not the issuer's", ErrUnauthorized, id)
}

// parseKeys reads a JSON Web Key Set. Keys of other kinds than RSA and P-256 are left out, as are those that verify nothing.
func parseKeys(text []byte) (map[string]crypto.PublicKey, error) {
	var set struct {
		Keys []struct{ Kty, Kid, Use, Crv, N, E, X, Y string }
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, err
	}
	known := map[string]crypto.PublicKey{}
	number := func(s string) *big.Int {
		raw, _ := base64.RawURLEncoding.DecodeString(s) // what is no number makes no key
		return new(big.Int).SetBytes(raw)
	}
	for _, k := range set.Keys {
		switch {
		case k.Use != "" && k.Use != "sig":
		case k.Kty == "RSA":
			key := &rsa.PublicKey{N: number(k.N), E: int(number(k.E).Int64())}
			if key.N.BitLen() >= 2048 {
				known[k.Kid] = key
			}
		case k.Kty == "EC" && k.Crv == "P-256":
			if key := onP256(number(k.X), number(k.Y)); key != nil {
				known[k.Kid] = key
			}
		}
	}
	return known, nil
}

// onP256 returns the key with these coordinates, or nil if they are no point of the curve.
func onP256(x, y *big.Int) *ecdsa.PublicKey {
	if x.BitLen() > 256 || y.BitLen() > 256 {
		return nil
	}
	point := make([]byte, 1+32+32)
	point[0] = 4 // uncompressed (SEC 1 §2.3.3)
	x.FillBytes(point[1:33])
	y.FillBytes(point[33:])
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		return nil
	}
	return key
}
