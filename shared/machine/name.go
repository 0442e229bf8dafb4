// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

// nameAlphabet is the one that apimachinery uses for generated names: no vowels, so no words.
const nameAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// nameSuffix is how many characters Name appends (SPEC S15).
const nameSuffix = 5

// Name returns the name of the Machine at ordinal k of a set. It is a pure function of the set's UID and k, so that
// two invocations that execute the same ledger ask for the same object (RELIABILITY 2a.2).
func Name(set string, uid types.UID, k int) string {
	return nameBase(set) + suffixOf(uid, k)
}

// maxNameBase is how much of a generated name is not generated (SPEC S15): with the suffix it is still a label's value and
// a host's name, of 63 characters.
const maxNameBase = 63 - nameSuffix

// nameBase is what the names of all Machines of a set begin with.
func nameBase(set string) string {
	base := set + "-"
	return base[:min(len(base), maxNameBase)]
}

func suffixOf(uid types.UID, k int) string {
	h := sha256.Sum256([]byte(string(uid) + "|" + strconv.Itoa(k)))
	var suffix [nameSuffix]byte
	for i := range suffix {
		suffix[i] = nameAlphabet[int(h[i])%len(nameAlphabet)]
	}
	return string(suffix[:])
}

// SetName returns the name of the set that a Machine of this name would belong to, or "" if no set names Machines so, or
// one whose name is too long to be in it. It is a hint for Machines that are gone.
func SetName(machine string) string {
	if i := len(machine) - nameSuffix - 1; i > 0 && machine[i] == '-' {
		return machine[:i]
	}
	return ""
}

// tokens encodes five bytes in eight characters.
var tokens = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv")

// Token returns the idempotency token of one attempt to create the instance of a Machine: 32 characters [a-v0-9],
// stable for the same attempt in the same account, never repeated by another (RELIABILITY 2b.5).
func Token(uid types.UID, attempt int, account string) string {
	var text [256]byte // whoever looks at an intent asks for it again
	of := append(strconv.AppendInt(append(append(text[:0], uid...), '|'), int64(attempt), 10), '|')
	h := sha256.Sum256(append(of, account...))
	var token [32]byte
	tokens.Encode(token[:], h[:20])
	return string(token[:])
}
