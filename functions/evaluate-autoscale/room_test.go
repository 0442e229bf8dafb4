// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// Room that Pods were promised is theirs also where another packing finds no place for all of them: who comes later has none where the
// Nodes on their way are no larger than what all ask for together, and brings one (SPEC C9, RELIABILITY 2d).
func TestRoomOfTheDisplacedIsNotGivenAway(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r, w := rand.New(rand.NewPCG(seed, 0)), wavesOnto(t, midsize())
		for wave := range 1 + r.IntN(4) {
			i := 0
			for range 1 + r.IntN(5) { // Nodes, cut into pieces
				i = w.cut(t, r, wave, i, 4000)
			}
			w.scans(t, 1)
		}
		before := int(w.replicas("s")[0])
		for i := 0; w.asked <= 4000*before; i++ {
			w.add(t, 9, i, 100)
		}
		w.scans(t, 1)
		if got := int(w.replicas("s")[0]); w.asked > 4000*got {
			t.Errorf("seed %d: %d millicores are promised on %d Nodes of four cores", seed, w.asked, got)
		}
	}
}

// Room that nobody was promised is had by small Pods that come later, also on Nodes of few Pods: however many pieces keep the room of who
// has no place, they are not counted as Pods.
func TestPiecesBringNoNodes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r, w := rand.New(rand.NewPCG(seed, 0)), wavesOnto(t, midsize(machine.CapacityMaxPods, "17"))
		for wave := range 1 + r.IntN(4) {
			i := 0
			for range 1 + r.IntN(5) {
				i = w.cut(t, r, wave, i, 4000-20*r.IntN(20))
			}
			w.scans(t, 1)
		}
		before := int(w.replicas("s")[0])
		for i := 0; w.asked+20 < 4000*before && i < 10; i++ {
			w.add(t, 9, i, 20)
		}
		w.scans(t, 1)
		if got := int(w.replicas("s")[0]); got > before {
			t.Errorf("seed %d: %d Nodes have %d millicores for %d, and one more is asked for", seed, before, 4000*before, w.asked)
		}
	}
}

// So it is where the number of Pods on a Node is what binds: each of the displaced keeps the place of one.
func TestPlacesOfTheDisplacedAreNotGivenAway(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		r, w := rand.New(rand.NewPCG(seed, 3)), wavesOnto(t, midsize(machine.CapacityMaxPods, "17"))
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
					w.add(t, wave, i, c)
					i++
					left -= c
				}
			}
			w.scans(t, 1)
		}
		before := int(w.replicas("s")[0])
		room := 17*before - w.pods
		if room > 3 {
			continue
		}
		for i := range room + 1 {
			w.add(t, 9, i, 20)
		}
		w.scans(t, 1)
		if got := int(w.replicas("s")[0]); w.asked > 4000*got || w.pods > 17*got {
			t.Errorf("seed %d: %d Nodes before, %d after, for %d millicores and %d Pods", seed, before, got, w.asked, w.pods)
		}
	}
}

// waves is a world in which Pods come in waves, all for one set of Nodes of four cores.
type waves struct {
	*world
	asked int // millicores, by all Pods
	pods  int
}

func wavesOnto(t *testing.T, node map[string]string) *waves {
	t.Helper()
	w := &waves{world: fresh(t, "{}")}
	w.set(t, "s", 0, 500, node, nil)
	return w
}

// add puts Pod i of a wave.
func (w *waves) add(t *testing.T, wave, i, cpu int) {
	t.Helper()
	w.asked, w.pods = w.asked+cpu, w.pods+1
	w.must(t, w.Put(pending(fmt.Sprintf("p-%d-%02d", wave, i), w.now.Add(-time.Minute), resources("cpu", fmt.Sprintf("%dm", cpu)))))
}

// cut puts Pods from i on that fill what is left of a Node, and returns who comes next.
func (w *waves) cut(t *testing.T, r *rand.Rand, wave, i, left int) int {
	t.Helper()
	for ; left > 0; i++ {
		n := min(left, 500+10*r.IntN(200))
		if left-n < 400 {
			n = left
		}
		w.add(t, wave, i, n)
		left -= n
	}
	return i
}

// waitingForAChoice are idle Nodes of a set that has so many ordinals more than are wanted, of which no Machine is made yet.
func waitingForAChoice(t testing.TB, nodes, more int) *world {
	t.Helper()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.pool(t, "x", int32(nodes), int32(2*nodes), nil, nil) //nolint:gosec // thousands
	idle, l := map[types.UID]metav1.Time{}, machine.NewLedger("set-x")
	for l.Next = range nodes + more {
		l.Active = append(l.Active, l.Next)
		if l.Next < nodes {
			w.idler(t, "x", l.Name("x", l.Next))
			idle[types.UID("node-"+l.Name("x", l.Next))] = metav1.NewTime(epoch.Add(-time.Hour))
		}
	}
	l.Next++
	w.must(t, memory.Patch(w.Server, machine.Namespace, "x", func(s *machine.MachineSet) { s.Annotations[machine.AnnotationLedger] = l.String() }))
	w.remember(t, autoscaling.State{Unneeded: idle})
	return w
}

// Before it is known whom a lower target takes no idle Node goes, and they go once it is (C46).
func TestIdleNodesWaitForTheChoice(t *testing.T) {
	t.Parallel()
	for _, more := range []int{0, 10} {
		w := waitingForAChoice(t, 30, more)
		w.once(t)
		if begun := len(w.state(t).Removals); (begun > 0) != (more == 0) {
			t.Errorf("%d ordinals more than are wanted: %d Nodes go", more, begun)
		}
	}
}

// A scan in which a thousand idle Nodes wait for the choice of others costs about as much as one in which they may go.
func BenchmarkChoice(b *testing.B) {
	for name, more := range map[string]int{"known": 0, "waited for": 10} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				w := waitingForAChoice(b, 1000, more)
				b.StartTimer()
				w.once(b)
			}
		})
	}
}
