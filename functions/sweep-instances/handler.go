// SPDX-License-Identifier: Apache-2.0

// Package sweepinstances removes instances, and Nodes, that no Machine owns: what lost answers and crashes left behind.
//
//	wakes on  sweep
//	reads     ConfigMap (machine-sweep-state), Machine, Node, Infrastructure, Namespace (kube-system), instances
//	writes    ConfigMap (machine-sweep-state), Node (delete); instances (delete)
//
// It is slow to believe: an instance goes only if it had no owner in two sweeps that lie the cloud's Horizon apart, if
// it still has none in a list of Machines made after the cloud's, and if no Node runs on it. Many finds at once look
// like lost Machines instead, so they are only reported until a person confirms (RELIABILITY 2b.10, R-S2). A Node goes in
// the same way once its Machine and its instance are gone.
package sweepinstances

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Function is the deployable function.
var Function = function.Function{Name: "sweep-instances", Reads: reads, Decide: Decide}

const (
	// maxDeletes bounds the instances, and the Nodes, that one sweep removes.
	maxDeletes = 5
	// annotationConfirmed on the state lets go, although they are many, what was found up to the time in it.
	annotationConfirmed = "machine.openshift.io/sweep-confirmed"
)

// Decide remembers what it sees, and removes what it saw long enough ago.
func Decide(s snapshot.Snapshot) plan.Plan {
	var p plan.Plan
	if !s.Has(stateQuery) {
		return p
	}
	state, err := stateOf(s)
	w := sweepOf(s, state)
	if err != nil {
		p.Notes = append(p.Notes, plan.Warning(w.object(), "SweepFailed", err.Error()))
		return p
	}
	p.Add(w.remember(), w.failures(), w.blindness(), w.insecure(), w.neighbors())
	held, why := w.held()
	if why != "" {
		p.Notes = append(p.Notes, plan.Warning(w.object(), "SweepHeld", why))
	}
	deletes := deleted(s) // by key: two accounts may use the same ids
	kept := 0
	var goes []find
	for _, f := range w.ripe() {
		switch node, o := w.readyNode(f), s.Outcomes[f.deletion().Key()]; {
		case o.Result == plan.Refused && w.firstOfHour():
			p.Notes = append(p.Notes, plan.Warning(w.object(), "FailedDelete", fmt.Sprintf("%s cannot be removed: %s", f, o.Message)))
		case deletes[f.deletion().Key()], held[f.key()]:
		case node != "":
			if kept++; kept <= maxTold {
				p.Notes = append(p.Notes, plan.Warning(w.object(), "SweepHeld", fmt.Sprintf("%s is kept: node %s runs on it", f, node)))
			}
		default:
			goes = append(goes, f)
		}
	}
	for _, f := range w.inTurn(goes) {
		if a := f.deletion(); len(deletes) < maxDeletes && !deletes[a.Key()] {
			deletes[a.Key()] = true
			p.Add(plan.Sequence{Do: []plan.Action{a}, Notes: []plan.Note{plan.Normal(w.object(), "OrphanRemoved", f.String())}})
		}
	}
	if more := kept - maxTold; more > 0 {
		p.Notes = append(p.Notes, plan.Warning(w.object(), "SweepHeld", fmt.Sprintf("%d more are kept: nodes run on them", more)))
	}
	p.Add(w.exorcise()...)
	return p.Untried(s.Outcomes)
}

// inTurn orders finds otherwise in each sweep: what a cloud refuses to remove is known only once it was asked for, and must not hold up the
// rest (R-L4). What was made without a Machine comes before what former attempts left, which has the last place all the same.
func (w sweep) inTurn(goes []find) []find {
	slices.SortStableFunc(goes, func(a, b find) int {
		if a.former == b.former {
			return cmp.Compare(w.turn(a.key()), w.turn(b.key()))
		}
		if b.former {
			return -1
		}
		return 1
	})
	if i := slices.IndexFunc(goes, func(f find) bool { return f.former }); i >= maxDeletes {
		f := goes[i]
		goes = slices.Insert(slices.Delete(goes, i, i+1), maxDeletes-1, f)
	}
	return goes
}

// turn orders what is called by keys otherwise in each sweep.
func (w sweep) turn(key string) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintln(h, key, w.Now.Truncate(sweepEvery).Unix()) // a hash never fails
	return h.Sum64()
}

// sweep is one decision.
type sweep struct {
	snapshot.Snapshot
	stored  machine.SweepState
	state   machine.SweepState              // as it counts now
	inUse   map[string]machine.SweptAccount // by key
	known   map[string]machine.SweptAccount // with those on record
	unclear bool                            // which ones Machines use: there may be more
	owners  owners
	finds   []find
	others  []find // what would be among the finds, but carries another cluster's mark
	spared  int    // finds beside these that may be a Machine's in a namespace that is not served
	ghosts  []*corev1.Node
	haunted bool // there are ghosts, or Nodes that are if no account that could not be listed shows their instance
}

func sweepOf(s snapshot.Snapshot, stored machine.SweepState) sweep {
	state := bounded(stored, s.Now)
	w := sweep{Snapshot: s, stored: stored, state: state, inUse: used(s, state), unclear: unclear(s), owners: ownersIn(s)}
	w.known = known(s, w.inUse, state)
	for _, f := range findsIn(s, w.owners) {
		switch {
		case anothers(s, f.in):
			w.others = append(w.others, f)
		case w.veiled(f.account):
			w.spared++
		default:
			w.finds = append(w.finds, f)
		}
	}
	ghosts := ghostsIn(s, w.known)
	if w.haunted = len(ghosts) > 0; allListed(s, w.known) {
		w.ghosts = ghosts
	}
	return w
}

// write creates or updates the ConfigMap.
func (w sweep) write(next machine.SweepState) plan.Action {
	why := fmt.Sprintf("%d sightings in %d accounts", len(next.Sightings), len(next.Accounts))
	have := w.ConfigMap(machine.Namespace, machine.ConfigMapSweep)
	if have == nil {
		created := w.object()
		created.Data = map[string]string{machine.SweepKey: next.String()}
		return plan.Create{Object: created, Why: why}
	}
	updated := have.DeepCopy()
	if updated.Data == nil {
		updated.Data = map[string]string{}
	}
	updated.Data[machine.SweepKey] = next.String()
	return plan.Update{Old: have, New: updated, Why: why}
}

// object returns the ConfigMap that Events hang on.
func (w sweep) object() *corev1.ConfigMap {
	if have := w.ConfigMap(machine.Namespace, machine.ConfigMapSweep); have != nil {
		return have
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.ConfigMapSweep}}
}

// failures tells which accounts could not be listed at all.
func (w sweep) failures() plan.Sequence {
	var notes []plan.Note
	for _, key := range slices.Sorted(maps.Keys(w.Accounts)) {
		if err := w.Accounts[key].Err; err != nil && !w.Accounts[key].Later {
			why := key + ": " + err.Message
			if len(w.known[key].Spec) == 0 {
				why = key + ": there was no room to remember the providerSpec that led to it"
			}
			if !w.busy(key) && w.Serves(w.known[key].Namespace) {
				why += "; no machine uses the account any more: if nothing of this cluster is left there, take it off configmap " + machine.ConfigMapSweep
			}
			notes = append(notes, plan.Warning(w.object(), "AccountNotListed", why))
		}
	}
	for _, key := range unseen(w.known) {
		a := w.known[key]
		notes = append(notes, plan.Warning(w.object(), "AccountNotListed", fmt.Sprintf("%s: its credentials led to account %s of the cloud and now lead to %s, so nobody sees what is left there: "+
			"give the Secret those of %s until two sweeps found nothing there, or take %q off configmap %s if nothing is", a.Of, a.Owner, w.known[a.Of].Owner, a.Owner, key, machine.ConfigMapSweep)))
	}
	return plan.Sequence{Notes: notes}
}

// deleted returns what this sweep has removed in earlier rounds.
func deleted(s snapshot.Snapshot) map[plan.Key]bool {
	keys := map[plan.Key]bool{}
	for key := range s.Outcomes {
		if strings.HasPrefix(string(key), "delete instance ") {
			keys[key] = true
		}
	}
	return keys
}

// deletion removes the instance with its children; where its UID is also a kept instance's, or a Machine's that is there, only the one that
// is named.
func (f find) deletion() plan.DeleteInstance {
	ref := provider.Ref{Name: f.in.Name, ID: f.in.ID, ProviderID: f.in.ProviderID, Token: f.in.Token}
	if !f.shared && !f.former {
		ref.UID = f.in.UID
	}
	return plan.DeleteInstance{Account: f.account, Ref: ref, Why: f.why}
}
