// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
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
// knows how long that is after a clock was set, and where people have to look.
func (p *Play) watchOrphans(since map[string]time.Time) {
	if p.reset || p.restored {
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
		m := p.owner(i.UID)
		id := ""
		if m != nil && !i.Child {
			id = machine.ProviderID(m)
		}
		if i.State != provider.StateDeleting && (m == nil || id != "" && id != i.ProviderID) {
			all["instance "+i.ID] = true
		}
	}
	for _, n := range memory.List[*corev1.Node](p.API) {
		if n.Spec.ProviderID != "" && n.DeletionTimestamp == nil && p.orphaned(n, machines) {
			all["node "+n.Name+"/"+string(n.UID)] = true
		}
	}
	return all
}
