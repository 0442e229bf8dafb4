// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// Of Machines that were made elsewhere a ledger remembers as many as it has room for: an object has 262,144 bytes for all its annotations.
const (
	maxAdopted      = 2_000
	maxAdoptedBytes = 200_000
	longestMember   = 253 + 36 + memberFrame
	memberFrame     = 34 // what stands around a name and a UID
)

// bytesOf returns about how much room members of a ledger take.
func bytesOf(adopted map[int]machine.Member) (n int) {
	for _, a := range adopted {
		n += bytesOfMember(a.Name, a.UID)
	}
	return n
}

func bytesOfMember(name string, uid types.UID) int { return len(name) + len(uid) + memberFrame }

// full reports whether a ledger may have no room for another Machine.
func full(adopted map[int]machine.Member) bool {
	return len(adopted) >= maxAdopted || bytesOf(adopted) > maxAdoptedBytes-longestMember
}
