// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"testing"
)

// What stands alone in other swarms comes together: a random half of what a world can have beside the first set, and people who do more of
// what concerns it. What a guard against one thing does to another shows here.
func TestSwarmOfAll(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, all", 100, 0.05, func(seed uint64) (Config, *Script) {
		rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // no secret
		with := func() bool { return rng.IntN(2) == 0 }
		c := Config{
			Level: Scaling - Level(rng.IntN(4)/3), Steps: steps(seed), Masters: with(), Early: with(), Shorts: with(), Rivals: with(), Volumes: with(), Unchecks: with(), Frozen: rng.IntN(4) == 0,
		}
		users := []int{userScale, userDelete, userLoad}
		for _, more := range []struct {
			is   bool
			user int
		}{{c.Masters, userDelete}, {c.Early, userHook}, {c.Shorts, userShort}, {c.Rivals, userRival}, {c.Unchecks, userCheck}} {
			if more.is {
				users = append(users, more.user)
			}
		}
		if with() {
			c.Neighbor = 1 + rng.IntN(2)
			switch rng.IntN(4) {
			case 0:
				c.Apart = true
			case 1:
				c.Moves, c.Broad = true, with()
			case 2:
				c.Scaled = true
			}
		} else {
			c.Shared = with()
		}
		if with() {
			c.Budget, c.Hourly = 1+rng.IntN(2), 1+rng.IntN(3)
		}
		if c.Masters { // nobody else replaces those that the cloud lost
			c.Checked = 1 + rng.IntN(2)
		}
		if with() {
			c.Nodes = numMasters + 1 + rng.IntN(4)
		}
		return c, &Script{Strategy: Prefers{NewSwarm(seed), users}}
	})
}
