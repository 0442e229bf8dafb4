// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"time"
)

const (
	// askAgainAfter is how often the issuer is asked at most: a stranger who invents key ids must not make us ask for each.
	askAgainAfter = 10 * time.Second
	// tryAgainAfter is the same after an answer that was none.
	tryAgainAfter = time.Second
)

// authority is who issues tokens, and the keys that it signs with. Nobody changes one.
type authority struct {
	name string
	keys map[string]crypto.PublicKey
}

func (a *authority) has(id string) bool { return a != nil && a.keys[id] != nil }

// issuer returns the authority that has a key of this id; it is asked for if the key is new. Who has a known key waits for nobody.
func (v *Verifier) issuer(ctx context.Context, id string) (*authority, error) {
	if a := v.trusted.Load(); a.has(id) {
		return a, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if a := v.trusted.Load(); !a.has(id) && !v.Clock().Before(v.next) {
		v.ask(ctx)
	}
	if a := v.trusted.Load(); a.has(id) {
		return a, nil
	}
	if v.failed != nil {
		return nil, v.failed
	}
	return nil, fmt.Errorf("%w: key %q is not the issuer's", ErrUnauthorized, id)
}

// ask asks the issuer, on everybody's behalf: a sender who leaves does not end it.
func (v *Verifier) ask(ctx context.Context) {
	a := &authority{}
	name, text, err := v.Issuer(context.WithoutCancel(ctx))
	if err == nil {
		a.name = name
		a.keys, err = parseKeys(text)
	}
	if err != nil {
		v.failed, v.next = fmt.Errorf("ask who issues tokens: %w", err), v.Clock().Add(tryAgainAfter)
		return
	}
	v.trusted.Store(a)
	v.failed, v.next = nil, v.Clock().Add(askAgainAfter)
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
			n, e := number(k.N), number(k.E)
			if n.BitLen() >= 2048 && e.BitLen() < 32 && e.BitLen() > 1 && e.Bit(0) == 1 {
				known[k.Kid] = &rsa.PublicKey{N: n, E: int(e.Int64())}
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
