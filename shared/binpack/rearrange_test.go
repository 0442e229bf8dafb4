// SPDX-License-Identifier: Apache-2.0

package binpack

import (
	"fmt"
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// Of pieces that fill a bin each, whatever bins they may go to, as many have a place as can.
func TestPackLeavesNobodyOutWhoseBinOthersCouldLeave(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var in instance
		bins := rapid.IntRange(1, 6).Draw(t, "bins")
		for b := range bins {
			in.bins = append(in.bins, Bin{Name: fmt.Sprint("bin-", b), Free: Vector{1}})
		}
		for i := range rapid.IntRange(1, 6).Draw(t, "items") {
			in.items = append(in.items, Item{Name: fmt.Sprint("item-", i), Size: Vector{1}, Count: rapid.IntRange(1, 3).Draw(t, "count")})
			in.most = append(in.most, rapid.SliceOfN(rapid.IntRange(0, 1), bins, bins).Draw(t, "most"))
		}
		r := in.pack()
		if err := in.check(r); err != nil {
			t.Fatal(err)
		}
		if placed := len(r.Puts); placed != in.mostPlaced() {
			t.Fatalf("%d of %d have a place", placed, in.mostPlaced())
		}
	})
}

// mostPlaced is how many bins can be filled by pieces that fill one each: the largest set of full bins, tried by piece.
func (in instance) mostPlaced() (most int) {
	sets := map[uint]bool{0: true}
	for i, item := range in.items {
		for range item.Count {
			next := map[uint]bool{}
			for full := range sets {
				next[full] = true
				for b := range in.bins {
					if bit := uint(1) << b; full&bit == 0 && in.most[i][b] > 0 {
						next[full|bit] = true
					}
				}
			}
			sets = next
		}
	}
	for full := range sets {
		most = max(most, bits.OnesCount(full))
	}
	return most
}

// Nor does making room cost more the more pieces there are.
func BenchmarkRearrange(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprint("bins=", n), func(b *testing.B) {
			var in instance
			for k := range n {
				in.bins = append(in.bins, Bin{Name: fmt.Sprintf("bin-%05d", k), Free: Vector{1}})
			}
			for i := range 2 {
				most := make([]int, n)
				for k := range most {
					most[k] = max(1-i, (n-k)*2/(n+1)) // the second may only go to the first half
				}
				in.items, in.most = append(in.items, Item{Name: fmt.Sprint(i), Size: Vector{1}, Count: n / 2}), append(in.most, most)
			}
			for b.Loop() {
				if r := in.pack(); r.Left[0]+r.Left[1] > n%2 {
					b.Fatal(r.Left)
				}
			}
		})
	}
}
