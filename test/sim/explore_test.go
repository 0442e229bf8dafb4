// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/test/replay"
)

// Every number of schedules is for `make test`; `make sim` multiplies them.
var (
	times     = flag.Float64("times", 1, "so many times as many schedules")
	firstSeed = flag.Uint64("seed", 0, "the first seed")
	brief     = flag.Bool("brief", false, "print what is violated and nothing more")
	every     = flag.Duration("every", 0, "how often is told how far it is; 0: never")
)

func TestMain(m *testing.M) {
	flag.Parse()
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

// story returns the smallest schedule with the violation of a failing one, and its trace.
func story(c Config, vector []byte, err error) ([]byte, string) {
	rule, _, _ := strings.Cut(err.Error(), ":")
	end := time.Now().Add(20 * time.Second)
	small := Shrink(vector, func(v []byte) bool {
		if time.Now().After(end) {
			return false
		}
		_, e := play(c, &Script{Given: v})
		return e != nil && strings.HasPrefix(e.Error(), rule+":")
	})
	var trace strings.Builder
	again := NewPlay(c, &Script{Given: small})
	again.Trace = &trace
	_ = again.Run() // it fails
	text := trace.String()
	if len(text) > 12000 {
		text = text[:4000] + "\n…\n" + text[len(text)-8000:]
	}
	return small, text
}

// mostShared bounds what is remembered from one play to the next.
const mostShared = 10000

// campaign plays n schedules on all cores and reports the first that fails. At least so many calls that make or remove an instance have
// to be struck by the schedule, but for chance: else nothing is proved of what matters most.
func campaign(t *testing.T, name string, n int, least float64, schedule func(seed uint64) (Config, *Script)) {
	t.Helper()
	n = max(1, int(float64(n)**times))
	tally, end := counted.begin(name, int64(n))
	defer end()
	var next atomic.Int64
	var workers sync.WaitGroup
	var failed atomic.Bool
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			known := machine.NewRecords()
			for !failed.Load() {
				i := next.Add(1) - 1
				if i >= int64(n) {
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
					vector, trace := story(c, p.Vector(), err)
					t.Errorf("%s, seed %d: %v\nkeep it: {%d, %v, %d, %q}\n%s", name, *firstSeed+uint64(i), err, c.Level, c.Frozen, c.Steps, hex.EncodeToString(vector), trace)
				}
			}
		})
	}
	workers.Wait()
	hit, mean := tally.sum(), least*float64(n)
	if want := mean - 3*math.Sqrt(mean); float64(hit.struck()) < want && !failed.Load() && !*brief {
		t.Errorf("%s: %d calls were struck that make or remove an instance, in %d schedules %.0f are wanted at least", name, hit.struck(), n, want)
	}
}

// kept are the schedules in which something was wrong with the functions, each as small as it could be made. What
// happens in them changes with the functions; that nothing is violated must not.
var kept = []struct {
	was    string
	level  Level
	frozen bool
	steps  int
	vector string
}{
	{
		"R-L1: a Machine was deleted before its lost instance was found: the Node of that was never looked for (R-B31)",
		Machines, false, 100, "00000000000400000000000000000000000000000000000000000000000000000000000301040000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000007",
	},
	{
		"R-L1: an instance that nobody had recorded was lost, its Node kept the name of the next one: the cloud's node controller was missing here",
		Machines, false, 80, "000001000000000001000000000000000000000000000000000000000000000000000000000000000000000000000000000005030000060407",
	},
	{
		"R-S2: a claim on a Machine that was gone by then counted as written, and a host was taken for it",
		Healing, false, 60, "0200000000000001000103010000000000000003000004000000000000000000000000000000000000000000000000000000000301000303",
	},
	{
		"R-S9: a host that was held off counted as running when its Node went",
		Healing, false, 60, "020000000000000001050405",
	},
	{
		"R-S4: a victim that was spared kept its taint for five minutes, and then a Node more was made for the Pod that waited",
		Scaling, false, 20, "000001010002000000040000000000000000000000040402",
	},
	{
		"R-S6: a Machine was released and adopted at another ordinal between the readings of its set and of itself, and deleted for the old one",
		Healing, false, 100, "0103010000020201010300030000020000000000030000000701020800000404010000010000040201000002170301000002090300010200020c0000000001020101010001010002000201040502010100010000040c0204000000000100020210010102070000010000010000010000010200020003010103010101000101000101000101000100000000020e00010102000100000100000208010006010200010200020e030002110000040b020102000210020101030004090201030000000103010404010200010200010200010200020103000102000102000102000407020102040203010001020002070100010300010000020502000100000100000100000100000102000102000400010103",
	},
	{
		"R-S9: the same with a request that took for ever",
		Healing, true, 80, "020201000000000101050000000000000000000200000000000a0102010100000000000001010000060305010000000000000000000000000000000000000000000000060600000000000000000000000000000000060000000000000407000000000000000004050001",
	},
	{
		"R-L1: people spoilt the template's spec; what failed of it no check replaces (R-B27), and here nobody else did either",
		Healing, false, 60, "00000000000000000000041701",
	},
	{
		"R-S4: a Machine that people made was adopted between two commits, so nobody was chosen to go yet; here it counted as one too many",
		Machines, false, 80, "0000000000000000000000000003000101010000041800000000000000000000000000000000000000000000000000000001",
	},
	{
		"R-S5: an ordinal without a Machine was given up; here nobody could tell it from the ledger of the next version",
		Scaling, false, 600, "0203010200020202010500000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000003010000000000000000000101040800000005000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000005010000000000000000000000000000000000000000000000000000000000000000000000000000000100000000000000000000000000000000000000000000000000000000000000000000000000000000000800030100000000000702010000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000050500000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000505",
	},
	{
		"R-L2: a clock was set back by hours, and whoever had a cloud remove an instance before asked it no more until that time came again",
		Scaling, false, 40, "0003010000020000000500000000000000000000000000000000041903",
	},
	{
		"R-L1: a clock was set back by hours, and a Pod from before was too young to be helped until that time came again",
		Scaling, false, 80, "00000000000000000007000004190804",
	},
	{
		"R-S2: a clock was set back, and a driver judged by another one how long ago a call was: here, by the cloud's",
		Machines, false, 100, "00030000000000010100000000040000041901",
	},
	{
		"R-S5: people took a Machine out of the set, so that the victim had to make no room; here the one counted as gone instead of the other",
		Scaling, true, 80, "000001000001000000040000000000000000000411",
	},
	{
		"R-S5: a set was read again after its Machines, and who had been adopted in between counted as gone",
		Healing, false, 100, "00000000000000020004000417000411000000020100010101000101000409020000000000000001010000000000030001000000000418",
	},
	{
		"R-S4: a Machine had not become a Node in a quarter of an hour, and another was made in its place; here both counted",
		Scaling, false, 600, "020000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000002050505050000050500000000000000000000030600000000000000000000000000000000000000000000000000000000000000000000000505",
	},
	{
		"R-S7: a Node registered after its deleted Machine was read, and before the cloud was called: here who had looked counted as who had not",
		Machines, false, 100, "00000000000100000100000000000000000000000000000000000000000000000000000000000000000000000000000000000004010000000000000000000000000000000000000000000000000000000000000000000000000400000000000000000000000000000000000000000000000000000000000002000006020a",
	},
	{
		"R-S4: a Machine that was to go was taken out of the set, adopted again and deleted by another; here it still counted as one that made room",
		Scaling, false, 80, "0200000000020000000400000000000000000000000000000000000000000000000000000000000000000400010000000000000000000000000000000006050404090206040701",
	},
	{
		"R-S12: a Machine was deleted while its instance was made and recorded; here whoever made it had to look for it once more",
		Machines, false, 100, "00000100000100020100000000000002000001000002060300020600000000000002020000000000000200030002040000010202010000000002040000000000000200030004000001000002000000010000000000000000020400010000010000010000010000000002000003000000000000000000000000000000000000000001000001000201000002050001000002000000000000000000070000000000000000000203000000000206000002000001",
	},
	{
		"2a.7: a ledger was rebuilt, and the set restored from a backup with its ledger; here nobody in that invocation might go by it",
		Machines, false, 100, "0000000000010001000700000000000100000007010701000000000000000000000000000000000000000000000000000000000000000000000000000000000007000700000000050500000700000000040d000100000000000000000000040e0000000000000000000000040d",
	},
	{
		"R-S8: a drained Node was deleted and registered anew, and Pods came to it",
		Scaling, false, 600, "0000000200020001000400000000000000000000000000000000000000000000000000000000000003000000000000000000000003030004000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000100000000010000000000000000020000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000400000303000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000004080400000300000600",
	},
	{
		"R-L1: a clock jumped while an answer was lost, and the Node of the second instance stood in the way of the first's: here nobody did what the sweep tells people",
		Machines, false, 100, "01030001000200010200000000000000000000000000000000000000000418000000000000020a0000000000000000000000000000000000000000041900000000000002",
	},
	{
		"R-S2: a clock jumped, an instance counted as gone too early, and its Node came before it was swept: the cloud's node controller was missing here",
		Machines, false, 80, "0003000000000000010004050400000419",
	},
	{
		"R-S4: a Machine was taken out of its set, put back and adopted between the readings of the Machines and of their set, and went as one that no longer matched",
		Machines, false, 80, "000000000000000000000000020000000007000000000000000000000008000000000400040201000701000000000000000000000405000002050000000000000000000000000000000000000000000000000000020300041100000000000000041400000000070800000000020600000000000100000000000000000000000000000000000000000000000000000000000000000300000019000000000000000000000300000000000000000000000000000001",
	},
	{
		"R-S7: a drained Node registered anew and was linked after its deleted Machine was read: here who had looked counted as who had not",
		Scaling, false, 80, "000000010002010100040000000000000000000000000000000000000000000415000000040805000000000000000000000000000000000004000000030000060000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000302",
	},
	{
		"R-S5: people lowered the set and took a Machine out of it, and the autoscaler chose one more: here the Machine taken out was to be chosen as well",
		Scaling, false, 100, "02000000000200020005000000000000000000000000040002000000000000000000000000000000000000000000000000000000040902",
	},
	{
		"R-S12: a clock jumped while a new Machine's instance was made: here its age counted the jump, and nobody had seen it new",
		Healing, false, 80, "000000020002000000050000000000000004180002010000000000000000000000000000000000030100000000000000000000000100000419",
	},
	{
		"R-L1: a cloud did not tell its types, people had scaled to zero, and a Pod waited: here the process remembered that failure for ever, by a clock that stood still",
		Scaling, false, 120, "000000000000000000000000000000000000000000000000030004000000000300000000000504000000000000000000000000000000000006",
	},
	{
		"R-S5: a Machine was deleted, gone, and made anew before another who had seen it go gave up its ordinal: here that one counted as not too many",
		Machines, false, 200, "00030100000201000500000000000000000000040100000002020000000201000101000000000000000101000101000101000101000000041501020100010000020300000000000000020500010100020300000002020001010002000001010001010001010002000000000100000000000000000102000100000000000202000002",
	},
	{
		"R-S12: a clock jumped, a second instance was made, and one call removed both: here whoever made it had to ask for the second once more",
		Machines, false, 500, "01030000000000000000000001000000000416000000000000000000000000000000000418000000000100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000200000419",
	},
	{
		"R-S15: the answer to a create was lost, the instance removed, and the Secret not read again: how long another may surface was unknown, and counted as not at all",
		Machines, false, 500, "0003000000000001000000000000000000000000000000000000000000000000000000000000000000000000000004000000000000000000000000000000000002000000000403020000000000030100000000000000000000000000000000000004000000000000000000000000000000000000000008000000000000000002000000000000000000000000000000000000000000000000000000000000000000000008000000000000000000000000000000000000000000000000000000000000000000000000040002070008000000000000000303000000000000000000000000000000000000000000000000000002010000041a010000000000000000000000000000000000000004",
	},
	{
		"R-S15: a clock was set back by hours between the removal and what was made of it: it counted as asked for after the horizon",
		Machines, false, 200, "0003000000000002000000000000000000000000000004160000000000000000000000000000000000000000000300000000000000000000000000000000000000000000000000000000000002000000000003040000000000000000000000000000000707000000000000000000000000000000000000000000000000040e000200000000000007000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000004010000000000000000000000000000000301000000000000000000041903",
	},
}

func TestKeptSchedules(t *testing.T) {
	t.Parallel()
	for _, k := range kept {
		vector, err := hex.DecodeString(k.vector)
		if err != nil {
			t.Fatal(err)
		}
		c := Config{Level: k.level, Frozen: k.frozen, Steps: k.steps}
		if _, err := play(c, &Script{Given: vector}); err != nil {
			_, trace := story(c, vector, err)
			t.Errorf("%s, again: %v\n%s", k.was, err, trace)
		}
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
	}{Machines: {4200, 0.15}, Healing: {1400, 0.15}, Scaling: {500, 0.1}} {
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

// The same with priorities and a few points of change: what needs a few turns at the right moments is found.
func TestPriorities(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "priorities", 2800, 0.15, func(seed uint64) (Config, *Script) {
		c := Config{Level: levelOf(seed), Steps: steps(seed)}
		return c, &Script{Strategy: NewPriorities(seed, 3+int(seed%3), c.Steps)}
	})
}

// The same with one invocation frozen before one call until all is quiet. On clouds without tokens a second instance
// may come of it; it is gone in the end (RELIABILITY §0.4).
func TestSleeper(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "sleeper", 2800, 0.2, func(seed uint64) (Config, *Script) {
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

// noted is the story without anything special, of which it keeps what could become of each call, and how many events there were.
type noted struct {
	Lose
	may map[int][]verdict
}

// Pick implements [Strategy].
func (s *noted) Pick(p *Play, k Kind, n int) int {
	if k == KindFault {
		s.may[p.calls] = p.verdicts
	}
	return s.Lose.Pick(p, k, n)
}

// stories plays the story of every level in every world.
func stories(t *testing.T, each func(c Config, world []byte, s *noted)) {
	t.Helper()
	for level := range Level(numLevels) {
		for _, w := range slices.Concat(worlds, upgraded) {
			s := &noted{may: map[int][]verdict{}}
			c := Config{Level: level, Steps: storySteps[level]}
			p, err := play(c, &Script{Given: w, Strategy: s})
			if err != nil {
				t.Fatalf("the story itself: %v", err)
			}
			if last := [...]int{Machines: 12, Healing: 16, Scaling: 16}[level]; p.story <= last {
				t.Errorf("%s: only %d rounds of the story in %d steps", level, p.story, c.Steps)
			}
			each(c, w, s)
		}
	}
}

// aPart plays so many of all, spread evenly, or times as many. Pieces of a longer run, whose first seeds are as far apart as each
// is long, play others, until none is left.
func aPart[T any](t *testing.T, name string, most int, least float64, all []T, schedule func(T) (Config, *Script)) {
	t.Helper()
	stride := max(1, int(float64(len(all))/float64(most) / *times))
	piece := *firstSeed / uint64(100000**times)
	campaign(t, fmt.Sprintf("%s 1/%d", name, stride), int(math.Ceil(float64(len(all)/stride) / *times)), least, func(seed uint64) (Config, *Script) {
		i := seed - *firstSeed
		return schedule(all[(int(i)*stride+int(i+piece)%stride)%len(all)])
	})
}

// Every call of the whole story fails, loses its answer, sees what is old, or is the last of its process, also where two versions
// run at once: two of Sieve's patterns at every call site (OSDI 2022).
func TestEveryCallIsStruck(t *testing.T) { //nolint:paralleltest // it uses all cores
	type at struct {
		Config
		world []byte
		Strike
	}
	var all []at
	stories(t, func(c Config, w []byte, s *noted) {
		for _, call := range slices.Sorted(maps.Keys(s.may)) {
			for _, v := range s.may[call][1:] {
				all = append(all, at{c, w, Strike{Call: call, Verdict: v}})
			}
		}
	})
	aPart(t, "struck", 1600, 0.02, all, func(a at) (Config, *Script) { return a.Config, &Script{Given: a.world, Strategy: &a.Strike} })
}

// Every event of the whole story is lost, comes twice, or is overtaken: Sieve's third pattern.
func TestEveryEventIsLost(t *testing.T) { //nolint:paralleltest // it uses all cores
	type at struct {
		Config
		world []byte
		Lose
	}
	var all []at
	stories(t, func(c Config, w []byte, s *noted) {
		for event := range s.events {
			for becomes := range numEvent {
				all = append(all, at{c, w, Lose{Event: event + 1, Becomes: becomes}})
			}
		}
	})
	aPart(t, "lost", 200, 0, all, func(a at) (Config, *Script) { return a.Config, &Script{Given: a.world, Strategy: &a.Lose} })
}

// All schedules of two invocations of a function at the same time, with up to two turns and one fault, at the stages of a
// life; and, where that is not enough, with more of both.
func TestAllSchedulesOfTwo(t *testing.T) { //nolint:paralleltest // it uses all cores
	var bouts []*Bout
	for _, w := range worlds {
		for _, stage := range []int{0, 1, 2, 4, 5, 8, 9, 10, 11, 13} {
			for fn := range Level.functions(Machines) {
				bouts = append(bouts, &Bout{Config: Config{Level: Machines}, World: w, Stage: stage, Functions: []int{fn, fn}})
			}
			bouts = append(bouts, &Bout{Config: Config{Level: Machines}, World: w, Stage: stage, Functions: []int{0, 1}})
		}
		for v := range byte(2) { // another version beside today's
			for _, stage := range []int{1, 5, 8, 9, 13} {
				for fn := range 2 {
					beside := append(slices.Clip(w), 0, 1+v)
					bouts = append(bouts, &Bout{Config: Config{Level: Machines}, World: beside, Stage: stage, Functions: []int{fn, fn}})
				}
			}
		}
		for level, of := range map[Level]struct{ function, first int }{Healing: {5, 20}, Scaling: {6, 17}} {
			for stage := of.first; stage < of.first+12; stage += 3 { // even and odd ones
				for _, with := range []int{of.function, 0, 1, 3} { // itself; who makes and removes what it decides about
					bouts = append(bouts, &Bout{Config: Config{Level: level}, World: w, Stage: stage, Functions: []int{of.function, with}})
				}
			}
		}
	}
	tally, end := counted.begin("exhaustive", 0)
	defer end()
	enough, faults := int64(85000**times), 1
	for most := int(2000 * *times); tally.played.Load() < enough && !t.Failed(); most = int(enough-tally.played.Load())/len(bouts) + 1 {
		whole := exhaustAll(t, bouts, faults, most, tally)
		t.Logf("%d of %d scopes with up to %d faults and %d turns to their end", whole, len(bouts), faults, faults+1)
		faults++
	}
}

// exhaustAll plays the schedules of all bouts, of each at most so many. It returns how many bouts have no other.
func exhaustAll(t *testing.T, bouts []*Bout, faults, most int, tally *tally) (whole int64) {
	t.Helper()
	var next, ended atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(bouts); i = next.Add(1) - 1 {
				b := *bouts[i]
				b.Faults, b.Switches = faults, faults+1
				share := most
				if b.Level > Machines || len(b.World) > len(worlds[0]) { // the largest scopes
					share = max(1, most/10)
				}
				if exhaust(t, &b, start(uint64(i), faults), share, tally) {
					ended.Add(1)
				}
			}
		})
	}
	workers.Wait()
	return ended.Load()
}

// start is where the schedules of a bout begin: with the first, unless another seed is the first, which begins anywhere.
func start(bout uint64, faults int) *Script {
	s := &Script{}
	if *firstSeed > 0 {
		rng := rand.New(rand.NewPCG(*firstSeed, bout<<8+uint64(faults))) //nolint:gosec // to be repeated
		for range 40 {
			s.Given = append(s.Given, byte(rng.Uint32()))
		}
	}
	return s
}

// exhaust plays the schedules of a bout from s on, and reports whether no other is left.
func exhaust(t *testing.T, b *Bout, s *Script, most int, tally *tally) (whole bool) {
	t.Helper()
	b.Prepare()
	defer b.Close()
	defer func() { tally.add(&b.play.reach) }()
	for range most {
		tally.played.Add(1)
		err := b.Play(s)
		switch {
		case err != nil:
			tally.violations.Add(1)
			told(t, b, s, err)
			return false
		case !s.Next():
			return *firstSeed == 0
		}
	}
	return false
}

// told tells of a violation.
func told(t *testing.T, b *Bout, s *Script, err error) {
	t.Helper()
	if *brief {
		fmt.Printf("violation %v\n", err)
		t.Errorf("violation %v", err)
		return
	}
	var trace strings.Builder
	b.play.Trace = &trace
	_ = b.Play(&Script{Given: s.Taken})
	t.Errorf("stage %d, functions %v, world %v: %v\n%s", b.Stage, b.Functions, b.World, err, trace.String())
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
			_, trace := story(c, vector, err)
			t.Errorf("%v\n%s", err, trace)
		}
	})
}
