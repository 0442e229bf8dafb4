// SPDX-License-Identifier: Apache-2.0

// Package history plays bugs that machine controllers had against ours (docs/RELIABILITY.md §1.3). Each class has a naive
// implementation, which is ours with the mistake put back in, and a world in which the mistake shows: the naive one must
// break an invariant there, ours must not.
package history

import (
	"fmt"
	"net/http"
	"os"
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
	hosts    func(http.RoundTripper) http.RoundTripper // the naive one's way to hosts; nil: ours
	how      how
}

// how schedules are chosen.
type how int

const (
	swarm   how = iota
	delayed     // one request takes as long as it likes
	deletes     // people delete Machines
)

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
	if naive {
		config.Wrap, config.Hosts = c.naive, c.hosts
	}
	var strategy sim.Strategy = sim.NewSwarm(seed)
	switch c.how {
	case delayed:
		config.Frozen, strategy = true, sim.NewSleeper(seed, config.Steps)
	case deletes:
		strategy = sim.Deletes{Strategy: strategy}
	case swarm:
	}
	p := sim.NewPlay(config, &sim.Script{Given: c.world, Strategy: strategy})
	err := p.Run()
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

// of returns a mistake of one function.
func of(name string, mistake func(function.Function) function.Function) func(function.Function) function.Function {
	return func(f function.Function) function.Function {
		if f.Name != name {
			return f
		}
		return mistake(f)
	}
}

// Every class of the table is here, or is said to be elsewhere.
func TestEveryClassHasItsPlace(t *testing.T) {
	t.Parallel()
	here := map[string]bool{}
	for _, c := range classes {
		here[c.id] = true
	}
	for _, d := range decisions {
		here[d.id] = true
	}
	for n := 1; n <= 37; n++ {
		id := fmt.Sprintf("R-B%02d", n)
		if place, told := elsewhere[id]; here[id] == told {
			t.Errorf("%s is here: %v, and told to be at %q", id, here[id], place)
		} else if file, name, ok := strings.Cut(place, " "); told && ok {
			if text, err := os.ReadFile("../../" + file); err != nil || !strings.Contains(string(text), "func "+name+"(") {
				t.Errorf("%s has no test %s: %v", id, place, err)
			}
		} else if told {
			t.Errorf("%s: %q names no test", id, place)
		}
	}
}
