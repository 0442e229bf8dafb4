// SPDX-License-Identifier: Apache-2.0

package binpack_test

import (
	"fmt"

	"github.com/machine-functions/machine-functions/shared/binpack"
)

// Fifty pieces of 300 and 500, one bin with room for nine, and new bins with room for nine.
func ExamplePack() {
	pods := []binpack.Item{{Name: "work-queue", Size: binpack.Vector{300, 500}, Count: 50}}
	nodes := []binpack.Bin{{Name: "node-1", Free: binpack.Vector{2900, 9000}}}
	offers := []binpack.Type{
		{Name: "general-purpose-1a", Capacity: binpack.Vector{2900, 9000}, Price: 20, Limit: 3},
		{Name: "general-purpose-1b", Capacity: binpack.Vector{2900, 9000}, Price: 20, Limit: 3},
	}
	r := binpack.Pack(pods, nodes, offers, func(_, _ int) int { return binpack.Any })
	for _, p := range r.Puts {
		fmt.Println(p.Count, "pods go to", nodes[p.Bin].Name)
	}
	for _, p := range r.Patterns {
		fmt.Println(p.Times, "new", offers[p.Type].Name, "with", p.Holds[0].Count, "pods each")
	}
	fmt.Println("price", r.Price(offers), "at least", binpack.LowerBound(pods, nodes, offers, func(_, _ int) int { return binpack.Any }))
	// Output:
	// 9 pods go to node-1
	// 3 new general-purpose-1a with 9 pods each
	// 1 new general-purpose-1b with 9 pods each
	// 1 new general-purpose-1b with 5 pods each
	// price 100 at least 100
}

// A Space is filled step by step, and steps can be taken back.
func ExampleSpace() {
	pods := []binpack.Item{{Name: "web", Size: binpack.Vector{400}}, {Name: "db", Size: binpack.Vector{900}}}
	nodes := []binpack.Bin{{Name: "a", Free: binpack.Vector{1000}}, {Name: "b", Free: binpack.Vector{1000}}}
	s := binpack.NewSpace(pods, nodes, func(_, _ int) int { return binpack.Any })
	fmt.Println("web:", s.Put(0, 3), "of 3 have a place")
	mark := s.Mark()
	fmt.Println("db:", s.Put(1, 1), "of 1 has a place")
	s.Undo(mark)
	fmt.Println("a holds", s.Holds(0), "b holds", s.Holds(1))
	// Output:
	// web: 3 of 3 have a place
	// db: 0 of 1 has a place
	// a holds [{0 2}] b holds [{0 1}]
}
