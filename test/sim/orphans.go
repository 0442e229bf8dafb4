// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// sweeps is how far apart the sweeps of a calm world are at most. RELIABILITY §3.2 has them five minutes apart: an orphan lives for
// two Horizons, and two of them.
const sweeps = 30 * time.Second

// watchOrphans holds that nothing lives longer without a Machine (R-S2), of which since has what it was seen without one from. Nobody
// knows how long that is after a clock was set.
func (p *Play) watchOrphans(since map[string]time.Time) {
	if p.reset {
		return
	}
	orphans := p.orphans()
	maps.DeleteFunc(since, func(o string, _ time.Time) bool { return !orphans[o] })
	for o := range orphans {
		if _, known := since[o]; !known {
			since[o] = p.clock
		}
		if age := p.clock.Sub(since[o]); age > 2*p.horizon()+2*sweeps {
			p.violate("R-S2", "%s is nobody's for %v", o, age)
		}
	}
}

// orphans names the instances, what belongs to instances, and the Nodes that are no Machine's and that nobody removes yet.
func (p *Play) orphans() map[string]bool {
	all, machines := map[string]bool{}, p.machines()
	for _, i := range p.instances() {
		if i.State != provider.StateDeleting && p.nobodys(i) && !p.unheardOf(i) && !p.mayRestart(i) {
			all["instance "+i.ID] = true
		}
	}
	for _, n := range memory.List[*corev1.Node](p.API) {
		// After a restore the Node of an instance that went unrecorded is for the cloud's node controller, or for people, in their time.
		if n.Spec.ProviderID != "" && n.DeletionTimestamp == nil && p.orphaned(n, machines) && !p.restored {
			all["node "+n.Name+"/"+string(n.UID)] = true
		}
	}
	return all
}

// mayRestart reports whether the Node on an instance may be restarting: until it has had the time to, whoever sweeps waits, and looks again.
func (p *Play) mayRestart(i provider.Instance) bool {
	return slices.ContainsFunc(memory.List[*corev1.Node](p.API), func(n *corev1.Node) bool {
		return n.Spec.ProviderID == i.ProviderID && machine.NodeMayRestart(n, p.clock)
	})
}

// nobodys reports whether an instance, or a port, has no Machine, or one that records another.
func (p *Play) nobodys(i provider.Instance) bool {
	m := p.owner(i.UID)
	return m == nil || !i.Child && machine.ProviderID(m) != "" && machine.ProviderID(m) != i.ProviderID
}

// unheardOf reports whether restored storage may keep the sweep from an instance, or a port, that is nobody's: it does not name the account
// to look into until a Machine has a claim there again, or its instance, and where a Node works people have to look. So it is with what came
// later than the Horizon allows, to an account that no Machine used, and that had been found empty (2b.10).
func (p *Play) unheardOf(i provider.Instance) bool {
	if !p.restored && !p.overdue(i) {
		return false
	}
	state, err := machine.SweepStateIn(memory.Get[*corev1.ConfigMap](p.API, machine.Namespace, machine.ConfigMapSweep))
	account, named := p.accountOf(i), false
	for key := range state.Accounts {
		named = named || strings.HasPrefix(key, account)
	}
	settled := slices.ContainsFunc(p.machines(), func(m *machine.Machine) bool {
		return !isMaster(m) && machine.ProviderID(m) != "" && (account == "" || strings.Contains(account, "/"+m.Namespace+"/"))
	})
	return err != nil || !named && !settled || p.restored && slices.ContainsFunc(memory.List[*corev1.Node](p.API), func(n *corev1.Node) bool {
		of := func(o provider.Instance) bool { return o.ProviderID == n.Spec.ProviderID && (i.Child || o.ID == i.ID) }
		return machine.NodeReady(n) && slices.ContainsFunc(p.liveOf(i.UID), of)
	})
}

// overdue reports whether the call that made an instance, or a port, was held up for longer than the Horizon.
func (p *Play) overdue(i provider.Instance) bool {
	made, known := p.births[i.ID]
	return known && made.at.Sub(made.began) > p.horizon()
}

// accountOf returns the key of the account that an instance, or a port, is in; "" where there is one alone.
func (p *Play) accountOf(i provider.Instance) (account string) {
	for _, e := range p.Cloud.Since(0) {
		if e.ID == i.ID {
			account = e.Account
		}
	}
	return account
}

// joinedPort reports whether a port may belong to its Machine's instance: what an attempt left that was over before the latest one, and has
// no instance, does not. Of a Machine that Failed, as its instance is lost, what the latest attempt left goes with the Machine: of a cloud
// without tokens that may be a port which nobody knew of once storage was restored. So does what is of a Machine that a policy keeps.
func (p *Play) joinedPort(port provider.Instance) bool {
	live, m := p.liveOf(port.UID), p.owner(port.UID)
	if m != nil && p.stuck(m) {
		return true
	}
	if m == nil || len(live) == 0 && machine.Phase(m) != machine.PhaseFailed {
		return len(live) > 0
	}
	of := func(in provider.Instance) bool { return in.Token == port.Token }
	i := p.intentOf(m)
	return i == nil || i.Token == port.Token || slices.ContainsFunc(live, of)
}

func (p *Play) failedOwner(i provider.Instance) bool { return p.owner(i.UID) != nil }

func (p *Play) orphaned(n *corev1.Node, machines []*machine.Machine) bool {
	for _, m := range machines {
		if isNodeOf(m, n) || machine.ProviderID(m) == n.Spec.ProviderID {
			return false
		}
	}
	return true
}

// strays counts the Nodes of hosts that nobody had recorded before storage was restored: nobody takes them away, and they are among those that
// maxNodesTotal counts.
func (p *Play) strays() (n int) {
	if !p.restored || p.hosts == nil {
		return 0
	}
	machines := p.machines()
	for _, node := range memory.List[*corev1.Node](p.API) {
		if node.Spec.ProviderID != "" && p.orphaned(node, machines) {
			n++
		}
	}
	return n
}
