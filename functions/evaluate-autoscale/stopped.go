// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Why nothing may scale.
const (
	whyNoSettings = "there is no ClusterAutoscaler any more"
	whyInvalid    = "the ClusterAutoscaler is not valid"
	whyNoGroups   = "no machine set is resized any more"
)

// abandon puts everything to rest once nothing may scale any more: every scale-down that was not committed is called off, one
// that was is followed to its end, what was measured and asked for is forgotten, so that it counts for nothing when scaling begins again, Nodes lose what
// speaks of it, CapacityBuffers are told that nobody keeps their room, slots of what disrupted nobody are given back, and the status says why. It has done so when the state says since when;
// from then on it costs nothing.
func abandon(s snapshot.Snapshot, why string) []plan.Sequence {
	if !restless(s, why) || !s.Has(nodesQuery) || !s.Has(machinesQuery) {
		return nil
	}
	state, _ := s.AutoscalerState() // restless has read it
	next := autoscaling.State{
		Schema: state.Schema, LastScaleUp: state.ScaledUp(), LastScaleDown: state.LastScaleDown, LastFailure: state.LastFailure,
		Seen: autoscaling.Seen{Nodes: state.Seen.Nodes, Pods: state.Seen.Pods},
	}
	var off []autoscaling.Removal
	next.Removals, off = ending(s, state.Removals)
	if len(state.Groups) > 0 {
		next.Groups = map[string]autoscaling.NodeGroup{}
	}
	for id, g := range state.Groups { // what is left are facts about a set, such as failures, whoever scales it
		g.Request, g.Resize, g.Waves = nil, nil, nil
		next.Groups[id] = g
	}
	found := machine.CandidatesOf(s.Machines, s.Nodes)
	back, marks, clean := marksOf(s, off, forgotten(s, found, state.Removals), mineOf(found), why)
	rooms := roomless(s, why)
	now := new(metav1.NewTime(s.Now.UTC().Truncate(1e9)))
	if clean && len(rooms) == 0 && len(next.Removals) == 0 {
		next.Stopped = cmp.Or(state.Stopped, now)
	}
	told := tells(s.ConfigMap(machine.Namespace, machine.ConfigMapStatus), why)
	if told && next.String() == state.String() {
		return append(rooms, marks...)
	}
	data := map[string]string{autoscaling.StateKey: next.String()}
	if !told {
		data[autoscaling.StatusKey] = "time: " + flow(now) + "\n" + stoppedStatus(why)
	}
	return append(slices.Concat(rooms, marks), plan.Sequence{Do: slices.Concat(back, []plan.Action{storing(s, data, "nothing is scaled any more")}, slotsOf(s, off))})
}

// ending returns the scale-downs that are followed still, and those that are called off: one that was committed ends when its Machine
// goes, or when that is known to stay (R-S11).
func ending(s snapshot.Snapshot, all []autoscaling.Removal) (followed, off []autoscaling.Removal) {
	for _, r := range all {
		m, set := machineOf(s, r), setOf(s, r)
		switch {
		case m == nil && r.Committed != nil, m != nil && m.DeletionTimestamp != nil: // its Node goes with it
		case r.Committed == nil, spared(r, set, m, false, s.Now):
			off = append(off, r)
		default:
			followed = append(followed, r)
		}
	}
	return followed, off
}

// forgotten returns the Nodes that go with no Machine and that no scale-down is known of: where one has its taint or cordon, who forgot it
// died before it gave the Node back (R-S11).
func forgotten(s snapshot.Snapshot, found map[*machine.Machine]machine.Candidates, known []autoscaling.Removal) map[*corev1.Node]bool {
	goes, all := dying(s, found), map[*corev1.Node]bool{}
	for _, n := range s.Nodes {
		all[n] = !goes[n] && removalOf(known, n.UID) == nil
	}
	return all
}

// removalOf returns which of these removals is of the Node with this UID, or nil.
func removalOf(all []autoscaling.Removal, node types.UID) *autoscaling.Removal {
	if i := slices.IndexFunc(all, func(r autoscaling.Removal) bool { return r.NodeUID == node }); i >= 0 {
		return &all[i]
	}
	return nil
}

func machineOf(s snapshot.Snapshot, r autoscaling.Removal) *machine.Machine {
	if i := slices.IndexFunc(s.Machines, func(m *machine.Machine) bool { return m.UID == r.MachineUID }); i >= 0 {
		return s.Machines[i]
	}
	return nil
}

func setOf(s snapshot.Snapshot, r autoscaling.Removal) *machine.MachineSet {
	if i := slices.IndexFunc(s.MachineSets, func(set *machine.MachineSet) bool { return idOf(set) == r.Group }); i >= 0 {
		return s.MachineSets[i]
	}
	return nil
}

// unreadable tells that nothing is scaled because the state cannot be read, and leaves it to whoever can: to people, or to the newer
// revision that wrote it, which tells its own status (RELIABILITY G9).
func unreadable(s snapshot.Snapshot, err error) plan.Sequence {
	cm := s.ConfigMap(machine.Namespace, machine.ConfigMapStatus) // without it the state is empty, and can be read
	why := clip("state is not readable, nothing is scaled: " + err.Error())
	told := plan.Sequence{Notes: []plan.Note{plan.Log(why), plan.Warning(cm, "StateUnreadable", why).From(source)}}
	if autoscaling.NewerState(cm.Data[autoscaling.StateKey]) || tells(cm, why) {
		return told
	}
	status := "time: " + flow(metav1.NewTime(s.Now.UTC().Truncate(1e9))) + "\n" + stoppedStatus(why)
	told.Do = []plan.Action{storing(s, map[string]string{autoscaling.StatusKey: status}, "nothing can be scaled")}
	return told
}

// tellUnmade tells that nothing is scaled because the API server refuses to make the ConfigMap of the state: there is nothing whose readers
// could be told, and Pods are told of what was done.
func (sc *scan) tellUnmade(commit plan.Action) {
	create, is := commit.(plan.Create)
	if why, refused := sc.Refused(commit); is && refused {
		why = fmt.Sprintf("nothing is scaled: configmap %s cannot be made: %s", create.Object.GetName(), clip(why))
		sc.notes = append(sc.notes, plan.Warning(clusterAutoscaler(sc.Snapshot), "StateUnwritable", why).From(source))
	}
}

// stoppedStatus is what people are told while nothing is scaled, beside since when.
func stoppedStatus(why string) string {
	return "autoscalerStatus: Stopped\nmessage: " + flow(why) + "\n"
}

func tells(cm *corev1.ConfigMap, why string) bool {
	return strings.HasSuffix(cm.Data[autoscaling.StatusKey], stoppedStatus(why))
}

// restless reports that there is something to be put to rest, as far as the state knows, or a reason to be told.
func restless(s snapshot.Snapshot, why string) bool {
	cm := s.ConfigMap(machine.Namespace, machine.ConfigMapStatus)
	if cm == nil || cm.Data[autoscaling.StateKey] == "" {
		return false
	}
	state, err := s.AutoscalerState()
	return err == nil && (state.Stopped == nil || !tells(cm, why))
}

// marksOf returns the writes that take off Nodes what speaks of scale-down: of those that are given back, before their
// removals are forgotten; of the others, and of those that were forgotten before, each by itself, as many as one invocation may write. It
// reports whether all Nodes are clean already.
func marksOf(s snapshot.Snapshot, off []autoscaling.Removal, forgotten map[*corev1.Node]bool, own mine, why string) (back []plan.Action, marks []plan.Sequence, clean bool) {
	room, clean := maxExplained, true
	for key := range s.Outcomes {
		room -= truth(strings.HasPrefix(string(key), "update node/"))
	}
	for _, n := range s.Nodes {
		removed := removalOf(off, n.UID) != nil
		next, changed := own.unmarked(n, removed || forgotten[n])
		clean = clean && !changed
		switch {
		case !changed:
		case removed:
			back = append(back, plan.Update{Old: n, New: next, Why: why})
		case room > 0:
			room--
			marks = append(marks, plan.Sequence{Do: []plan.Action{plan.Update{Old: n, New: next, Why: why}}})
		}
	}
	return back, marks, clean
}
