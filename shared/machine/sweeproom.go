// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

const (
	// MaxSweepState bounds the state, in bytes: a ConfigMap holds 1 MiB.
	MaxSweepState = 1_000_000
	// maxAccounts bounds what the accounts take of it, so that sightings have room.
	maxAccounts = 700_000
	// mostFormers is how many accounts one Secret may have led to before, where there is no room for more.
	mostFormers = 20
	// FewFormers are named of those that are left out.
	FewFormers = 5
	// FormersLeftOut is what is told of them, by whoever leaves them out.
	FormersLeftOut = "credentials led to so many accounts of the cloud before that there is no room for all: see what was left in %s"
)

// Fitted returns s with what there is room for of its accounts, and which former ones have none. Whoever has a cloud of his own that is
// another each time, or writes long providerSpecs, keeps nobody else off the record: first it is left out where credentials led before, of
// those that led to so many; then the longest specs, without which an account is looked into only while Machines lead to it.
func (s SweepState) Fitted() (next SweepState, left []string) {
	over := -min(maxAccounts, MaxSweepState-len(SweepState{Sightings: s.Sightings}.String()))
	formers := map[string]int{}
	for key, a := range s.Accounts {
		over += a.size(key)
		formers[a.Of]++
	}
	if over <= 0 {
		return s, nil
	}
	s.Accounts = maps.Clone(s.Accounts)
	for _, key := range slices.Sorted(maps.Keys(s.Accounts)) {
		if a := s.Accounts[key]; over > 0 && a.Of != "" && formers[a.Of] > mostFormers {
			over -= a.size(key)
			formers[a.Of]--
			delete(s.Accounts, key)
			left = append(left, key)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.Accounts), func(a, b string) int {
		return cmp.Or(len(s.Accounts[b].Spec)-len(s.Accounts[a].Spec), cmp.Compare(a, b))
	}) {
		if a := s.Accounts[key]; over > 0 {
			over -= a.size(key)
			a.Spec = nil
			over += a.size(key)
			s.Accounts[key] = a
		}
	}
	return s, left
}

// size returns what an account takes of the state, in bytes.
func (a SweptAccount) size(key string) int {
	b, err := json.Marshal(map[string]SweptAccount{key: a})
	if err != nil { // Spec was valid JSON where it came from
		return 0
	}
	return len(b)
}
