// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/test/replay"
)

// Every number of schedules is for `make test`; `make sim` multiplies them.
var (
	times     = flag.Float64("times", 1, "so many times as many schedules")
	firstSeed = flag.Uint64("seed", 0, "the first seed")
	parts     = flag.Int("parts", 1, "a run is played in so many parts")
	part      = flag.Int("part", 0, "which of them, from 0: all of them play what the run does")
	brief     = flag.Bool("brief", false, "print what is violated and nothing more")
	every     = flag.Duration("every", 0, "how often is told how far it is; 0: never")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *parts < 1 || *part < 0 || *part >= *parts || *times <= 0 {
		fmt.Println("-part is one of 0 to -parts less one, -times more than none")
		os.Exit(2)
	}
	if testing.Short() {
		*times /= 20
	}
	debug.SetGCPercent(4000) // many small schedules: memory is cheaper than time
	debug.SetMemoryLimit(1 << 30)
	if flag.Lookup("test.memprofile").Value.String() == "" {
		runtime.MemProfileRate = 0
	}
	stop := func() {}
	if *every > 0 {
		stop = counted.report(os.Stdout, *every)
	}
	again := replay.NewAgain()
	Asked = again.Asked
	code := m.Run()
	stop()
	for _, line := range beyond(again) {
		fmt.Println(line)
		code = 1
	}
	if testing.Verbose() {
		counted.table(os.Stdout)
		counted.reached(os.Stdout)
	}
	os.Exit(code)
}

// play plays one schedule and returns its violation, with what it takes to play it again.
func play(c Config, s *Script) (*Play, error) {
	p := NewPlay(c, s)
	return p, p.Run()
}

// mostShared bounds what is remembered from one play to the next.
const mostShared = 10000

// campaign plays n schedules, or times as many, of which each seed is another one.
func campaign(t *testing.T, name string, n int, least float64, schedule func(seed uint64) (Config, *Script)) {
	t.Helper()
	playAll(t, name, max(1, int(float64(n)**times)), least, schedule)
}

// playAll plays all schedules, or a part of them, on all cores and reports the first that fails. At least so many calls that make or
// remove an instance have to be struck by the schedule, but for chance: else nothing is proved of what matters most.
func playAll(t *testing.T, name string, all int, least float64, schedule func(seed uint64) (Config, *Script)) {
	t.Helper()
	first, beyond := all**part / *parts, all*(*part+1) / *parts
	n := beyond - first
	tally, end := counted.begin(name, int64(n))
	defer end()
	var next atomic.Int64
	next.Store(int64(first))
	var workers sync.WaitGroup
	var failed atomic.Bool
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			known := machine.NewRecords()
			for !failed.Load() {
				i := next.Add(1) - 1
				if i >= int64(beyond) {
					return
				}
				c, s := schedule(*firstSeed + uint64(i))
				if known.Read() > mostShared {
					known = machine.NewRecords()
				}
				c.Records = known
				p, err := play(c, s)
				tally.played.Add(1)
				tally.add(&p.reach)
				if err != nil && *brief && !failed.Swap(true) {
					fmt.Printf("violation %v\n", err)
					t.Errorf("violation %v", err)
				}
				if err != nil {
					tally.violations.Add(1)
				}
				if err != nil && !failed.Swap(true) {
					t.Errorf("%s, seed %d: %s", name, *firstSeed+uint64(i), keep(c, p.Vector(), err))
				}
			}
		})
	}
	for i := range uint64(min(n, mostKeepable)) { // beside them: no core waits for it
		c, s := schedule(*firstSeed + uint64(first) + i)
		p := NewPlay(c, s)
		var trace strings.Builder
		p.Trace = &trace
		if p.Run() == nil { // else a worker tells of it
			keepable(t, name, c, p.Vector(), trace.String())
		}
	}
	workers.Wait()
	hit, mean := tally.sum(), least*float64(n)
	if want := mean - 3*math.Sqrt(mean); float64(hit.struck()) < want && !failed.Load() && !*brief {
		t.Errorf("%s: %d calls were struck that make or remove an instance, in %d schedules %.0f are wanted at least", name, hit.struck(), n, want)
	}
}

// levelOf gives most seeds to the levels whose schedules are short.
func levelOf(seed uint64) Level {
	if seed%8 == 7 {
		return Scaling
	}
	return Level(seed % 2)
}

// steps are enough, in most schedules, for instances to be made and some to be removed while things fail; what comes of it until it is
// calm takes longer than they do.
func steps(seed uint64) int { return []int{40, 120, 200, 300, 500}[seed%5] }

// Whatever fails and in whatever order, nothing is done that must not be, and in the end everything is as it is wanted
// (R-S1–R-S17, R-L1–R-L3): random schedules, with mixes of faults that are random themselves.
func TestSwarm(t *testing.T) { //nolint:paralleltest // it uses all cores
	for level, of := range map[Level]struct {
		n     int
		least float64
	}{Machines: {2800, 0.15}, Healing: {1400, 0.15}, Scaling: {500, 0.1}} {
		campaign(t, "swarm "+level.String(), of.n, of.least, func(seed uint64) (Config, *Script) {
			return Config{Level: level, Steps: steps(seed)}, &Script{Strategy: NewSwarm(seed)}
		})
	}
	// Where all calls fail alike, and invocations get less far, other things come together.
	campaign(t, "rough", 400, 0, func(seed uint64) (Config, *Script) {
		return Config{Level: Level(seed % 2), Steps: few(seed)}, &Script{Strategy: NewRough(seed)}
	})
	// The control plane has Machines too, which people delete (R-S10).
	campaign(t, "swarm, masters", 200, 0.2, func(seed uint64) (Config, *Script) {
		return Config{Level: Level(seed % 2), Steps: steps(seed), Masters: true}, &Script{Strategy: Deletes{Strategy: NewSwarm(seed)}}
	})
	// The API server's storage is set back, to where records are missing of what was made (2b.3).
	campaign(t, "swarm, restored", 400, 0.1, func(seed uint64) (Config, *Script) {
		c := Config{Level: Level(seed % numLevels), Steps: steps(seed)}
		return c, &Script{Strategy: NewRestores(seed, c.Steps)}
	})
	// What takes a quarter of an hour to be given up is reached by long schedules alone.
	campaign(t, "long swarm", 60, 0.3, func(seed uint64) (Config, *Script) {
		return Config{Level: Scaling, Steps: 600}, &Script{Strategy: NewSwarm(seed)}
	})
	campaign(t, "long swarm machines", 300, 0.5, func(seed uint64) (Config, *Script) {
		return Config{Level: Machines, Steps: 400 + int(seed%4)*200}, &Script{Strategy: NewSwarm(seed)}
	})
}

// The same where the API server stores what it would store over HTTP: what is compared is what was sent.
func TestSwarmExactly(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "exact", 200, 0.1, func(seed uint64) (Config, *Script) {
		return Config{Level: Level(seed % numLevels), Steps: steps(seed), Exact: true}, &Script{Strategy: NewSwarm(seed)}
	})
}

// The same with priorities and a few points at which they change: what needs a few turns at the right moments is found.
func TestPriorities(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "priorities", 1800, 0.15, func(seed uint64) (Config, *Script) {
		c := Config{Level: levelOf(seed), Steps: steps(seed)}
		return c, &Script{Strategy: NewPriorities(seed, 3+int(seed%3), c.Steps)}
	})
}

// The same with one invocation frozen before one call until all is quiet. On clouds without tokens a second instance
// may come of it, on others only if its attempt was refused after the Horizon; it is gone in the end (RELIABILITY §0.4).
func TestSleeper(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "sleeper", 1800, 0.2, func(seed uint64) (Config, *Script) {
		c := Config{Level: levelOf(seed), Steps: steps(seed), Frozen: true}
		return c, &Script{Strategy: NewSleeper(seed, c.Steps)}
	})
}

// worlds are the ones that stories are told in: with tokens and without, at once and slow, and on bare metal.
var worlds = [][]byte{{0, 0, 0, 0, 0, 1}, {1, 1, 1, 1, 1, 1}, {2, 0, 0, 0, 0, 1}}

// upgraded are those in which another version runs beside today's, the older and the newer one.
var upgraded = [][]byte{{1, 1, 1, 1, 1, 1, 0, 1}, {0, 0, 0, 0, 0, 1, 0, 2}}

// storySteps is how long the story of a level is: what comes of the last chapters shows when it is calm.
var storySteps = [...]int{Machines: 1100, Healing: 1800, Scaling: 3000}

// stories plays the story of every level in every world.
func stories(t *testing.T, each func(c Config, world []byte, s *noted)) {
	t.Helper()
	for level := range Level(numLevels) {
		for _, w := range slices.Concat(worlds, upgraded) {
			s := newNoted()
			c := Config{Level: level, Steps: storySteps[level]}
			p, err := play(c, &Script{Given: w, Strategy: s})
			if err != nil {
				t.Fatalf("the story itself: %s", keep(c, p.Vector(), err))
			}
			if last := [...]int{Machines: 12, Healing: 16, Scaling: 16}[level]; p.story <= last {
				t.Errorf("%s: only %d rounds of the story in %d steps", level, p.story, c.Steps)
			}
			each(c, w, s)
		}
	}
}

// Every call of the whole story fails, loses its answer, sees what is old, or is the last of its process, also where two versions
// run at once: two of Sieve's patterns at every call site (OSDI 2022).
func TestEveryCallIsStruck(t *testing.T) { //nolint:paralleltest // it uses all cores
	var all []at
	stories(t, func(c Config, w []byte, s *noted) { all = append(all, s.strikes(c, w, 1)...) })
	strikeAll(t, "struck", 820, 0.02, all)
}

// Every event of the whole story is lost, comes twice, or is overtaken: Sieve's third pattern.
func TestEveryEventIsLost(t *testing.T) { //nolint:paralleltest // it uses all cores
	type lost struct {
		Config
		world []byte
		Lose
		cell
	}
	var all []lost
	stories(t, func(c Config, w []byte, s *noted) {
		for event, of := range s.woke {
			for becomes := range numEvent {
				of.becomes = strconv.Itoa(becomes)
				all = append(all, lost{c, w, Lose{Event: event + 1, Becomes: becomes}, of})
			}
		}
	})
	aPart(t, "lost", 200, 0, all, func(a lost) cell { return a.cell }, func(a lost) (Config, *Script) {
		return a.Config, &Script{Given: a.world, Strategy: &a.Lose}
	})
}

// leastWhole is how many scopes make test plays to their end.
const leastWhole = 260

// All schedules of two invocations of a function at the same time, with up to two turns and one fault, at the stages of a
// life, and before instances are made and removed; in larger runs with more of both. Of scopes that are too large some schedules, from
// all over them.
func TestAllSchedulesOfTwo(t *testing.T) { //nolint:paralleltest // it uses all cores
	var bouts []*Bout
	for _, w := range worlds {
		for _, stage := range []int{0, 1, 2, 4, 5, 8, 9, 10, 11, 13} {
			for fn := range Level.functions(Machines) {
				bouts = append(bouts, &Bout{Config: Config{Level: Machines}, World: w, Stage: stage, Functions: []int{fn, fn}})
			}
			bouts = append(bouts, &Bout{Config: Config{Level: Machines}, World: w, Stage: stage, Functions: []int{0, 1}})
		}
		for _, at := range []struct {
			before dear
			stages []int
		}{{claims, []int{0, 4, 7}}, {removes, []int{8, 11}}, {frees, []int{8, 11}}} {
			for _, stage := range at.stages {
				for _, with := range []int{1, 0, 3, 4} { // whoever makes and removes instances; who else acts on Machines
					bouts = append(bouts, &Bout{Config: Config{Level: Machines}, World: w, Stage: stage, Before: at.before, Functions: []int{1, with}})
				}
			}
		}
		for v := range byte(2) { // another version beside today's
			for _, stage := range []int{1, 5, 8, 9, 13} {
				for fn := range 2 {
					beside := append(slices.Clip(w), 0, 1+v)
					bouts = append(bouts, &Bout{Config: Config{Level: Machines}, World: beside, Stage: stage, Functions: []int{fn, fn}})
				}
			}
		}
		for _, of := range []struct {
			level           Level
			function, first int
		}{{Healing, 5, 20}, {Scaling, 6, 17}} {
			for stage := of.first; stage < of.first+12; stage += 3 { // even and odd ones
				for _, with := range []int{of.function, 0, 1, 3} { // itself; who makes and removes what it decides about
					bouts = append(bouts, &Bout{Config: Config{Level: of.level}, World: w, Stage: stage, Functions: []int{of.function, with}})
				}
			}
		}
	}
	tally, end := counted.begin("exhaustive", 0)
	defer end()
	played := int64(-1) // of more parts than scopes some have none
	enough, faults := int64(85000**times)/int64(*parts), 1
	for most := int(2600 * *times); (faults == 1 || *times > 1) && tally.played.Load() < enough && tally.played.Load() > played && !t.Failed(); most = int(enough-tally.played.Load())**parts/len(bouts) + 1 {
		played = tally.played.Load()
		ends := exhaustAll(t, bouts, faults, most, tally)
		t.Logf("of %d scopes with up to %d faults and %d turns: %s", len(bouts), faults, faults+1, ends)
		if n := ends.whole.Load(); faults == 1 && *times >= 1 && *parts == 1 && n < leastWhole && !t.Failed() {
			t.Errorf("%d of %d scopes were played to their end, %d are wanted at least", n, len(bouts), leastWhole)
		}
		faults++
	}
	hit := tally.sum()
	for of, least := range map[dear]float64{creates: 400, removes: 800, claims: 800, frees: 300} {
		if n := hit.struckOf(of); float64(n) < least**times && *parts == 1 && !t.Failed() {
			t.Errorf("of %s %d were struck, %.0f are wanted at least", dearNames[of], n, least**times)
		}
	}
}

// ends is how far scopes were played: to their end, or of how many of them all schedules with so many special choices.
type ends struct {
	whole atomic.Int64
	of    [3]atomic.Int64
}

func (e *ends) String() string {
	return fmt.Sprintf("%d to their end, %d with every special choice alone, %d with any two of them", e.whole.Load(), e.of[1].Load(), e.of[2].Load())
}

// exhaustAll plays the schedules of all bouts, of each at most so many.
func exhaustAll(t *testing.T, bouts []*Bout, faults, most int, tally *tally) *ends {
	t.Helper()
	var ends ends
	var next atomic.Int64
	var workers sync.WaitGroup
	var scenes [][]int // the bouts that begin at each
	for i := range bouts {
		if i == 0 || !bouts[i].shares(bouts[i-1]) {
			scenes = append(scenes, nil)
		}
		scenes[len(scenes)-1] = append(scenes[len(scenes)-1], i)
	}
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for n := next.Add(1); int(n) <= len(scenes); n = next.Add(1) {
				scene := scenes[len(scenes)-int(n)] // the last take longest: in the end nobody waits for them
				told := *bouts[scene[0]]
				told.Prepare()
				for _, i := range scene {
					if i%*parts != *part {
						continue
					}
					b := *bouts[i]
					b.scene, b.Faults, b.Switches = told.scene, faults, faults+1
					rng := rand.New(rand.NewPCG(*firstSeed, uint64(i)<<8+uint64(faults))) //nolint:gosec // to be repeated
					exhaust(t, &b, rng, b.share(most), tally, &ends)
				}
				told.Close()
			}
		})
	}
	keepableBouts(t, bouts, faults)
	workers.Wait()
	return &ends
}

// share is how many schedules of b are played, of the most that a scope has.
func (b *Bout) share(most int) int {
	switch {
	case b.Level > Machines || len(b.World) > len(worlds[0]): // where each takes longest
		return max(1, most/8)
	case b.Before != common: // the largest scopes
		return max(1, most/3)
	}
	return most
}

// branch is a schedule that was played: others are it up to one of its choices, and there something else that is special.
type branch struct {
	taken, widths []byte
	from          int // the choices before are those of whom it is a branch
}

// others is how many schedules there are that are like b but for one choice more that is special.
func (b branch) others() (n int) {
	for _, w := range b.widths[b.from:] {
		n += int(w) - 1
	}
	return n
}

// other returns the i-th.
func (b branch) other(i int) []byte {
	for at := b.from; ; at++ {
		if n := int(b.widths[at]) - 1; i >= n {
			i -= n
			continue
		}
		return append(b.taken[:at:at], byte(1+i))
	}
}

// exhaust plays the schedules of a bout that is prepared: the one in which nothing special is chosen, then all in which one choice is special, then two,
// and so on. Where these are too many for what is left of most, it plays some from all over them, so that early calls are struck as
// late ones are, and goes on from those.
func exhaust(t *testing.T, b *Bout, rng *rand.Rand, most int, tally *tally, ends *ends) {
	t.Helper()
	b.play.reach = reach{}
	defer func() { tally.add(&b.play.reach) }()
	first, ok := b.branch(t, nil, tally)
	whole := true
	alike := func() { // with every seed
		if whole && !b.redundant {
			tally.alike.Add(1)
		}
	}
	alike()
	for level, special := []branch{first}, 1; ok && len(level) > 0; special++ {
		total := 0
		for _, of := range level {
			total += of.others()
		}
		n := total
		if n > most {
			n, whole = (most+1)/2, false
		}
		if whole && special < len(ends.of) {
			ends.of[special].Add(1)
		}
		most -= n
		var next []branch
		before, at := 0, 0 // the schedules like those before level[at]
		for i := 0; i < n && ok; i++ {
			want := min(int((float64(i)+rng.Float64())*float64(total)/float64(n)), total-1)
			if n == total {
				want = i
			}
			for want >= before+level[at].others() {
				before, at = before+level[at].others(), at+1
			}
			var of branch
			of, ok = b.branch(t, level[at].other(want-before), tally)
			alike()
			next = append(next, of)
		}
		level = next
	}
	if ok && whole {
		ends.whole.Add(1)
	}
}

// branch plays the schedule that is given up to its last special choice, and reports whether nothing was violated.
func (b *Bout) branch(t *testing.T, given []byte, tally *tally) (of branch, ok bool) {
	t.Helper()
	s, reach := &Script{Given: given}, b.play.reach
	b.Settles = settles(given)
	err := b.Play(s)
	if b.redundant {
		b.play.reach = reach
		tally.redundant.Add(1)
	} else {
		tally.played.Add(1)
	}
	if err != nil {
		tally.violations.Add(1)
		told(t, b, s, err, tally)
	}
	return branch{s.Taken, s.Widths, len(given)}, err == nil
}

// oneSettles is of how many schedules of a scope one goes on until everything is as it is wanted: all would take three times as long.
const oneSettles = 32

// settles chooses it, always the same.
func settles(given []byte) bool {
	h := fnv.New32a()
	_, _ = h.Write(given)
	return h.Sum32()>>8%oneSettles == 0
}

// told tells of a violation; of the first one its smallest schedule and the story.
func told(t *testing.T, b *Bout, s *Script, err error, tally *tally) {
	t.Helper()
	if *brief {
		fmt.Printf("violation %v\n", err)
		t.Errorf("violation %v", err)
		return
	}
	how := line(*b, s.Vector(), err)
	if !tally.told.Swap(true) {
		how = keep(*b, s.Vector(), err)
	}
	t.Errorf("stage %d, functions %v, world %v: %s", b.Stage, b.Functions, b.World, how)
}

// FuzzSchedule lets coverage choose what happens.
func FuzzSchedule(f *testing.F) {
	for seed := range uint64(4) {
		p, _ := play(Config{Level: Machines, Steps: 60}, &Script{Strategy: NewSwarm(seed)})
		f.Add(byte(0), p.Vector())
	}
	f.Fuzz(func(t *testing.T, level byte, vector []byte) {
		c := Config{Level: Level(level) % numLevels, Steps: min(len(vector), 100)}
		if _, err := play(c, &Script{Given: vector}); err != nil {
			t.Error(keep(c, vector, err))
		}
	})
}
