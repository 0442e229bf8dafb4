// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"fmt"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	// A third of the Nodes, and at least three, that nobody hears of are a broken network, not illness.
	partitionPercent = 33
	partitionNodes   = 3
)

// sum is how many Machines a check sees, and why some of them are not healthy (B53).
type sum struct {
	machines, healthy int
	sick              int // due now
	waiting           int // will be due unless they recover
	young             int // of those waiting: only just
	starting          int // have no Node yet, or one that was never Ready, and are not due
	hopeless          int // can never work
	most              int // unhealthy ones allowed
	names             []string
}

func (s sum) unhealthy() int { return s.machines - s.healthy }

// ill counts those that make a storm: not who only starts, nor what may be over in a moment.
func (s sum) ill() int { return s.sick + s.waiting - s.young }

// String tells the unhealthy Machines apart.
func (s sum) String() string {
	var kinds []string
	for _, k := range []struct {
		n    int
		what string
	}{
		{s.sick, "sick"}, {s.waiting, "with a running timer"}, {s.starting, "starting"},
		{s.hopeless, "failed for ever"},
		{s.unhealthy() - s.sick - s.waiting - s.starting - s.hopeless, "going or being repaired"},
	} {
		if k.n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", k.n, k.what))
		}
	}
	return fmt.Sprintf("%d of %d machines are not healthy (%s)", s.unhealthy(), s.machines, strings.Join(kinds, ", "))
}

// healthy reports whether a Machine that has a Node, and needs nothing now nor when a timer ends, is neither deleted nor
// repaired elsewhere nor just recovering (B53, R-B26, D18). Without a Node one that stays is never judged to need nothing.
func (t *target) healthy() bool {
	_, repaired := t.m.Annotations[machine.AnnotationExternalRepair]
	return t.m.DeletionTimestamp == nil && !repaired && !t.requested && !t.recovering
}

// count tells the Machines of a check apart.
func (c *check) count() sum {
	s := sum{machines: len(c.targets)}
	for _, t := range c.targets {
		switch {
		case t.sick(c.Now):
			s.sick++
			s.names = append(s.names, t.m.Name)
		case t.reason == reasonStartup, t.reason == reasonNode && neverReady(t.n):
			s.starting++
		case t.reason == reasonInvalid:
			s.hopeless++
		case t.reason != "":
			s.waiting++
			if t.young {
				s.young++
			}
		case t.healthy():
			s.healthy++
		}
	}
	if most, err := maxUnhealthy(c.h, s.machines); err == nil {
		s.most = most
	}
	return s
}

// restriction is why a check remediates nothing at all; the zero one is none.
type restriction struct{ reason, message string }

func (c *check) restricted(b *budget) restriction {
	s := c.next.Storm
	switch {
	case b.err != nil:
		return restriction{"DisruptionBudgetUnreadable", "nothing is remediated: " + b.err.Error()}
	case c.network.partitioned():
		return restriction{"NodesUnreachable", c.network.String()}
	case c.sum.unhealthy() > c.sum.most:
		return restriction{machinev1beta1.TooManyUnhealthyReason, fmt.Sprintf("%v, more than maxUnhealthy %d allows: nothing is remediated", c.sum, c.sum.most)}
	case s != nil && s.Over != nil:
		return restriction{"StormCooldown", fmt.Sprintf("too many were unhealthy until %s: nothing is remediated before %s", machine.Stamp(s.Over.Time), machine.Stamp(s.Over.Add(c.policy.cooldown)))}
	}
	return restriction{}
}

// network is how much of the whole cluster is heard of, and whose its Nodes are.
type network struct {
	unreachable []string // names of Nodes
	nodes       int
	found       map[*machine.Machine]machine.Candidates
	alive       map[machine.InstanceID]*corev1.Node // by the instance, where a Machine's Node is not Ready
	refused     map[setID]bool                      // sets for one of whose Machines the cloud has no room
}

// nodeOf returns m's Node, as [snapshot.Snapshot.NodeOf] does: that looks at every Node for one Machine, too much for all. Where that
// Node is not Ready and the instance is another Node by now, as a host is that got another name, it is that one: what runs there, runs.
func (n network) nodeOf(m *machine.Machine) *corev1.Node {
	best := n.found[m].Best
	if other := n.alive[machine.InstanceOf(machine.ProviderID(m))]; best != nil && other != nil {
		return other
	}
	return best
}

func (n network) partitioned() bool {
	return len(n.unreachable) >= partitionNodes && len(n.unreachable)*100 >= n.nodes*partitionPercent
}

// String tells who is not heard of, and how people say of whom that will stay so.
func (n network) String() string {
	names := slices.Sorted(slices.Values(n.unreachable))
	more := ""
	if len(names) > partitionNodes {
		names, more = names[:partitionNodes], " …"
	}
	return fmt.Sprintf("%d of %d nodes are unreachable (%s%s): nothing is remediated; for a node that will not return, delete its machine, or the node where it has none",
		len(n.unreachable), n.nodes, strings.Join(names, ", "), more)
}

// networkOf counts the Nodes that nothing is heard of. One that vanished counts like them (R-B23), unless the cloud itself says that its
// instance is gone: such a Node tells nothing of the network, and never comes back.
func networkOf(s snapshot.Snapshot) network {
	net := network{nodes: len(s.Nodes), found: machine.CandidatesOf(s.Machines, s.Nodes), alive: map[machine.InstanceID]*corev1.Node{}, refused: refusedIn(s)}
	lost := map[*corev1.Node]bool{}
	for _, m := range s.Machines {
		if best, id := net.found[m].Best, machine.ProviderID(m); best != nil && !ready(best) && id != "" {
			net.alive[machine.InstanceOf(id)] = nil
		}
		if best := net.found[m].Best; best != nil && machine.LostAt(m) != nil {
			lost[best] = true
		}
	}
	for _, n := range s.Nodes {
		switch {
		case !machine.NodeUnreachable(n):
		case lost[n]:
			net.nodes--
		default:
			net.unreachable = append(net.unreachable, n.Name)
		}
		if len(net.alive) == 0 || !machine.NodeReady(n) {
			continue
		}
		id := machine.InstanceOf(n.Spec.ProviderID)
		if _, asked := net.alive[id]; asked {
			net.alive[id] = n
		}
	}
	for _, m := range s.Machines {
		if machine.LostAt(m) != nil {
			continue
		}
		if m.DeletionTimestamp == nil && m.Status.NodeRef != nil && net.nodeOf(m) == nil {
			net.unreachable = append(net.unreachable, m.Status.NodeRef.Name)
			net.nodes++
		}
	}
	return net
}

// flying counts the remediations that the workers wait for as well.
func (c *check) flying() int {
	n := 0
	for _, f := range c.next.InFlight {
		if !c.overdue(f) {
			n++
		}
	}
	return n
}

// gone counts those of them whose Machine is not among the selected any more.
func (c *check) gone() int {
	n := 0
	for _, f := range c.next.InFlight {
		if c.target(f.UID) == nil && !c.overdue(f) {
			n++
		}
	}
	return n
}
