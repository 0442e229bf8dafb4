// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// scan is one evaluation of the cluster in the making. The state changes as decisions are taken; at the end it is
// committed, before anything that follows from it.
type scan struct {
	snapshot.Snapshot
	settings  autoscaling.Settings
	before    autoscaling.State // as found
	state     autoscaling.State // as it is to be
	groups    []*group
	strangers []*group // sets that are none
	lone      []member // Machines of no set
	byID      map[string]*group
	of        map[types.UID]*group          // by Node UID
	nodes     map[types.UID]*corev1.Node    // by UID
	names     map[string]bool               // of Nodes
	running   map[string][]*corev1.Pod      // by Node name: Pods that take room there
	briefs    map[string][]scheduling.Brief // the same Pods, looked at
	unbound   []*corev1.Pod                 // that no Node has
	buffers   []*buffer
	leavers   map[string]bool           // by Node name: some Pod is on its way out
	lesser    map[string][]*corev1.Pod  // by Node name: Pods that run there and keep no Node
	youngest  map[types.UID]*corev1.Pod // by DaemonSet
	machines  map[types.UID]*machine.Machine
	goes      map[*corev1.Node]bool // its Machine, of a group, is on its way out
	retired   map[types.UID]bool    // Machines that ledgers have chosen to go and nobody has deleted yet, and their Nodes
	named     map[types.UID]bool    // Machines that their sets name to go
	barred    map[types.UID]string  // by Node UID: why scale-down leaves it alone
	gpus      scheduling.GPUs
	dying     map[*corev1.Node]bool // its Machine, of whatever set, is on its way out
	mine      mine
	guards    map[string]*guards // disruption budgets by namespace

	readyNodes int64
	unready    int // Nodes that should be ready and are not

	world    *scheduling.World
	seen     []scheduling.Node     // what it was made of
	promised *scheduling.World     // with whoever counts on room there
	reserved map[int][]*corev1.Pod // by place: Pods that count on room there and do not run there
	places   []place               // what the world's nodes are
	waiting  []*corev1.Pod
	counted  autoscaling.Marks  // Pods that waves on their way are for
	arrived  []arrival          // waves whose Nodes are there since the last scan
	work     int                // of all packings, as they count it
	trying   bool               // the plan that is under way is not the last one
	going    map[types.UID]bool // Nodes that only get Pods which have no place elsewhere
	outcome

	prices    map[string]*float64            // what the table says
	asking    bool                           // a question is being answered: nothing is waited for
	asked     map[string]*float64            // what a question says in its place
	changed   map[types.UID]bool             // sets that a question gives another size than their Nodes have
	ranked    bool                           // an expander ranks the groups: what the packing compares is no cost
	saves     bool                           // the plan is of Nodes that take little of what is limited: others cost less
	broken    map[string]broken              // groups of Pods that nothing is done for, because it could not be done for all
	spares    map[string]int                 // by group of Pods: how many of them it can do without
	members   map[string]int                 // by group of Pods: how many of them wait
	lacks     map[string]string              // by group of Pods that is incomplete: what it lacks
	options   []*option                      // groups that can grow
	refusing  []answer                       // of the others
	lifted    []*option                      // groups that grow to their minimum
	among     *among                         // what the placement leaves, once somebody asks
	why       map[types.UID]string           // by Node UID: why it is not removed
	roomy     map[types.UID]autoscaling.Held // by Pod UID: since when a Node has room for it that the scheduler does not give it
	resizing  bool                           // the cluster grows in this scan
	unsettled bool                           // and by what was decided earlier, of which nobody knows yet whether it can be carried out
	doubt     bool                           // lists lost so much that they are not believed
	young     bool                           // all Pods that wait are so new that more are awaited
	used      []candidate                    // Nodes that stay because they are used
	budget    *budget
	unharmed  []autoscaling.Removal // taken back in this scan, and nobody was disrupted

	do    []plan.Action   // to be done once the state is committed, in this order
	told  []plan.Note     // once it was done
	redo  []plan.Sequence // committed earlier and still to be done
	notes []plan.Note     // told whatever comes of it
}

// place is a node of the world: a Node that exists, or one that is to come.
type place struct {
	node  *corev1.Node
	group *group // nil: not resized
	fresh bool   // does not exist yet
}

func newScan(s snapshot.Snapshot, ca *autoscaling.ClusterAutoscaler) (*scan, error) {
	state, err := stateOf(s)
	if err != nil {
		return nil, err
	}
	found := machine.CandidatesOf(s.Machines, s.Nodes)
	groups, strangers, alone := groupsOf(s, found)
	sc := &scan{
		Snapshot: s, settings: autoscaling.Effective(ca.Spec), before: state, state: bounded(state, s.Now), groups: groups, strangers: strangers, lone: alone, byID: map[string]*group{},
		of: map[types.UID]*group{}, nodes: map[types.UID]*corev1.Node{}, names: map[string]bool{}, running: map[string][]*corev1.Pod{}, machines: map[types.UID]*machine.Machine{}, goes: map[*corev1.Node]bool{}, retired: map[types.UID]bool{}, named: map[types.UID]bool{}, barred: map[types.UID]string{},
		dying: dying(s, found), mine: mineOf(found),
		gpus: scheduling.GPUsOf(s.MachineSets),
	}
	sc.state.Stopped = nil
	if sc.state.Groups == nil {
		sc.state.Groups = map[string]autoscaling.NodeGroup{}
	}
	sc.guards = guardsOf(s.DisruptionBudgets)
	for _, n := range s.Nodes {
		sc.nodes[n.UID], sc.names[n.Name] = n, true
	}
	for _, m := range s.Machines {
		sc.machines[m.UID] = m
	}
	sc.index()
	sc.noteGrowths()
	sc.readOptions()
	sc.foresee()
	sc.countNodes()
	sc.tenants()
	return sc, nil
}

// tenants finds out which Pods take room where. It is the one look at all Pods that every scan takes, in the order in which
// they lie in memory; what later questions need of most of them is kept.
func (sc *scan) tenants() {
	at, names, counts := map[string]int{}, []string{}, []int{}
	homes := make([]int, len(sc.Pods))
	briefs := make([]scheduling.Brief, len(sc.Pods))
	sc.leavers, sc.lesser, sc.youngest = map[string]bool{}, map[string][]*corev1.Pod{}, map[types.UID]*corev1.Pod{}
	var looked scheduling.Briefs
	for i, p := range sc.Pods {
		homes[i] = -1
		if p.Spec.NodeName == "" {
			sc.unbound = append(sc.unbound, p)
		}
		sc.compareAge(p)
		node := sc.placeOf(p)
		if node == "" || finished(p) {
			continue
		}
		if sc.expendable(p) {
			sc.lesser[p.Spec.NodeName] = append(sc.lesser[p.Spec.NodeName], p)
			continue
		}
		n, known := at[node]
		if !known {
			n = len(names)
			at[node], names, counts = n, append(names, node), append(counts, 0)
		}
		homes[i], briefs[i] = n, looked.Of(p)
		counts[n]++
		if p.DeletionTimestamp != nil {
			sc.leavers[node] = true
		}
	}
	pods, held := make([][]*corev1.Pod, len(names)), make([][]scheduling.Brief, len(names))
	for i, n := range homes {
		if n < 0 {
			continue
		}
		if pods[n] == nil {
			pods[n], held[n] = make([]*corev1.Pod, 0, counts[n]), make([]scheduling.Brief, 0, counts[n])
		}
		pods[n], held[n] = append(pods[n], sc.Pods[i]), append(held[n], briefs[i])
	}
	sc.briefs = make(map[string][]scheduling.Brief, len(names))
	for n, name := range names {
		sc.running[name], sc.briefs[name] = pods[n], held[n]
	}
}

// index makes groups be found by id and by Node.
func (sc *scan) index() {
	for _, g := range sc.groups {
		sc.byID[g.id] = g
		sc.findRetired(g)
		sc.findNamed(g)
		for _, m := range g.members {
			if m.node != nil {
				sc.of[m.node.UID] = g
				if why := sc.bar(m); why != "" {
					sc.barred[m.node.UID] = why
				}
				if m.machine.DeletionTimestamp != nil {
					sc.goes[m.node] = true
				}
			}
		}
	}
}

// placeOf returns the Node whose room a Pod takes: where it runs, where it was nominated to, or the one that it was
// made for as a DaemonSet's Pod (SPEC C5). To be nominated to a Node that is gone is no place.
func (sc *scan) placeOf(p *corev1.Pod) string {
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	if sc.names[p.Status.NominatedNodeName] {
		return p.Status.NominatedNodeName
	}
	if !scheduling.OfDaemonSet(p) {
		return ""
	}
	return scheduling.NodeNamed(p)
}

// once does what depends on no decision of this scan, unless it was tried in this invocation.
func (sc *scan) once(a plan.Action) {
	if _, tried := sc.Outcome(a); !tried {
		sc.redo = append(sc.redo, plan.Sequence{Do: []plan.Action{a}})
	}
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// expendable Pods bring no Nodes and keep none: they go where there is room to spare (SPEC C8).
func (sc *scan) expendable(p *corev1.Pod) bool {
	return p.Spec.Priority != nil && *p.Spec.Priority < sc.settings.PodPriorityThreshold
}

// compareAge keeps the youngest Pod of each DaemonSet: it asks for what the next one will.
func (sc *scan) compareAge(p *corev1.Pod) {
	of := scheduling.DaemonSetOf(p)
	if of == nil {
		return
	}
	if y := sc.youngest[of.UID]; y == nil || cmp.Or(y.CreationTimestamp.Compare(p.CreationTimestamp.Time), cmp.Compare(y.UID, p.UID)) < 0 {
		sc.youngest[of.UID] = p
	}
}

func (sc *scan) now() *metav1.Time {
	t := metav1.NewTime(sc.Now.UTC().Truncate(1e9))
	return &t
}

// change calls f with what is remembered about a group, and remembers what f makes of it.
func (sc *scan) change(g *group, f func(*autoscaling.NodeGroup)) {
	n := sc.state.Groups[g.id]
	f(&n)
	sc.state.Groups[g.id] = n
}

// tell adds a note about the autoscaler's own ConfigMap, where people look for them (SPEC S67).
func (sc *scan) tell(list *[]plan.Note, kind, reason, message string) {
	ref := plan.Ref{Kind: "ConfigMap", Namespace: machine.Namespace, Name: machine.ConfigMapStatus}
	if cm := sc.ConfigMap(machine.Namespace, machine.ConfigMapStatus); cm != nil {
		ref = plan.RefOf(cm)
	}
	*list = append(*list, plan.Note{Object: ref, Type: kind, Reason: reason, Message: message, Source: source})
}

// sequences returns what the scan wants done: the state and the status in one write, then what follows from it.
func (sc *scan) sequences() []plan.Sequence {
	sc.tidy()
	all := sc.redo
	if commit := sc.commit(); commit != nil {
		sc.do = slices.Concat([]plan.Action{commit}, sc.giveSlotsBack(), sc.do)
		sc.tellUnmade(commit)
	}
	if sc.budget != nil && sc.budget.taken {
		sc.do = append([]plan.Action{sc.budget.store()}, sc.do...)
	}
	return append(all, plan.Sequence{Do: sc.do, Notes: sc.told}, plan.Sequence{Notes: sc.notes})
}

// tidy drops what no longer matters. A change that was carried out is no reason to write, so it stays until something
// else is; one that gave Machines up tells for a while since when they are on their way out.
func (sc *scan) tidy() {
	slices.SortFunc(sc.state.Removals, byNodeName)
	drop := func(_ string, g autoscaling.NodeGroup) bool {
		return g.Resize == nil && g.Request == nil && g.LastFailure == nil && len(g.FailedUIDs) == 0 && len(g.Waves) == 0 && len(g.Useless) == 0
	}
	maps.DeleteFunc(sc.state.Groups, drop)
	if sc.state.String() == sc.before.String() {
		return
	}
	for id, g := range sc.state.Groups {
		if g.Resize != nil && !pendingResize(sc.byID[id], g) && !sc.lately(g.Resize) {
			g.Resize = nil
			sc.state.Groups[id] = g
		}
	}
	maps.DeleteFunc(sc.state.Groups, drop)
}

// commit returns the write of state and status, or nil if both stand there already.
func (sc *scan) commit() plan.Action {
	cm := sc.ConfigMap(machine.Namespace, machine.ConfigMapStatus)
	var found map[string]string
	if cm != nil {
		found = cm.Data
	}
	state, status := found[autoscaling.StateKey], sc.statusText(found[autoscaling.StatusKey])
	if now := sc.state.String(); now != sc.before.String() || state == "" {
		state = now
	}
	if cm != nil && found[autoscaling.StateKey] == state && found[autoscaling.StatusKey] == status {
		return nil
	}
	return storing(sc.Snapshot, map[string]string{autoscaling.StateKey: state, autoscaling.StatusKey: status}, "remember")
}
