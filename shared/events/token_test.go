// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	issuer   = "https://kubernetes.default.svc.cluster.local"
	audience = "machine-functions/link-node"
	trigger  = "system:serviceaccount:openshift-machine-api:link-node-oidc-eventing.knative.dev-trigger"
)

// signer signs tokens with keys of both kinds.
type signer struct {
	rsa *rsa.PrivateKey
	ec  *ecdsa.PrivateKey
	now time.Time
	*Verifier
	asked int
}

func newSigner(t testing.TB) *signer {
	t.Helper()
	a := &signer{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	var err1, err2 error
	a.rsa, err1 = rsa.GenerateKey(rand.Reader, 2048)
	a.ec, err2 = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	a.Verifier = &Verifier{
		Audience: audience, Subjects: []string{"system:serviceaccount:openshift-machine-api:*-oidc-eventing.knative.dev-trigger"},
		Issuer: a.keys, Clock: func() time.Time { return a.now },
	}
	return a
}

func b64(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

func (a *signer) keys(context.Context) (string, []byte, error) {
	a.asked++
	point, err := a.ec.PublicKey.Bytes()
	if err != nil {
		return "", nil, err
	}
	keys, err := json.Marshal(map[string]any{"keys": []map[string]string{
		{"kty": "RSA", "kid": "rsa", "use": "sig", "n": b64(a.rsa.N.Bytes()), "e": b64(big.NewInt(int64(a.rsa.E)).Bytes())},
		{"kty": "EC", "kid": "ec", "use": "sig", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])},
		{"kty": "EC", "kid": "zero", "use": "sig", "crv": "P-256", "x": b64(append([]byte{0}, point[1:33]...)), "y": b64(point[33:])},
		{"kty": "EC", "kid": "off", "use": "sig", "crv": "P-256", "x": b64(point[33:]), "y": b64(point[1:33])},
		{"kty": "EC", "kid": "long", "use": "sig", "crv": "P-256", "x": b64(point), "y": b64(point[33:])},
	}})
	return issuer, keys, err
}

// token returns a token of these claims, which changes may change, signed as the header says.
func (a *signer) token(t testing.TB, header map[string]string, change func(map[string]any)) string {
	t.Helper()
	c := map[string]any{"iss": issuer, "sub": trigger, "aud": []string{audience}, "exp": a.now.Add(time.Hour).Unix(), "nbf": a.now.Add(-time.Minute).Unix()}
	if change != nil {
		change(c)
	}
	head, err1 := json.Marshal(header)
	body, err2 := json.Marshal(c)
	text := b64(head) + "." + b64(body)
	digest := sha256.Sum256([]byte(text))
	var signature []byte
	var err3 error
	switch header["alg"] {
	case "RS256", "RS512": // which is not what this is
		signature, err3 = rsa.SignPKCS1v15(rand.Reader, a.rsa, crypto.SHA256, digest[:])
	case "ES256", "ES384":
		r, s, err := ecdsa.Sign(rand.Reader, a.ec, digest[:])
		signature, err3 = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...), err
	case "HS256": // with the public key as the secret, as some libraries once took it
		mac := hmac.New(sha256.New, a.rsa.N.Bytes())
		mac.Write([]byte(text))
		signature = mac.Sum(nil)
	}
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return text + "." + b64(signature)
}

func with(key string, value any) func(map[string]any) {
	return func(c map[string]any) { c[key] = value }
}

// Signature, issuer, audience, subject and time: each is checked, whoever signed (RELIABILITY §4).
func TestSendersProveWhoTheyAre(t *testing.T) {
	t.Parallel()
	a := newSigner(t)
	rs, es := map[string]string{"alg": "RS256", "kid": "rsa"}, map[string]string{"alg": "ES256", "kid": "ec"}
	good, half := a.token(t, rs, nil), a.token(t, es, nil)
	for _, tt := range []struct {
		name, token string
		ok          bool
	}{
		{"a Trigger's", good, true},
		{"with the other kind of key", a.token(t, es, nil), true},
		{"with a key whose numbers begin with zeros", a.token(t, map[string]string{"alg": "ES256", "kid": "zero"}, nil), true},
		{"with a key that is off the curve", a.token(t, map[string]string{"alg": "ES256", "kid": "off"}, nil), false},
		{"with a key of too many digits", a.token(t, map[string]string{"alg": "ES256", "kid": "long"}, nil), false},
		{"with one audience as a word", a.token(t, rs, with("aud", audience)), true},
		{"none", "", false},
		{"of another issuer", a.token(t, rs, with("iss", "https://evil.example.com")), false},
		{"for another function", a.token(t, rs, with("aud", []string{"machine-functions/remediate"})), false},
		{"for nobody", a.token(t, rs, with("aud", nil)), false},
		{"of a pod's account", a.token(t, rs, with("sub", "system:serviceaccount:openshift-machine-api:link-node")), false},
		{"of a Trigger in another namespace", a.token(t, rs, with("sub", "system:serviceaccount:evil:link-node-oidc-eventing.knative.dev-trigger")), false},
		{"expired", a.token(t, rs, with("exp", a.now.Add(-time.Hour).Unix())), false},
		{"without an end", a.token(t, rs, with("exp", 0)), false},
		{"of the future", a.token(t, rs, with("nbf", a.now.Add(time.Hour).Unix())), false},
		{"unsigned", a.token(t, map[string]string{"alg": "none", "kid": "rsa"}, nil), false},
		{"signed with the public key", a.token(t, map[string]string{"alg": "HS256", "kid": "rsa"}, nil), false},
		{"with the wrong key's id", a.token(t, map[string]string{"alg": "RS256", "kid": "ec"}, nil), false},
		{"with a key nobody knows", a.token(t, map[string]string{"alg": "RS256", "kid": "other"}, nil), false},
		{"changed", good[:len(good)-8] + "AAAAAAAA", false},
		{"that is none", "a.b.c", false},
		{"in two parts", good[:strings.LastIndex(good, ".")], false},
		{"in four parts", good + ".", false},
		{"whose header names another algorithm than was used", a.token(t, map[string]string{"alg": "RS512", "kid": "rsa"}, nil), false},
		{"the same with the other kind of key", a.token(t, map[string]string{"alg": "ES384", "kid": "ec"}, nil), false},
		{"with half of a signature", half[:strings.LastIndex(half, ".")+1] + b64(make([]byte, 31)), false},
		{"longer than any is", a.token(t, rs, with("more", strings.Repeat("x", maxToken))), false},
	} {
		if err := a.Verify(bearing(tt.token)); (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrUnauthorized) {
			t.Errorf("a token %s: %v", tt.name, err)
		}
	}
	if a.asked > 2 {
		t.Errorf("keys were fetched %d times", a.asked)
	}
}

// A function that nobody named is meant by no token, also by none that is for nobody (RELIABILITY §4).
func TestNoTokenIsForWhoHasNoName(t *testing.T) {
	t.Parallel()
	a := newSigner(t)
	a.Audience = ""
	if err := a.Verify(bearing(a.token(t, map[string]string{"alg": "RS256", "kid": "rsa"}, with("aud", "")))); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("error %v", err)
	}
}

// bearing is a request with a token, or without where that is empty.
func bearing(token string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

// Keys that cannot be had are no proof against the sender: the event is delivered again. That is found out once a second, not for each.
func TestKeysThatCannotBeHadMayPass(t *testing.T) {
	t.Parallel()
	a := newSigner(t)
	silent := true
	a.Issuer = func(ctx context.Context) (string, []byte, error) {
		if silent {
			a.asked++
			return "", nil, errors.New("no answer")
		}
		return a.keys(ctx)
	}
	good := a.token(t, map[string]string{"alg": "RS256", "kid": "rsa"}, nil)
	for range 3 {
		if err := a.Verify(bearing(good)); err == nil || errors.Is(err, ErrUnauthorized) || Status(err) != http.StatusServiceUnavailable {
			t.Errorf("got %v", err)
		}
	}
	if a.asked != 1 {
		t.Errorf("the issuer was asked %d times at once", a.asked)
	}
	silent, a.now = false, a.now.Add(time.Second)
	if err := a.Verify(bearing(good)); err != nil {
		t.Errorf("a second later: %v", err)
	}
}

// A stranger who invents keys holds up nobody else: not while the issuer takes its time, and not by leaving before it answers.
func TestStrangersHoldUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newSigner(t)
		good, invented := a.token(t, map[string]string{"alg": "RS256", "kid": "rsa"}, nil), a.token(t, map[string]string{"alg": "RS256", "kid": "mine"}, nil)
		if err := a.Verify(bearing(good)); err != nil {
			t.Fatal(err)
		}
		a.now = a.now.Add(time.Minute)
		a.Issuer = func(ctx context.Context) (string, []byte, error) {
			select {
			case <-time.After(5 * time.Second):
				return a.keys(ctx)
			case <-ctx.Done():
				return "", nil, ctx.Err()
			}
		}
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		ended := make(chan error)
		go func() { ended <- a.Verify(bearing(invented).WithContext(ctx)) }()
		synctest.Wait()
		began := time.Now()
		if err := a.Verify(bearing(good)); err != nil || time.Since(began) > 0 {
			t.Errorf("a Trigger waited %v: %v", time.Since(began), err)
		}
		if err := <-ended; !errors.Is(err, ErrUnauthorized) {
			t.Errorf("the stranger was told %v", err)
		}
	})
}
