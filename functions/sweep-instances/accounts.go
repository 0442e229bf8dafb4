// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/providerspec"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

var (
	stateQuery   = snapshot.One("ConfigMap", machine.Namespace, machine.ConfigMapSweep)
	clusterQuery = snapshot.One("Infrastructure", "", machine.InfrastructureName)
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
	sc := snapshot.Scope{Objects: []snapshot.Query{stateQuery, clusterQuery, snapshot.All("Machine"), snapshot.All("Node")}}
	state, err := stateOf(s)
	if !s.Has(stateQuery) || err != nil {
		return sc
	}
	accounts := known(s, state)
	for _, key := range slices.Sorted(maps.Keys(accounts)) {
		a := accounts[key]
		sc.Accounts = append(sc.Accounts, snapshot.AccountQuery{Key: key, Namespace: a.Namespace, Spec: string(a.Spec), ClusterID: a.ClusterID})
	}
	w := sweepOf(s, state)
	if len(w.finds)+len(w.ghosts) > 0 {
		sc.Objects = append(sc.Objects, lastLook)
	}
	if len(w.ripe()) > 0 {
		sc.Objects = append(sc.Objects, lastNodes)
	}
	return sc
}

func stateOf(s snapshot.Snapshot) (machine.SweepState, error) {
	cm := s.ConfigMap(machine.Namespace, machine.ConfigMapSweep)
	if cm == nil {
		return machine.ParseSweepState("")
	}
	return machine.ParseSweepState(cm.Data[machine.SweepKey])
}

// used returns the accounts that Machines name in their intents. A Machine without an intent was never made by a call
// of ours (RELIABILITY 2b.9).
func used(s snapshot.Snapshot) map[string]machine.SweptAccount {
	all := map[string]machine.SweptAccount{}
	for _, m := range s.Machines {
		intent, err := machine.ParseIntent(m)
		if err != nil || intent == nil || intent.Account == "" || m.Spec.ProviderSpec.Value == nil {
			continue
		}
		if _, ok := all[intent.Account]; !ok && json.Valid(m.Spec.ProviderSpec.Value.Raw) {
			raw, of := s.ProviderSpec(m)
			all[intent.Account] = machine.SweptAccount{Namespace: m.Namespace, ClusterID: of.ClusterID, Spec: providerspec.Default(raw, of)}
		}
	}
	return all
}

// known returns the accounts to look into: those on record as they were recorded, because a spec may have changed
// since, and those that are new.
func known(s snapshot.Snapshot, state machine.SweepState) map[string]machine.SweptAccount {
	all := used(s)
	maps.Copy(all, state.Accounts)
	return all
}

// accounts returns what to remember: every account in use, and each other one until it was empty twice, a Horizon
// apart, while no Node is left whose instance may have been there.
func (w sweep) accounts() map[string]machine.SweptAccount {
	all, inUse := known(w.Snapshot, w.state), used(w.Snapshot)
	for key, a := range all {
		seen, asked := w.Accounts[key]
		_, busy := inUse[key]
		switch {
		case busy || asked && len(seen.Instances)+len(w.ghosts) > 0:
			a.EmptySince = nil
		case !asked || seen.Err != nil:
		case a.EmptySince == nil:
			now := metav1.NewTime(w.Now)
			a.EmptySince = &now
		case !w.Now.Before(a.EmptySince.Add(seen.Horizon)):
			delete(all, key)
			continue
		}
		all[key] = a
	}
	return all
}
