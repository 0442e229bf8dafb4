// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

var sweepQuery = snapshot.One("ConfigMap", machine.Namespace, machine.ConfigMapSweep)

// accounts collects the cloud accounts that this decision would be the first to call. sweep-instances has to know them
// before anything is made there, because a Machine may be gone before its next sweep (RELIABILITY 2b.10).
type accounts map[string]machine.SweptAccount

// remembered reports whether m's account is on record, and asks for it if not, or if it counts as empty where m is about to go: that was
// seen before its call. What cannot be read or written is left to sweep-instances, which says so; it keeps nobody from getting a Machine.
func (a accounts) remembered(l life) bool {
	state, err := sweepState(l.Snapshot)
	if err != nil {
		return true
	}
	spec, of := l.FilledSpec(l.m)
	key := machine.SweptKey(l.cloud.Account, of.ClusterID, state.Accounts, a)
	known, ok := state.Accounts[key]
	led := l.cloud.Owner == "" || machine.SameOwner(known.Owner, l.cloud.Owner)
	empty := l.m.DeletionTimestamp != nil && known.EmptySince != nil
	if ok && led && !empty || refusedToRemember(l.Snapshot) {
		return true
	}
	a[key] = machine.SweptAccount{
		Namespace: l.m.Namespace, ClusterID: of.ClusterID, Spec: spec, Owner: l.cloud.Owner,
	}
	return false
}

// rediscovered reports that m has an instance which a call of ours made, and no record of that: storage was set back since. Its account may
// be on no record either, and no call may follow that brings it there: whatever else was made in it then would be in no sweep (2b.10).
func (l life) rediscovered() bool {
	return machine.ProviderID(l.m) == "" && l.intent == nil && l.in != nil && l.in.UID == machine.InstanceUID(l.m)
}

// remember writes all accounts that were asked for, in one write, and tells of those that had to make room: who comes later sees nothing of
// them.
func (a accounts) remember(s snapshot.Snapshot) (seq plan.Sequence) {
	state, err := sweepState(s)
	if err != nil || len(a) == 0 {
		return seq
	}
	known := maps.Clone(state.Accounts)
	if known == nil {
		known = map[string]machine.SweptAccount{}
	}
	for _, key := range slices.Sorted(maps.Keys(a)) {
		account, ok := known[key]
		if !ok {
			account = a[key]
		}
		account.EmptySince = nil
		known[key] = account
		machine.LedTo(known, key, a[key].Owner, false)
	}
	state.Accounts = known
	state, former := state.Fitted()
	const why = "accounts to sweep"
	have := s.ConfigMap(machine.Namespace, machine.ConfigMapSweep)
	if have == nil {
		seq.Do = append(seq.Do, plan.Create{Why: why, Object: &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.ConfigMapSweep},
			Data:       map[string]string{machine.SweepKey: state.String()},
		}})
		return seq
	}
	if len(former) > 0 {
		seq.Notes = append(seq.Notes, plan.Warning(have, "AccountsNotRemembered", fmt.Sprintf(machine.FormersLeftOut, plan.Few(former, machine.FewFormers))))
	}
	next := have.DeepCopy()
	if next.Data == nil {
		next.Data = map[string]string{}
	}
	next.Data[machine.SweepKey] = state.String()
	seq.Do = append(seq.Do, plan.Update{Old: have, New: next, Why: why})
	return seq
}

func sweepState(s snapshot.Snapshot) (machine.SweepState, error) {
	return s.Records.Sweep(s.ConfigMap(machine.Namespace, machine.ConfigMapSweep))
}

func refusedToRemember(s snapshot.Snapshot) bool {
	var a plan.Action = plan.Create{Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.ConfigMapSweep}}}
	if have := s.ConfigMap(machine.Namespace, machine.ConfigMapSweep); have != nil {
		a = plan.Update{Old: have, New: have}
	}
	_, refused := s.Refused(a)
	return refused
}
