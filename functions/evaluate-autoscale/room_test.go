// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// Room that Pods were promised is theirs also where another packing finds no place for all of them: who comes later has none where the
// Nodes on their way are no larger than what all ask for together, and brings one (SPEC C9, RELIABILITY 2d).
func TestRoomOfTheDisplacedIsNotGivenAway(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r, w, asked := rand.New(rand.NewPCG(seed, 0)), fresh(t, "{}"), 0
		w.set(t, "s", 0, 500, midsize(), nil)
		add := func(wave, i, cpu int) {
			asked += cpu
			w.must(t, w.Put(pending(fmt.Sprintf("p-%d-%02d", wave, i), w.now.Add(-time.Minute), resources("cpu", fmt.Sprintf("%dm", cpu)))))
		}
		for wave := range 1 + r.IntN(4) {
			i := 0
			for range 1 + r.IntN(5) { // Nodes, cut into pieces
				for left := 4000; left > 0; i++ {
					n := min(left, 500+10*r.IntN(200))
					if left-n < 400 {
						n = left
					}
					add(wave, i, n)
					left -= n
				}
			}
			w.scans(t, 1)
		}
		before := int(w.replicas("s")[0])
		for i := 0; asked <= 4000*before; i++ {
			add(9, i, 100)
		}
		w.scans(t, 1)
		if got := int(w.replicas("s")[0]); asked > 4000*got {
			t.Errorf("seed %d: %d millicores are promised on %d Nodes of four cores", seed, asked, got)
		}
	}
}

// Room that nobody was promised is had by small Pods that come later, also on Nodes of few Pods: however many pieces keep the room of who
// has no place, they are not counted as Pods.
func TestPiecesBringNoNodes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r, w, asked := rand.New(rand.NewPCG(seed, 0)), fresh(t, "{}"), 0
		w.set(t, "s", 0, 500, midsize(machine.CapacityMaxPods, "17"), nil)
		add := func(wave, i, cpu int) {
			asked += cpu
			w.must(t, w.Put(pending(fmt.Sprintf("p-%d-%02d", wave, i), w.now.Add(-time.Minute), resources("cpu", fmt.Sprintf("%dm", cpu)))))
		}
		for wave := range 1 + r.IntN(4) {
			i := 0
			for range 1 + r.IntN(5) {
				for left := 4000 - 20*r.IntN(20); left > 0; i++ {
					n := min(left, 500+10*r.IntN(200))
					if left-n < 400 {
						n = left
					}
					add(wave, i, n)
					left -= n
				}
			}
			w.scans(t, 1)
		}
		before := int(w.replicas("s")[0])
		for i := 0; asked+20 < 4000*before && i < 10; i++ {
			add(9, i, 20)
		}
		w.scans(t, 1)
		if got := int(w.replicas("s")[0]); got > before {
			t.Errorf("seed %d: %d Nodes have %d millicores for %d, and one more is asked for", seed, before, 4000*before, asked)
		}
	}
}

// So it is where the number of Pods on a Node is what binds: each of the displaced keeps the place of one.
func TestPlacesOfTheDisplacedAreNotGivenAway(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		r, w := rand.New(rand.NewPCG(seed, 3)), fresh(t, "{}")
		w.set(t, "s", 0, 500, midsize(machine.CapacityMaxPods, "17"), nil)
		var sizes []int
		add := func(wave, i, cpu int) {
			sizes = append(sizes, cpu)
			w.must(t, w.Put(pending(fmt.Sprintf("p-%d-%02d", wave, i), w.now.Add(-time.Minute), resources("cpu", fmt.Sprintf("%dm", cpu)))))
		}
		for wave := range 1 + r.IntN(4) {
			i := 0
			for range 1 + r.IntN(4) {
				left := 4000
				for k := range 17 {
					c := left
					if k < 16 {
						c = min(left-50*(16-k), 50+10*r.IntN(1+(left-50*(16-k)-50)/10))
					}
					if k == 16 && r.IntN(2) == 0 {
						c = min(left, 50+10*r.IntN(20))
					}
					add(wave, i, c)
					i++
					left -= c
				}
			}
			w.scans(t, 1)
		}
		before := int(w.replicas("s")[0])
		room := 17*before - len(sizes)
		if room > 3 {
			continue
		}
		for i := range room + 1 {
			add(9, i, 20)
		}
		w.scans(t, 1)
		got, sum := int(w.replicas("s")[0]), 0
		for _, s := range sizes {
			sum += s
		}
		if total := len(sizes); sum > 4000*got || total > 17*got {
			t.Errorf("seed %d: %d Nodes before, %d after, for %d millicores and %d Pods", seed, before, got, sum, total)
		}
	}
}
