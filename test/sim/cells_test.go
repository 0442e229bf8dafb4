// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/machine-functions/machine-functions/shared/plan"
)

// cell is what can become of a kind of call, or of event, of one function.
type cell struct{ function, kind, becomes string }

// kind names a call without what it is about.
func (c call) kind() string {
	kind := strings.Join(append(strings.Fields(c.what), "")[:2], " ")
	if c.action != nil {
		kind, _, _ = strings.Cut(plan.Line(c.action), "/")
	}
	return strings.TrimSpace(kind + " " + dearNames[c.dear])
}

// cellOf is the cell of the call whose turn it is.
func (p *Play) cellOf(v verdict) cell {
	return cell{p.Functions[p.turn.fn].Name, p.turn.pending.kind(), verdictNames[v]}
}

// noted is the story without anything special, of which it keeps what could become of each call, and what each event was of.
type noted struct {
	Lose
	may  map[int][]verdict
	of   map[int]cell // call
	woke []cell
}

func newNoted() *noted { return &noted{may: map[int][]verdict{}, of: map[int]cell{}} }

// Pick implements [Strategy].
func (s *noted) Pick(p *Play, k Kind, n int) int {
	if k == KindFault {
		s.may[p.calls], s.of[p.calls] = p.verdicts, p.cellOf(works)
	}
	before := s.events
	v := s.Lose.Pick(p, k, n)
	if s.events > before {
		e := p.queue[0]
		s.woke = append(s.woke, cell{function: p.Functions[e.fn].Name, kind: "event of a " + e.req.Kind})
	}
	return v
}

// at is a story of which one call is struck.
type at struct {
	Config
	world []byte
	Strike
	cell
}

// strikes returns all that can become of every call, or of every so many.
func (s *noted) strikes(c Config, w []byte, step int) (all []at) {
	calls := slices.Sorted(maps.Keys(s.may))
	for i := 0; i < len(calls); i += step {
		for _, v := range s.may[calls[i]][1:] {
			of := s.of[calls[i]]
			of.becomes = verdictNames[v]
			all = append(all, at{c, w, Strike{Call: calls[i], Verdict: v}, of})
		}
	}
	return all
}

// strikeAll plays so many of all, and in whole runs wants every cell struck.
func strikeAll(t *testing.T, name string, most int, least float64, all []at) {
	t.Helper()
	hits := &struckCells{times: map[cell]int{}}
	aPart(t, name, most, least, all, func(a at) cell { return a.cell }, func(a at) (Config, *Script) {
		return a.Config, &Script{Given: a.world, Strategy: &striking{&a.Strike, hits}}
	})
	if *times >= 1 && *parts == 1 && !t.Failed() {
		cells := map[cell]bool{}
		for _, a := range all {
			cells[a.cell] = true
		}
		hits.want(t, cells)
	}
}

// aPart plays so many of all, or times as many, and in whole runs one of each cell at least. Pieces of a longer run, whose first seeds are
// as far apart as each is long, play others, until none is left.
func aPart[T any](t *testing.T, name string, most int, least float64, all []T, of func(T) cell, schedule func(T) (Config, *Script)) {
	t.Helper()
	n := max(1, int(float64(most)**times))
	some := someOf(all, n, int(*firstSeed/uint64(100000**times)), of)
	playAll(t, fmt.Sprintf("%s 1/%d", name, len(all)/len(some)), len(some), least, func(seed uint64) (Config, *Script) {
		return schedule(some[seed-*firstSeed])
	})
}

// struckCells counts which cells schedules struck.
type struckCells struct {
	mu    sync.Mutex
	times map[cell]int
}

// striking is a strategy of which is counted what it strikes.
type striking struct {
	Strategy
	hits *struckCells
}

// Pick implements [Strategy].
func (s *striking) Pick(p *Play, k Kind, n int) int {
	v := s.Strategy.Pick(p, k, n)
	if k == KindFault && v > 0 {
		s.hits.mu.Lock()
		defer s.hits.mu.Unlock()
		s.hits.times[p.cellOf(p.verdicts[v])]++
	}
	return v
}

// want tells how often each of these was struck, and fails for one that never was.
func (s *struckCells) want(t *testing.T, cells map[cell]bool) {
	t.Helper()
	var lines []string
	last := cell{}
	order := func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.function, b.function), cmp.Compare(a.kind, b.kind), cmp.Compare(a.becomes, b.becomes))
	}
	for _, c := range slices.SortedFunc(maps.Keys(cells), order) {
		if s.times[c] == 0 {
			t.Errorf("%s, %s: %s was never struck", c.function, c.kind, c.becomes)
		}
		if c.function != last.function || c.kind != last.kind {
			lines = append(lines, c.function+", "+c.kind+":")
		}
		lines[len(lines)-1] += fmt.Sprintf(" %s %d;", c.becomes, s.times[c])
		last = c
	}
	t.Logf("%d cells, and how often each was struck:\n%s", len(cells), strings.Join(lines, "\n"))
}

// someOf returns n of all, from all over them, others for each piece until none is left, and in whole runs one of each cell at least.
func someOf[T any](all []T, n, piece int, of func(T) cell) []T {
	if n >= len(all) {
		return all
	}
	shuffled, some, there := make([]T, len(all)), []T(nil), map[cell]bool{}
	for i, at := range rand.New(rand.NewPCG(1, 1)).Perm(len(all)) { //nolint:gosec // the same for all pieces
		shuffled[i] = all[at]
	}
	for i := range all {
		a := shuffled[(piece*n+i)%len(all)]
		if c := of(a); i < n || !there[c] && *times >= 1 {
			there[c] = true
			some = append(some, a)
		}
	}
	return some
}

// Of some that are chosen each cell has one, pieces share no others, and together they are all; a longer run is all of them, once each.
func TestPiecesAreAll(t *testing.T) {
	t.Parallel()
	all := make([]int, 100)
	for i := range all {
		all[i] = i
	}
	of := func(i int) cell { return cell{becomes: strconv.Itoa(min(i, 5))} }
	seen := map[int]int{}
	for piece := range 10 {
		some := someOf(all, 10, piece, of)
		cells := map[cell]bool{}
		for i, a := range some {
			cells[of(a)] = true
			if i < 10 {
				seen[a]++
			}
		}
		if *times >= 1 && len(cells) < 6 {
			t.Errorf("piece %d has %d of 6 cells", piece, len(cells))
		}
	}
	for _, i := range all {
		if seen[i] != 1 {
			t.Errorf("%d is in %d pieces", i, seen[i])
		}
	}
	if some := someOf(all, 100, 3, of); !slices.Equal(some, all) {
		t.Errorf("a run of all is %v", some)
	}
}
