// SPDX-License-Identifier: Apache-2.0

package approvenode

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
)

// ofKey returns a request with an RSA key of so many bits, whose signature is none. With primes that are small, and many, such a
// key is cheap to make also with a signature that holds.
func ofKey(t testing.TB, bits uint) []byte {
	t.Helper()
	type algorithm = pkix.AlgorithmIdentifier
	der := func(v any) []byte {
		text, err := asn1.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	n := new(big.Int).Lsh(big.NewInt(1), bits-1)
	key := der(struct {
		N *big.Int
		E int
	}{n.SetBit(n, 0, 1), 1<<31 - 1})
	signed := der(struct {
		Version    int
		Subject    asn1.RawValue
		Key        any
		Attributes asn1.RawValue
	}{0, asn1.RawValue{FullBytes: der(subject("a").ToRDNSequence())}, struct {
		Algorithm algorithm
		Key       asn1.BitString
	}{algorithm{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}, Parameters: asn1.NullRawValue}, asn1.BitString{Bytes: key, BitLength: len(key) * 8}},
		asn1.RawValue{Class: asn1.ClassContextSpecific, IsCompound: true}})
	signature := make([]byte, bits/8)
	signature[len(signature)-1] = 2
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der(struct {
		Signed    asn1.RawValue
		Algorithm algorithm
		Signature asn1.BitString
	}{asn1.RawValue{FullBytes: signed}, algorithm{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}, Parameters: asn1.NullRawValue},
		asn1.BitString{Bytes: signature, BitLength: len(signature) * 8}})})
}

// The signature of a key of 400,000 bits, which the API server takes, is checked for 20 s, in each sweep again (RELIABILITY §4).
func TestHugeKeysAreRefusedBeforeTheirSignatureIsChecked(t *testing.T) {
	t.Parallel()
	for bits, want := range map[uint]string{maxKey: "verification error", maxKey + 8: "RSA key of 8200 bits", 8 * maxKey: "RSA key of 65536 bits"} {
		r := request{client(t, "a", 0)}
		r.Spec.Request = ofKey(t, bits)
		if _, err := r.claim(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a key of %d bits: %v", bits, err)
		}
	}
}
