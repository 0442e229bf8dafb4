// SPDX-License-Identifier: Apache-2.0

package snapshot

import "hash/fnv"

// Turn returns all, beginning somewhere else in every invocation, so that nobody waits for ever behind those who are
// stuck (R-L4). The input is not modified.
func Turn[T any](s Snapshot, all []T) []T {
	if len(all) < 2 {
		return all
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.Invocation)) // a hash never fails
	start := int(h.Sum32()) % len(all)
	return append(append(make([]T, 0, len(all)), all[start:]...), all[:start]...)
}
