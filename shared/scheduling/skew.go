// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"math"

	"github.com/machine-functions/machine-functions/shared/binpack"
)

// lookSkews counts, for spread constraints over hosts, what every node holds and could come to hold.
func (w *World) lookSkews(d *demand, waiting int) {
	for i := range d.spreads {
		s := &d.spreads[i]
		if !s.overHosts() {
			continue
		}
		k := skew{spread: *s, counts: w.held(s), room: map[int]int{}}
		free := w.free()
		for n := range w.nodes {
			if w.nodes[n].Gone || !d.counts(s, w.nodes[n].Node) {
				continue
			}
			k.room[n] = 0
			if !w.nodes[n].Closed && w.admitted(d, n) == fine && d.company(w.nodes[n].Node) == fine {
				k.room[n] = d.size.In(free[n])
			}
		}
		k.rise(waiting)
		d.skews = append(d.skews, k)
	}
}

// rise finds the lowest level at which the waiting Pods have room, no higher than the constraint allows: the emptiest
// node that is full holds the others down, and so do missing domains.
func (k *skew) rise(waiting int) {
	highest := math.MaxInt
	lowest := math.MaxInt
	for n, room := range k.room {
		lowest = min(lowest, k.counts[n])
		highest = min(highest, k.counts[n]+room)
	}
	switch {
	case len(k.room) < k.minDomains && k.minDomains > 1:
		lowest, highest = 0, 0
	case len(k.room) == 0: // the first new one holds itself down
		k.level = math.MaxInt32
		return
	}
	if !k.selfCounts { // it adds nothing to what it is compared with
		k.level = lowest + k.maxSkew
		return
	}
	highest += k.maxSkew
	low, high := lowest, min(highest, lowest+k.maxSkew+waiting)
	for low < high {
		level := low + (high-low)/2
		if k.takes(level) >= waiting {
			high = level
		} else {
			low = level + 1
		}
	}
	k.level = low
}

// takes returns how many Pods the nodes take when each is filled up to a level.
func (k *skew) takes(level int) (sum int) {
	for n, room := range k.room {
		sum += min(room, max(0, level-k.counts[n]))
	}
	return sum
}

// correctSkews compares the packing with the levels. Where a node took less than its part, the level is found anew;
// correctSkews reports whether one sank.
func (l *layout) correctSkews() bool {
	placed := make([]map[int]int, len(l.Shapes))
	for _, p := range l.result.Puts {
		r := l.rows[p.Item]
		if placed[r.shape] == nil {
			placed[r.shape] = map[int]int{}
		}
		placed[r.shape][l.bins[p.Bin]] += p.Count * r.times
	}
	changed := false
	for s := range l.Shapes {
		d := l.Shapes[s].demand
		if total(placed[s]) == len(l.Shapes[s].Pods) {
			continue
		}
		for i := range d.skews {
			k := &d.skews[i]
			if !k.selfCounts {
				continue
			}
			if len(k.room) == 0 && k.level > k.maxSkew {
				level := l.levelOfNew(s, k)
				k.level, changed = min(k.level, level), changed || level < k.level
				continue
			}
			for n, room := range k.room {
				if got := placed[s][n]; got < min(room, k.level-k.counts[n]) {
					k.room[n] = got
				}
			}
			before := k.level
			k.rise(len(l.Shapes[s].Pods))
			changed = changed || k.level < before
		}
	}
	return changed
}

// levelOfNew returns up to where new hosts can be filled, of which there are no others: that which takes the fewest holds the others down.
func (l *layout) levelOfNew(shape int, k *skew) int {
	level := math.MaxInt32
	for _, p := range l.result.Patterns {
		if !l.Shapes[shape].demand.counts(&k.spread, l.offers[p.Type].Node.Node) {
			continue
		}
		level = min(level, l.takes(shape, p)+k.maxSkew)
	}
	return level
}

// takes returns how many Pods of a shape a new Node has room for, beside the others that it holds.
func (l *layout) takes(shape int, p binpack.Pattern) int {
	d, free := l.Shapes[shape].demand, l.free[p.Type]
	fit, _ := l.world.fitNew(d, &l.offers[p.Type].Node)
	for _, h := range p.Holds {
		if of := l.rows[h.Item].shape; of != shape {
			if l.clashOnHost(l.Shapes[of].demand, d) {
				return 0
			}
			free = free.Minus(l.items[h.Item].Size.Times(h.Count))
		}
	}
	return min(fit, d.size.In(free))
}

func total(counts map[int]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}
