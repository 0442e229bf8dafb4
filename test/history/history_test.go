// SPDX-License-Identifier: Apache-2.0

// Package history plays bugs that machine controllers had against ours (docs/RELIABILITY.md §1.3). Each class has a naive
// implementation, which is ours with the mistake put back in, and a world in which the mistake shows: the naive one must
// break an invariant there, ours must not.
package history

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/test/sim"
)

// class is one row of RELIABILITY §1.3.
type class struct {
	id, what string
	breaks   []string // any of these rules
	level    sim.Level
	world    []byte // how every schedule's world is made; nil: by chance
	naive    func(function.Function) function.Function
	with     func(*sim.Config) // what else is naive; nil: nothing
	how      how
	always   func(*sim.Config) // of the world, ours included; nil: nothing
	faults   sim.Strategy      // before those of how; nil: none
}

// how schedules are chosen.
type how int

const (
	swarm    how = iota
	delayed      // one request takes as long as it likes
	deletes      // people delete Machines
	rough        // all calls fail alike, also those without which little goes on
	restored     // the API server's storage is set back
	emptied      // lists lack most of what there is
	ailing       // there is much, and it falls ill
	plagued      // the same, while often there is no room for others
	loaded       // Pods come and go
	cycled       // people have things power-cycled
	unserved     // people spoil what the set selects
	losing       // a cloud loses many instances at once
	kept         // a policy keeps something
	spoiling     // people spoil a template, and mend it late
	story        // nothing special: people scale up, delete a Machine, scale down
)

// strategies choose the schedule of a seed, in so many steps.
var strategies = map[how]func(seed uint64, steps int) sim.Strategy{
	swarm:    func(seed uint64, _ int) sim.Strategy { return sim.NewSwarm(seed) },
	delayed:  func(seed uint64, steps int) sim.Strategy { return sim.NewSleeper(seed, steps) },
	deletes:  func(seed uint64, _ int) sim.Strategy { return sim.Deletes{Strategy: sim.NewSwarm(seed)} },
	rough:    func(seed uint64, _ int) sim.Strategy { return sim.NewRough(seed) },
	restored: func(seed uint64, steps int) sim.Strategy { return sim.NewRestores(seed, steps) },
	emptied:  func(seed uint64, _ int) sim.Strategy { return sim.Shorts{Swarm: sim.NewSwarm(seed)} },
	ailing:   func(seed uint64, _ int) sim.Strategy { return sim.NewAils(seed) },
	plagued:  func(seed uint64, _ int) sim.Strategy { return sim.Plagues{Ails: sim.NewAils(seed)} },
	loaded:   func(seed uint64, _ int) sim.Strategy { return sim.Loads{Swarm: sim.NewSwarm(seed)} },
	cycled:   func(seed uint64, _ int) sim.Strategy { return sim.NewCycles(seed) },
	unserved: func(seed uint64, _ int) sim.Strategy { return sim.Unserves{Ails: sim.NewAils(seed)} },
	losing:   func(seed uint64, _ int) sim.Strategy { return sim.Losses{Ails: sim.NewAils(seed)} },
	kept:     func(seed uint64, _ int) sim.Strategy { return sim.Keeps{Ails: sim.NewAils(seed)} },
	spoiling: func(seed uint64, _ int) sim.Strategy { return sim.Spoils{Swarm: sim.NewSwarm(seed)} },
	story:    func(uint64, int) sim.Strategy { return together{} },
}

// schedules is how many are tried until the naive implementation breaks, and how many ours has to stand.
const schedules = 1000

func TestHistoricBugs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("plays thousands of schedules")
	}
	for _, c := range classes {
		t.Run(c.id, func(t *testing.T) {
			t.Parallel()
			broken := ""
			tried := 0
			for seed := uint64(0); seed < schedules && broken == ""; seed++ {
				tried++
				broken = c.play(seed, true)
			}
			if broken == "" {
				t.Fatalf("%s: the naive implementation breaks nothing in %d schedules", c.what, tried)
			}
			t.Logf("%s: naive after %d schedules: %s", c.what, tried, broken)
			for seed := range uint64(max(tried, 40)) {
				if wrong := c.play(seed, false); wrong != "" {
					t.Fatalf("%s: ours, seed %d: %s", c.what, seed, wrong)
				}
			}
		})
	}
}

// play returns what a schedule breaks that the class is about; for ours, anything.
func (c class) play(seed uint64, naive bool) string {
	config := sim.Config{Level: c.level, Steps: 100}
	if c.always != nil {
		c.always(&config)
	}
	if naive {
		c.spoil(&config)
	}
	err := c.run(config, seed)
	if err == nil {
		return ""
	}
	rule, _, _ := strings.Cut(err.Error(), ":")
	for _, want := range c.breaks {
		if !naive || rule == want {
			return err.Error()
		}
	}
	return ""
}

// spoil puts the mistake in.
func (c class) spoil(config *sim.Config) {
	config.Wrap = c.naive
	if c.with != nil {
		c.with(config)
	}
}

// run plays one schedule.
func (c class) run(config sim.Config, seed uint64) error {
	strategy := strategies[c.how](seed, config.Steps)
	config.Frozen = config.Frozen || c.how == delayed
	if c.how == story {
		config.Steps = 3000
	}
	if c.faults != nil {
		strategy = together{c.faults, strategy}
	}
	return sim.NewPlay(config, &sim.Script{Given: c.world, Strategy: strategy}).Run()
}

// of returns mistakes of one function.
func of(name string, mistakes ...mistake) mistake {
	return func(f function.Function) function.Function {
		if f.Name != name {
			return f
		}
		return both(mistakes...)(f)
	}
}

// Every class of the table is here.
func TestEveryClassHasItsPlace(t *testing.T) {
	t.Parallel()
	here := map[string]bool{"R-B36": true} // TestReceivers
	for _, c := range classes {
		here[c.id] = true
	}
	for _, d := range decisions {
		here[d.id] = true
	}
	text, err := os.ReadFile("../../docs/RELIABILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?m)^\| (R-B\d+) \|`).FindAllStringSubmatch(string(text), -1)
	for _, row := range table {
		if !here[row[1]] {
			t.Errorf("%s is not here", row[1])
		}
	}
	if len(table) != 37 || len(here) != len(table) {
		t.Errorf("%d classes are here, %d in the table", len(here), len(table))
	}
}
