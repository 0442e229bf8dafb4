// SPDX-License-Identifier: Apache-2.0

package binpack

import "slices"

// improve packs every part again in other ways, and keeps what is better.
func (o *offers) improve(s solution, waiting, limits []int) solution {
	return o.byPart(s, waiting, func(q part, was solution) solution {
		if now := o.solve(q, waiting, limits); now.better(was) {
			return now
		}
		return was
	})
}

// byPart puts together what f makes of every part of a solution. Parts share no type, so that each has its limits to itself.
func (o *offers) byPart(s solution, waiting []int, f func(q part, was solution) solution) solution {
	out := solution{left: slices.Clone(s.left)}
	for _, q := range o.parts(waiting) {
		now := f(q, s.within(o, q))
		for _, i := range q.items {
			out.left[i] = now.left[i]
		}
		out.patterns = append(out.patterns, now.patterns...)
		out.price, out.bins = saturate(out.price, now.price), out.bins+now.bins
	}
	return out
}

// within is the part of a solution that is about one part; left is zero elsewhere.
func (s solution) within(o *offers, q part) solution {
	out := solution{left: make([]int, len(s.left))}
	for _, i := range q.items {
		out.left[i] = s.left[i]
	}
	for _, pat := range s.patterns {
		if slices.Contains(q.classes, o.class[pat.Type]) {
			out.add(o, pat)
		}
	}
	return out
}

func (s *solution) add(o *offers, pat Pattern) {
	s.patterns = append(s.patterns, pat)
	s.bins += pat.Times
	s.price = saturate(s.price, Vector{o.price(pat.Type)}.Times(pat.Times)[0])
}

// solve packs one part.
func (o *offers) solve(q part, waiting, limits []int) solution {
	l := o.lot(q)
	left := l.waiting(waiting)
	var stacks []stack
	if len(q.items) <= fewItems {
		stacks, left = l.byColumns(left, l.limits(limits))
	} else {
		stacks = l.mix(left, l.limits(limits))
	}
	*o.work += l.steps
	out := solution{left: make([]int, len(waiting))}
	for k, i := range q.items {
		out.left[i] = int(left[k])
	}
	for _, pat := range l.patterns(stacks, slices.Clone(limits)) {
		out.add(o, pat)
	}
	return out
}
