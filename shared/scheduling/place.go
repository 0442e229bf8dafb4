// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/binpack"
)

// Offer is a kind of Node that could be added.
type Offer struct {
	Name   string // unique
	Node   Node   // the template; its Pods are those that every such Node runs
	Price  int64
	Limit  int   // how many
	Weight int64 // of one Node in limits that offers share; 0 is 1
}

// Placement says where waiting Pods fit. Slices by shape have the order of Shapes.
type Placement struct {
	Shapes   []Shape
	Fit      []int     // by shape: Pods that fit Nodes that exist
	Helped   []int     // by shape: Pods that fit the new Nodes
	Left     []int     // by shape: Pods without a place
	Openings []Opening // new Nodes; whoever may have fewer takes the first ones
	On       []On      // where the Pods are that fit Nodes that exist
	Work     int       // that it took, as binpack counts it

	world  *World
	offers []Offer
	free   []binpack.Vector // by offer
	layout *layout
}

// Price is what the new Nodes cost.
func (p Placement) Price() int64 { return p.layout.result.Price(p.layout.types) }

// Bound is a price that new Nodes for the same Pods, divided among topology domains in the same way, cannot go below.
func (p Placement) Bound() int64 {
	l := p.layout
	return l.result.Bound(l.items, l.room, l.types, l.fits)
}

// On is a number of Pods of a shape that fit one Node of the world.
type On struct{ Node, Shape, Count int }

// Opening is a number of new Nodes of one offer that are to hold the same Pods.
type Opening struct {
	Offer, Count int
	Holds        []binpack.Held // Item is a shape; Count on each of the Nodes
	pattern      int
}

// rounds bounds how often quotas over topology domains are corrected by what a packing could really place.
const rounds = 4

// mostJoined bounds the work of a packing that is done once more, some ten milliseconds: of a larger one it could save little.
const mostJoined = 2_000_000

// Place finds room for the waiting Pods: on the Nodes of the world first, the rest on new Nodes of the offers. Pods of
// higher priority are served first. A Pod whose rules are beyond what is planned for is never placed; Why says so.
func (w *World) Place(waiting []*corev1.Pod, offers []Offer) Placement {
	l := w.lay(waiting, offers)
	l.settle(binpack.Pack)
	if l.Work < mostJoined {
		l.join(binpack.Pack)
	}
	return l.report()
}

// Try is Place for who asks whether Pods find room rather than what that costs: in a part of the work.
func (w *World) Try(waiting []*corev1.Pod, offers []Offer) Placement {
	l := w.lay(waiting, offers)
	l.settle(binpack.Try)
	return l.report()
}

// packer is a way to pack.
type packer func([]binpack.Item, []binpack.Bin, []binpack.Type, binpack.Fits) binpack.Result

func (w *World) lay(waiting []*corev1.Pod, offers []Offer) *layout {
	w.sole = w.soleClaims(waiting)
	p := Placement{Shapes: w.shapes(waiting), world: w, offers: offers}
	for s := range p.Shapes {
		p.Shapes[s].demand = w.demand(p.Shapes[s].Pods[0])
		p.Shapes[s].demand.digest = p.Shapes[s].Digest
	}
	for i := range offers {
		p.free = append(p.free, w.fresh(&offers[i].Node))
	}
	for s := range p.Shapes {
		w.lookSkews(p.Shapes[s].demand, len(p.Shapes[s].Pods))
	}
	return p.lay()
}

// settle packs until every topology domain takes its share.
func (l *layout) settle(by packer) {
	for range rounds {
		l.pack(by)
		if !l.correct() {
			break
		}
	}
}

// fresh is what a new node has room for beside the Pods that every such node runs.
func (w *World) fresh(n *Node) binpack.Vector {
	free := w.axes.node(n.Status.Allocatable)
	for _, pod := range n.Pods {
		v, _ := w.axes.pod(pod)
		free = free.Minus(v)
	}
	w.limit(&free, n.Attach, nil)
	return free
}

// layout is a placement being worked out: shapes divided into rows, one for each topology domain where it matters.
type layout struct {
	*Placement
	bins   []int // nodes of the world that take Pods
	room   []binpack.Bin
	types  []binpack.Type
	split  []division // by shape
	rules  []rule
	rows   []row
	items  []binpack.Item // by row
	result binpack.Result
}

// row is some Pods of a shape that are packed alike.
type row struct {
	shape int
	count int
	times int             // Pods that go together as one piece
	key   string          // topology key of what follows
	value string          // the domain that the row is the share of
	only  map[string]bool // the domains that it may go to; nil: anywhere
}

func (p *Placement) lay() *layout {
	l := &layout{Placement: p}
	for n := range p.world.nodes {
		if !p.world.nodes[n].Closed {
			name := p.world.nodes[n].Name
			if p.world.nodes[n].Last {
				name = "~" + name // which is behind all that names begin with
			}
			l.bins = append(l.bins, n)
			l.room = append(l.room, binpack.Bin{Name: name, Free: p.world.free()[n]})
		}
	}
	for i, o := range p.offers {
		l.types = append(l.types, binpack.Type{Name: o.Name, Capacity: p.free[i], Price: o.Price, Limit: o.Limit, Weight: o.Weight})
	}
	for s := range p.Shapes {
		l.split = append(l.split, l.divide(s))
	}
	l.meet()
	l.share()
	waits := l.deferred(l.hasPlace)
	for s := range waits {
		if d := l.Shapes[s].demand; waits[s] && d.bad == "" {
			d.bad, l.split[s] = reasonOthers, division{}
		}
	}
	if slices.Contains(waits, true) {
		l.share()
	}
	return l
}

// pack lays the shapes out in rows and packs them.
func (l *layout) pack(by packer) {
	l.rows, l.items = nil, nil
	at := make([][]int, len(l.Shapes))
	for s := range l.Shapes {
		for _, r := range l.split[s].rows(s) {
			d := l.Shapes[s].demand
			at[s] = append(at[s], len(l.rows))
			l.rows = append(l.rows, r)
			l.items = append(l.items, binpack.Item{Name: l.Shapes[s].key + "\n" + r.value, Size: d.size.Times(r.times), Count: r.count, Priority: priorityOf(d.pod)})
		}
	}
	for s, others := range l.apart() {
		for _, i := range at[s] {
			for _, o := range others {
				l.items[i].Apart = append(l.items[i].Apart, at[o]...)
			}
		}
	}
	l.result = by(l.items, l.room, l.types, l.fits)
	l.Work += l.result.Work
}

// fits is binpack.Fits for rows.
func (l *layout) fits(i, target int) int {
	r := &l.rows[i]
	d := l.Shapes[r.shape].demand
	node := l.node(target)
	if r.only != nil && !r.only[domainOf(node, r.key)] {
		return 0
	}
	var most int
	if target < len(l.bins) {
		most = l.world.fit(d, l.bins[target])
	} else {
		most, _ = l.world.fitNew(d, node)
	}
	if r.times > 1 {
		return most / r.times
	}
	return most
}

func (l *layout) node(target int) *Node {
	if target < len(l.bins) {
		return &l.world.nodes[l.bins[target]]
	}
	return &l.offers[target-len(l.bins)].Node
}

// fit returns how many Pods of a shape one node of the world may take beside what the resources allow.
func (w *World) fit(d *demand, n int) int {
	if d.bad != "" || w.admitted(d, n) != fine || d.company(w.nodes[n].Node) != fine || w.portsTaken(d, n) || w.disksTaken(d, n) {
		return 0
	}
	return max(0, d.perHost(n))
}

// fitNew is fit for a node that is to be added; it says why not.
func (w *World) fitNew(d *demand, n *Node) (int, string) {
	if d.bad != "" {
		return 0, d.bad
	}
	if n.Useless[d.digest] {
		return 0, ReasonUseless
	}
	if why := d.admits(n.Node); why != fine {
		return 0, why
	}
	if why := d.company(n.Node, n.Pods...); why != fine {
		return 0, why
	}
	for _, p := range n.Pods {
		if why := w.besides(d, p, n.Node); why != fine {
			return 0, why
		}
	}
	if n := d.perHost(-1); n > 0 {
		return n, fine
	}
	return 0, ReasonSpread
}

// besides returns why the shape cannot share a new node with a Pod that runs on every such node.
func (w *World) besides(d *demand, p *corev1.Pod, n *corev1.Node) string {
	if clash(d.ports, portsOf(p)) {
		return ReasonPorts
	}
	if collide(d.disks, disksOf(p)) {
		return ReasonDisk
	}
	if slices.ContainsFunc(d.far, func(t term) bool { return n.Labels[t.key] != "" && t.pod(p) }) {
		return ReasonFar
	}
	if slices.ContainsFunc(w.standing(p), func(t term) bool { return n.Labels[t.key] != "" && t.pod(d.pod) }) {
		return ReasonBarred
	}
	return fine
}

// report counts what became of every shape.
func (l *layout) report() Placement {
	p := *l.Placement
	p.layout = l
	p.Fit, p.Helped, p.Left = make([]int, len(p.Shapes)), make([]int, len(p.Shapes)), make([]int, len(p.Shapes))
	for _, put := range l.result.Puts {
		r := l.rows[put.Item]
		p.Fit[r.shape] += put.Count * r.times
		p.On = append(p.On, On{Node: l.bins[put.Bin], Shape: r.shape, Count: put.Count * r.times})
	}
	for k, pat := range l.result.Patterns {
		o := Opening{Offer: pat.Type, Count: pat.Times, pattern: k}
		for _, h := range pat.Holds {
			r := l.rows[h.Item]
			p.Helped[r.shape] += h.Count * r.times * pat.Times
			o.Holds = append(o.Holds, binpack.Held{Item: r.shape, Count: h.Count * r.times})
		}
		p.Openings = append(p.Openings, o)
	}
	for s := range p.Shapes {
		p.Left[s] = len(p.Shapes[s].Pods) - p.Fit[s] - p.Helped[s]
	}
	return p
}

// Why returns why a Pod of a shape does not fit an empty new Node of an offer; the empty text if it does.
func (p Placement) Why(shape, offer int) string { return p.WhyNot(shape, p.offers[offer].Node) }

// WhyNot is Why for any Node that there could be.
func (p Placement) WhyNot(shape int, n Node) string {
	d := p.Shapes[shape].demand
	if _, why := p.world.fitNew(d, &n); why != fine {
		return why
	}
	return p.world.lack(d, p.world.fresh(&n))
}

// KeptOut reports whether no Pod of a shape can come to a Node that is like n, whatever else that offers: because of Pods elsewhere, or of
// what the Pod itself waits for.
func (p Placement) KeptOut(shape int, n Node) bool {
	d := p.Shapes[shape].demand
	return d.bad != "" || d.company(n.Node, n.Pods...) != fine
}

// lack returns the first resource that there is too little of.
func (w *World) lack(d *demand, free binpack.Vector) string {
	for i, name := range w.axes.names {
		if d.size[i] > free[i] {
			return insufficient(name)
		}
	}
	return ""
}

// Movable reports whether a new Node of another offer takes all Pods of one of the opening's. Pods that were given to a
// topology domain stay in it.
func (p Placement) Movable(o Opening, offer int) bool {
	l := p.layout
	free := p.free[offer]
	for _, h := range l.result.Patterns[o.pattern].Holds {
		if l.items[h.Item].Size.In(free) < h.Count || l.fits(h.Item, len(l.bins)+offer) < h.Count {
			return false
		}
		free = free.Minus(l.items[h.Item].Size.Times(h.Count))
	}
	return true
}

func priorityOf(p *corev1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// hasPlace reports whether a Pod of a shape would find room, were there no other shapes, or finds some beside them: who is to come
// elsewhere may be what lets it go where it would be too far ahead.
func (l *layout) hasPlace(s int) bool {
	v := l.split[s]
	if v.whole != nil {
		return l.mostTogether(l.Shapes[s].demand) > 0
	}
	if v.takesAny() {
		return true
	}
	v.shares = slices.Clone(v.shares)
	for i := range v.shares {
		v.shares[i].comes = 0
	}
	v.fill()
	return v.takesAny()
}

// mostTogether returns how many Pods of a shape the roomiest target takes on one host.
func (l *layout) mostTogether(d *demand) int {
	most := 0
	for b, n := range l.bins {
		most = max(most, min(l.world.fit(d, n), d.size.In(l.room[b].Free)))
	}
	for i := range l.offers {
		if l.offers[i].Limit <= 0 {
			continue
		}
		n, _ := l.world.fitNew(d, &l.offers[i].Node)
		most = max(most, min(n, d.size.In(l.free[i])))
	}
	return most
}
