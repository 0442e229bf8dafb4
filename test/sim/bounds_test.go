// SPDX-License-Identifier: Apache-2.0

package sim

import "testing"

// Fewer Nodes are allowed in all than the bounds of the set allow (R-S4).
func TestSwarmOfFewNodes(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, few nodes", 90, 0.1, func(seed uint64) (Config, *Script) {
		return Config{Level: Scaling, Steps: steps(seed), Nodes: numMasters + 1 + int(seed%3)}, &Script{Strategy: NewSwarm(seed)}
	})
}

// A second set is there, which people leave alone: nobody takes one set's Machines for the other's (R-S4, R-S5, R-S6).
func TestSwarmBesideANeighbor(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, a neighbor", 120, 0.15, func(seed uint64) (Config, *Script) {
		return Config{Level: Level(seed % numLevels), Steps: steps(seed), Neighbor: 1 + int(seed/numLevels%2)}, &Script{Strategy: NewSwarm(seed)}
	})
}

// People move Machines from one of two sets to the other; every other time the second one's selector is of the first one's Machines too.
func TestSwarmOfMoves(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, moves", 110, 0.15, func(seed uint64) (Config, *Script) {
		c := Config{Level: Level(seed % numLevels), Steps: steps(seed), Neighbor: 1 + int(seed/numLevels%2), Moves: true, Broad: seed%2 == 1}
		return c, &Script{Strategy: Moves{NewSwarm(seed)}}
	})
}

// Hooks hold Machines before they are drained (R-S7).
func TestSwarmOfHooks(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, hooks", 110, 0.1, func(seed uint64) (Config, *Script) {
		return Config{Level: Level(seed % numLevels), Steps: steps(seed), Early: true}, &Script{Strategy: Hooks{NewSwarm(seed)}}
	})
}

// People take the check away, and make it anew: what is ill then is nobody's to delete (R-S6).
func TestSwarmOfChecks(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, checks", 110, 0.1, func(seed uint64) (Config, *Script) {
		return Config{Level: Healing + Level(seed%2), Steps: steps(seed), Unchecks: true}, &Script{Strategy: Unchecks{NewSwarm(seed)}}
	})
}

// People have hosts and instances power-cycled, which boot for longer than a check's timeouts (R-S6, E36).
func TestSwarmOfCycles(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, cycles", 60, 0.05, func(seed uint64) (Config, *Script) {
		return Config{Level: Healing + Level(seed%4/3), Steps: steps(seed), Cycles: true}, &Script{Strategy: NewCycles(seed)}
	})
}

// People make the set one that nobody makes Machines for, and mend that: meanwhile a check deletes none of its Machines (R-S6).
func TestSwarmOfUnserved(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, unserved", 60, 0, func(seed uint64) (Config, *Script) {
		return Config{Level: Healing + Level(seed%4/3), Steps: steps(seed), Unserves: true}, &Script{Strategy: Unserves{NewAils(seed)}}
	})
}

// A cloud loses many instances at once, and nobody deletes what Failed: a check has all of it replaced, or says why not (R-L1, R-L3).
func TestSwarmOfLosses(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, losses", 60, 0, func(seed uint64) (Config, *Script) {
		return Config{Level: Healing + Level(seed%4/3), Steps: steps(seed), Losses: true}, &Script{Strategy: Losses{NewAils(seed)}}
	})
}

// A policy refuses for long that one Machine or Node is deleted, or one Pod evicted: nothing else waits for that, and it is told (R-L2, R-L3).
func TestSwarmOfPolicies(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, policies", 60, 0, func(seed uint64) (Config, *Script) {
		return Config{Level: Healing + Level(seed%4/3), Steps: steps(seed), Keeps: true}, &Script{Strategy: Keeps{NewAils(seed)}}
	})
}

// People spoil a template and mend it late: a check replaces what failed of it, and nothing of it before (R-B27).
func TestSwarmOfTemplates(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, templates", 60, 0, func(seed uint64) (Config, *Script) {
		return Config{Level: Healing, Steps: steps(seed), Spoils: true}, &Script{Strategy: Spoils{NewSwarm(seed)}}
	})
}

// Lists of Pods, or of Nodes, lack most of what there is for a while, as an empty cache does (R-B23, G8).
func TestSwarmOfShortLists(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, short lists", 70, 0, func(seed uint64) (Config, *Script) {
		return Config{Level: Scaling, Steps: steps(seed), Shorts: true}, &Script{Strategy: Shorts{NewSwarm(seed)}}
	})
}

// A second set is in another namespace, where everything has the names and labels that it has in the first (R-S3, R-S4, R-S6).
func TestSwarmOfNamespaces(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, namespaces", 100, 0.15, func(seed uint64) (Config, *Script) {
		return Config{Level: Level(seed % numLevels), Steps: steps(seed), Neighbor: 1 + int(seed/numLevels%2), Apart: true}, &Script{Strategy: NewSwarm(seed)}
	})
}

// The cluster's budget allows few disruptions, which checks and the autoscaler share (R-S10, G8).
func TestSwarmOfFewDisruptions(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, budget", 100, 0, func(seed uint64) (Config, *Script) {
		return Config{Level: Healing + Level(seed%2), Steps: steps(seed), Budget: 1 + int(seed/2%2), Hourly: 3 - 2*int(seed/2%2)}, &Script{Strategy: NewAils(seed)}
	})
}

// Checks, one or two, select the control plane: of that one Machine is out at a time, for however long (R-S10).
func TestSwarmOfMasters(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, plagues", 80, 0, func(seed uint64) (Config, *Script) {
		return Config{Level: Healing, Steps: steps(seed), Masters: true, Checked: 1 + int(seed%2)}, &Script{Strategy: Plagues{NewAils(seed)}}
	})
}

// Two MachineAutoscalers want one set, and come and go: it is the one's that has it, whose bounds hold (R-S4, B87).
func TestSwarmOfRivals(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, rivals", 60, 0.1, func(seed uint64) (Config, *Script) {
		return Config{Level: Scaling, Steps: steps(seed), Rivals: true}, &Script{Strategy: Rivals{NewSwarm(seed)}}
	})
}

// Every Pod has a volume, which is detached before the instance goes that people delete (R-S7).
func TestSwarmOfVolumes(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, volumes", 60, 0.08, func(seed uint64) (Config, *Script) {
		return Config{Level: Scaling, Steps: steps(seed), Volumes: true}, &Script{Strategy: Empties{NewSwarm(seed)}}
	})
}

// Each of two sets has a MachineAutoscaler, and both share maxNodesTotal, which every other time is less than their bounds: the autoscaler
// chooses which one grows, and which one shrinks (R-S4, R-S5).
func TestSwarmOfTwoSets(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, two sets", 60, 0.1, func(seed uint64) (Config, *Script) {
		c := Config{Level: Scaling, Steps: steps(seed), Neighbor: 1 + int(seed%2), Scaled: true}
		if seed%2 == 0 {
			c.Nodes = numMasters + 2 + int(seed/2%3)
		}
		return c, &Script{Strategy: Loads{NewSwarm(seed)}}
	})
}

// Another cluster with the same id has an instance and a port in the account: they stay (R-S3, RELIABILITY 2b.10).
func TestSwarmOfTwoClusters(t *testing.T) { //nolint:paralleltest // it uses all cores
	campaign(t, "swarm, two clusters", 60, 0.1, func(seed uint64) (Config, *Script) {
		return Config{Level: Level(seed % numLevels), Steps: steps(seed), Shared: true}, &Script{Strategy: NewSwarm(seed)}
	})
}
