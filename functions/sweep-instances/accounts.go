// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

var (
	stateQuery = snapshot.One("ConfigMap", machine.Namespace, machine.ConfigMapSweep)
	// lastLook lists the Machines once more, after the clouds: those that came meanwhile own what came meanwhile.
	lastLook = snapshot.Query{Kind: "Machine", Again: true}
	// lastNodes does the same for the Nodes, before anything goes.
	lastNodes = snapshot.Query{Kind: "Node", Again: true}
)

// reads asks for the Machines with the Nodes, then for everything in the accounts that they use or ever used; where
// something seems to have no owner, for the Machines once more, and for the Nodes before it is removed.
func reads(s snapshot.Snapshot) snapshot.Scope {
	if !s.Request.Scan() {
		return snapshot.Scope{}
	}
	sc := snapshot.Scope{Objects: []snapshot.Query{stateQuery, snapshot.Infrastructure, snapshot.System, snapshot.All("Machine"), snapshot.All("Node")}}
	state, err := stateOf(s)
	if !s.Has(stateQuery) || err != nil {
		return sc
	}
	w := sweepOf(s, state)
	for _, key := range slices.Sorted(maps.Keys(w.known)) {
		a := w.known[key]
		if a.Of != "" { // its credentials lead elsewhere
			continue
		}
		sc.Accounts = append(sc.Accounts, snapshot.AccountQuery{Key: key, Namespace: a.Namespace, Spec: string(a.Spec), ClusterID: a.ClusterID})
	}
	if len(w.finds)+len(w.ghosts) > 0 {
		sc.Objects = append(sc.Objects, lastLook)
	}
	if len(w.ripe()) > 0 {
		sc.Objects = append(sc.Objects, lastNodes)
	}
	return sc
}

func stateOf(s snapshot.Snapshot) (machine.SweepState, error) {
	return s.Records.Sweep(s.ConfigMap(machine.Namespace, machine.ConfigMapSweep))
}

// used returns the accounts that Machines name in their intents. A Machine without an intent was never made by a call
// of ours (RELIABILITY 2b.9).
func used(s snapshot.Snapshot, state machine.SweepState) map[string]machine.SweptAccount {
	all := map[string]machine.SweptAccount{}
	for _, m := range s.Machines {
		intent, err := s.Records.Intent(m)
		if err != nil || intent == nil || intent.Account == "" || m.Spec.ProviderSpec.Value == nil {
			continue
		}
		id := s.ClusterID(m)
		key := machine.SweptKey(intent.Account, id, state.Accounts, all)
		if _, ok := all[key]; !ok && json.Valid(m.Spec.ProviderSpec.Value.Raw) {
			spec, of := s.FilledSpec(m)
			all[key] = machine.SweptAccount{Namespace: m.Namespace, ClusterID: of.ClusterID, Spec: spec}
		}
	}
	return all
}

// unclear reports whether nobody can tell the account that a Machine has an intent for, as it is another version's or spoilt, or lost its
// spec: a call may be under way in any that is on record.
func unclear(s snapshot.Snapshot) bool {
	return slices.ContainsFunc(s.Machines, func(m *machine.Machine) bool {
		intent, err := s.Records.Intent(m)
		return err != nil || intent != nil && m.Spec.ProviderSpec.Value == nil
	})
}

// busy reports whether a Machine uses the account, or may.
func (w sweep) busy(key string) bool {
	_, used := w.inUse[key]
	return used || w.unclear
}

// known returns the accounts to look into: those on record as they were recorded, because a spec may have changed
// since, and those that are new; and those that credentials led to before somebody changed them.
func known(s snapshot.Snapshot, inUse map[string]machine.SweptAccount, state machine.SweepState) map[string]machine.SweptAccount {
	all := map[string]machine.SweptAccount{}
	maps.Copy(all, inUse)
	for key, a := range state.Accounts {
		if len(a.Spec) == 0 { // there was no room for it
			a.Spec = inUse[key].Spec
		}
		all[key] = a
	}
	for _, key := range slices.Sorted(maps.Keys(s.Accounts)) {
		if seen := s.Accounts[key]; seen.Err == nil {
			machine.LedTo(all, key, seen.Owner, all[key].EmptyFor(seen.Horizon, s.Now) && !within(s, key, all[key]))
		}
	}
	return all
}

// within reports whether a Machine's instance is, or may be, where the credentials of the account key led to, though that was seen empty:
// it came since. A Machine whose account nobody told when its call was made may be in any.
func within(s snapshot.Snapshot, key string, a machine.SweptAccount) bool {
	return slices.ContainsFunc(s.Machines, func(m *machine.Machine) bool {
		intent, err := s.Records.Intent(m)
		there := err != nil || intent != nil && intent.Account == machine.SweptOf(key, a.ClusterID)
		was := m.Annotations[machine.AnnotationCloudAccount]
		return there && (was == "" || machine.SameOwner(was, a.Owner))
	})
}

// untold reports whether nobody tells now to which of the cloud's accounts the credentials of a lead, though that is on record:
// what is not there may be in another. Of an account that could not be listed nothing is known anyway.
func untold(a machine.SweptAccount, seen snapshot.Account) bool {
	return a.Owner != "" && seen.Owner == ""
}

// unseen returns the keys of the accounts that nobody can look into any more, because their credentials lead elsewhere, and no others there.
func unseen(known map[string]machine.SweptAccount) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(known)) {
		if a := known[key]; a.Of != "" && !machine.Shown(known, a) {
			keys = append(keys, key)
		}
	}
	return keys
}

// unserved returns the keys of the accounts on record that lie in namespaces which are not served. The Machines there are in
// no list, so that what they own seems to be nobody's.
func (w sweep) unserved() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.known)), func(key string) bool { return w.Serves(w.known[key].Namespace) })
}

// veiled reports whether what account shows may be of such a Machine. Only what the cloud itself calls differently is another
// account; one and the same may be on record for each namespace.
func (w sweep) veiled(account string) bool {
	return slices.ContainsFunc(w.unserved(), func(key string) bool {
		mine, theirs := w.Accounts[account].Owner, w.known[key].Owner
		return mine == "" || theirs == "" || machine.SameOwner(mine, theirs)
	})
}

// blindness tells of the namespaces that are not served, one by one, and what people can do.
func (w sweep) blindness() plan.Sequence {
	accounts := map[string][]string{}
	for _, key := range w.unserved() {
		accounts[w.known[key].Namespace] = append(accounts[w.known[key].Namespace], key)
	}
	var notes []plan.Note
	for _, namespace := range slices.Sorted(maps.Keys(accounts)) {
		notes = append(notes, plan.Warning(w.object(), "NamespaceNotServed", fmt.Sprintf("namespace %s is not served, so nobody knows what its machines own: "+
			"nothing is removed that may be theirs, now %d finds; serve it again (MACHINE_NAMESPACES), or, if no machine is left there, take %q off configmap %s",
			namespace, w.spared, accounts[namespace], machine.ConfigMapSweep)))
	}
	return plan.Sequence{Notes: notes}
}

// alone returns how much of what was made for a Machine this account shows, and no other: where Machines have another Secret by now, or
// those of other namespaces have one, with credentials for the same of the cloud's accounts, that one shows it as well. Of a namespace that
// is not served nobody knows what its Machines use.
func (w sweep) alone(key string) int {
	mine, shown := w.Accounts[key], map[[2]string]bool{}
	for other := range w.inUse {
		if theirs := w.Accounts[other]; other != key && w.Serves(w.known[key].Namespace) && toldAlike(theirs.Owner, mine.Owner) {
			for _, in := range theirs.Instances {
				shown[[2]string{in.ID, in.ProviderID}] = true
			}
		}
	}
	return made(slices.DeleteFunc(slices.Clone(mine.Instances), func(in provider.Instance) bool { return shown[[2]string{in.ID, in.ProviderID}] }))
}

// toldAlike reports whether the cloud calls two accounts the same. Nobody knows of one that it does not tell.
func toldAlike(a, b string) bool { return a != "" && b != "" && machine.SameOwner(a, b) }

// accounts returns what to remember: every account in use, or that may be, and each other one until it was twice, a Horizon
// apart, empty but for what one in use shows as well, while no Node is left whose instance may have been there. One whose credentials led
// elsewhere before is kept: they may lead back.
func (w sweep) accounts() map[string]machine.SweptAccount {
	all := maps.Clone(w.known)
	needed := map[string]bool{}
	for _, a := range w.known {
		needed[a.Of] = true
	}
	for key, a := range all {
		seen, asked := w.Accounts[key]
		switch {
		case w.busy(key) && !needed[key] || asked && w.alone(key)+len(w.ghosts) > 0:
			a.EmptySince = nil
		case !asked || seen.Err != nil || untold(a, seen):
		case a.EmptySince == nil:
			now := metav1.NewTime(w.Now)
			a.EmptySince = &now
		case a.EmptyFor(seen.Horizon, w.Now) && !needed[key] && !w.haunted:
			delete(all, key)
			continue
		}
		all[key] = a
	}
	maps.DeleteFunc(all, func(_ string, a machine.SweptAccount) bool { // forgotten with those whose credentials show it
		return machine.Shown(w.known, a) && !machine.Shown(all, a)
	})
	return all
}
