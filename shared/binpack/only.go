// SPDX-License-Identifier: Apache-2.0

package binpack

// only returns the problem of the items alone that wait, and how many pieces of each do: who opens bins for a few of many
// does not look at the others.
func (p *problem) only(waiting []int) (q *problem, few []int) {
	*p.work += 4*len(p.items) + 100*len(p.types)
	q = &problem{bins: p.bins, types: p.types, brief: p.brief, work: p.work, of: p}
	at := make([]int32, len(p.items))
	for i, n := range waiting {
		at[i] = -1
		if n > 0 {
			at[i] = int32(len(q.items))
			q.items, q.in, few = append(q.items, p.items[i]), append(q.in, i), append(few, n)
		}
	}
	if len(few) == len(waiting) {
		return p, waiting
	}
	q.apart = make([][]int32, len(q.items))
	for k, i := range q.in {
		for _, other := range p.apart[i] {
			if at[other] >= 0 {
				q.apart[k] = append(q.apart[k], at[other])
			}
		}
	}
	q.fits = func(i, t int) int { return p.fits(q.in[i], t) }
	return q, few
}

// whole speaks of all items again.
func (p *problem) whole(q *problem, s solution) solution {
	if p == q {
		return s
	}
	left := make([]int, len(p.items))
	for k, i := range q.in {
		left[i] = s.left[k]
	}
	s.left = left
	for k, pat := range s.patterns {
		holds := make([]Held, len(pat.Holds))
		for h, x := range pat.Holds {
			holds[h] = Held{Item: q.in[x.Item], Count: x.Count}
		}
		s.patterns[k].Holds = holds
	}
	return s
}
