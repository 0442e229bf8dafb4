// SPDX-License-Identifier: Apache-2.0

package binpack

import (
	"cmp"
	"slices"
)

// thetas are the splits of weight between the two scarcest resources that orders and values are tried with.
var thetas = [...]float64{0.5, 0.25, 0.75, 0.05, 0.95}

// valuations is how many of them give values; each costs one run of the greedy.
const valuations = 3

// offers is what the greedy knows about the types.
type offers struct {
	*problem
	most    [][]int32 // by type, item: the most pieces that one bin takes; 0: not admitted
	class   []int     // by type: the first type that is the same in everything but name and limit
	members [][]int   // by class
	least   []Vector  // by type: what each item that it takes needs of each resource at least
	asking  []int32   // items that wait
	weights []weights // of the resources, scarcest first
	scratch [2][]Held
}

// weights on the resources; they add up to at most 1.
type weights [N]float64

func newOffers(p *problem, waiting []int) *offers {
	o := &offers{problem: p, most: make([][]int32, len(p.types)), class: make([]int, len(p.types)), members: make([][]int, len(p.types)), least: make([]Vector, len(p.types))}
	for t := range p.types {
		o.most[t], o.least[t] = make([]int32, len(p.items)), p.types[t].Capacity
		for i := range p.items {
			if waiting[i] > 0 {
				o.most[t][i] = p.mostIn(i, t)
			}
			if o.most[t][i] > 0 {
				o.least[t] = o.least[t].lesser(&p.items[i].Size)
			}
		}
		o.class[t] = o.classOf(t)
		o.members[o.class[t]] = append(o.members[o.class[t]], t)
	}
	for i, n := range waiting {
		if n > 0 {
			o.asking = append(o.asking, int32(i))
		}
	}
	o.weights = scarcity(p, waiting)
	return o
}

// classOf returns the first type that is the same as t in everything but name and limit.
func (o *offers) classOf(t int) int {
	for c := range t {
		if o.types[c].Capacity == o.types[t].Capacity && o.types[c].Price == o.types[t].Price && slices.Equal(o.most[c], o.most[t]) {
			return c
		}
	}
	return t
}

// mostIn returns how many pieces of an item an empty bin of a type takes.
func (p *problem) mostIn(i, t int) int32 {
	if p.of != nil {
		return p.of.mostIn(p.in[i], t)
	}
	if p.known == nil {
		p.known = slices.Repeat([]int32{-1}, len(p.items)*len(p.types))
	}
	known := &p.known[i*len(p.types)+t]
	if *known < 0 {
		*known = 0
		if n := p.items[i].Size.In(p.types[t].Capacity); n > 0 {
			*known = int32(max(0, min(n, p.fits(i, len(p.bins)+t))))
		}
	}
	return *known
}

func (p *problem) price(t int) int64 { return max(1, p.types[t].Price) }

// scarcity returns weights to try: the two resources that the waiting pieces need most of, in several splits, with a
// fixed part for each further one that is scarce too, and a trace of the rest.
func scarcity(p *problem, waiting []int) []weights {
	ref := reference(nil, p.types)
	var pressure weights
	for i, n := range waiting {
		for r, v := range p.items[i].Size {
			if ref[r] > 0 {
				pressure[r] += float64(n) * float64(v) / float64(ref[r])
			}
		}
	}
	dims := sortedBy(N, func(a, b int) int { return cmp.Compare(pressure[b], pressure[a]) })
	var all []weights
	for _, theta := range thetas {
		var w weights
		rest := 1.0
		for k, r := range dims {
			switch {
			case pressure[r] <= 0 || k < 2:
			case pressure[r] >= pressure[dims[0]]/4:
				w[r] = rest / 2
				rest /= 2
			default:
				w[r] = rest / 50
				rest -= w[r]
			}
		}
		w[dims[0]], w[dims[1]] = rest*theta, rest*(1-theta)
		if pressure[dims[1]] <= 0 {
			w[dims[0]], w[dims[1]] = rest, 0
		}
		all = append(all, w)
		if pressure[dims[1]] <= 0 {
			break
		}
	}
	return all
}

// values returns what a piece of each item is worth: the least price at which any type that admits it sells the
// resources that it needs, when a bin's price is divided among its resources by weight. No bin can hold more worth
// than its price, so that the values prove a lower bound too.
func (o *offers) values(w weights) []float64 {
	worth := make([]float64, len(o.items))
	for i := range o.items {
		for t := range o.types {
			if o.class[t] != t || o.most[t][i] == 0 {
				continue
			}
			if v := float64(o.price(t)) * o.density(i, t, w); worth[i] == 0 || v < worth[i] {
				worth[i] = v
			}
		}
	}
	return worth
}

// density is the weighted share of an empty bin of type t that a piece of item i takes. The weights of resources that
// the type does not have go to the others.
func (o *offers) density(i, t int, w weights) float64 {
	var sum, all float64
	for r := range w {
		if w[r] > 0 && o.types[t].Capacity[r] > 0 {
			all += w[r]
			sum += w[r] * float64(o.items[i].Size[r]) / float64(o.types[t].Capacity[r])
		}
	}
	if all == 0 {
		return 0
	}
	return sum / all
}

// orders returns, for every class, the orders in which its bins are filled: most worth for the room first, under each
// of the weights.
func (o *offers) orders(worth []float64) [][][]int32 {
	orders, all := make([][][]int32, len(o.types)), map[Vector][][]int32{} // all: of items, admitted or not, by capacity
	for t := range o.types {
		if o.class[t] != t {
			continue
		}
		of, ok := all[o.types[t].Capacity]
		if !ok {
			of = o.ordersIn(t, worth)
			all[o.types[t].Capacity] = of
		}
		for _, order := range of {
			orders[t] = append(orders[t], slices.DeleteFunc(slices.Clone(order), func(i int32) bool { return o.most[t][i] == 0 }))
		}
	}
	return orders
}

// ordersIn orders the items that wait by their worth for the room in a bin of a type, under each of the weights.
func (o *offers) ordersIn(t int, worth []float64) (orders [][]int32) {
	key := make([]float64, len(o.items))
	*o.work += len(o.items) * len(o.weights)
	for _, w := range o.weights {
		order := slices.Clone(o.asking)
		for _, i := range order {
			key[i] = worth[i] / max(o.density(int(i), t, w), 1e-12)
		}
		sortByWorth(order, key)
		orders = append(orders, order)
	}
	return orders
}

// sortByWorth puts the items first that are worth most, of equals the first.
func sortByWorth(order []int32, worth []float64) {
	slices.SortFunc(order, func(a, b int32) int {
		if c := cmp.Compare(worth[b], worth[a]); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
}
