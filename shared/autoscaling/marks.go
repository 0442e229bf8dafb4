// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Marks is a set of Pods in as little room as it takes to remember thousands of them: four bytes for each, so that one
// Pod in four billion is taken for another.
type Marks map[uint32]bool

// Add adds Pods.
func (m Marks) Add(pods ...*corev1.Pod) {
	for _, p := range pods {
		m[markOf(p)] = true
	}
}

// Has reports whether a Pod is in the set. One that was made anew under the same name is another Pod.
func (m Marks) Has(p *corev1.Pod) bool { return len(m) > 0 && m[markOf(p)] }

// AddText adds what String made. A text that it did not make adds nothing.
func (m Marks) AddText(text string) {
	raw, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(raw)%4 != 0 {
		return
	}
	for ; len(raw) > 0; raw = raw[4:] {
		m[binary.BigEndian.Uint32(raw)] = true
	}
}

// String renders the set; equal sets alike.
func (m Marks) String() string {
	raw := make([]byte, 0, 4*len(m))
	for _, mark := range slices.Sorted(maps.Keys(m)) {
		raw = binary.BigEndian.AppendUint32(raw, mark)
	}
	return base64.RawStdEncoding.EncodeToString(raw)
}

func markOf(p *corev1.Pod) uint32 {
	h := fnv.New32a()
	for _, part := range [...]string{p.Namespace, p.Name, string(p.UID)} {
		_, _ = h.Write([]byte(part)) // a hash takes everything
		_, _ = h.Write([]byte{0})
	}
	return h.Sum32()
}
