// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

const (
	// maxSightings bounds the state: a ConfigMap holds 1 MiB, and a sighting takes up to some 250 bytes. Where keys are longer,
	// maxSightingBytes bounds it; where the accounts' specs are long, maxStateBytes, which they share.
	maxSightings     = 2000
	maxSightingBytes = 600_000
	maxStateBytes    = machine.MaxSweepState
	// maxTold bounds the Events of one kind in one sweep.
	maxTold = 20
)

// Ranks of sightings, the most urgent first.
const (
	rankInstance = iota
	rankNode
	rankForeign
)

// sighting is one find, or one Node that outlived its Machine, on its way into the state.
type sighting struct {
	key     string
	since   metav1.Time
	known   bool // on record already
	rank    int  // what is only ever reported keeps nothing off the record that is to go
	created time.Time
	news    plan.Note // that tells of a new one
}

// remember writes the state if it changed, and tells of every find once. Of too many the oldest are remembered, those
// first that may go, and the first are told of by name: whatever is not on record only goes later.
func (w sweep) remember() plan.Sequence {
	seen := w.sightings()
	slices.SortStableFunc(seen, func(a, b sighting) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.since.Compare(b.since.Time), a.created.Compare(b.created), cmp.Compare(a.key, b.key))
	})
	next, former := machine.SweepState{Schema: w.state.Schema, Accounts: w.accounts(), Sightings: map[string]metav1.Time{}}.Fitted()
	var notes []plan.Note
	unnamed, left, room := 0, 0, min(maxSightingBytes, maxStateBytes-len(next.String()))
	for _, x := range seen {
		size := len(x.key) + len(`"":"2026-01-01T10:00:00Z",`)
		switch _, twice := next.Sightings[x.key]; {
		case twice:
			continue
		case len(next.Sightings) == maxSightings || size > room:
			left++
			continue
		}
		room -= size
		switch {
		case x.known:
		case len(notes) == maxTold:
			unnamed++
		default:
			notes = append(notes, x.news)
		}
		next.Sightings[x.key] = x.since
	}
	if unnamed > 0 {
		notes = append(notes, plan.Warning(w.object(), "OrphansUnnamed", fmt.Sprintf("%d more have no owner: configmap %s names them", unnamed, machine.ConfigMapSweep)))
	}
	if left > 0 {
		notes = append(notes, plan.Warning(w.object(), "OrphansNotRemembered", fmt.Sprintf("%d of %d finds are not on record, which holds the %d oldest: they stay until those are gone", left, len(seen), len(next.Sightings))))
	}
	if len(former) > 0 {
		notes = append(notes, plan.Warning(w.object(), "AccountsNotRemembered", fmt.Sprintf(machine.FormersLeftOut, plan.Few(former, machine.FewFormers))))
	}
	if plan.Same(next, w.stored) {
		return plan.Sequence{Notes: notes}
	}
	return plan.Sequence{Do: []plan.Action{w.write(next)}, Notes: notes}
}

// sightings returns what is seen now, and what is on record of accounts that could not be listed: that is neither there
// nor gone.
func (w sweep) sightings() []sighting {
	var all []sighting
	for _, f := range w.finds {
		x := w.sight(f.key(), f.in.Created)
		if f.foreign {
			x.rank = rankForeign
		}
		if !x.known {
			x.news = plan.Warning(w.object(), f.reason(), fmt.Sprintf("%s: %s", f, f.fate(x.since.Time)))
		}
		all = append(all, x)
	}
	for _, n := range w.ghosts {
		x := w.sight(ghostKey(n), n.CreationTimestamp.Time)
		x.rank = rankNode
		if !x.known {
			x.news = plan.Warning(w.object(), "OrphanedNode", fmt.Sprintf("node %s: %s is gone, and no account shows %s; deleted after %s if that is still so",
				n.Name, n.Annotations[machine.AnnotationMachine], n.Spec.ProviderID, machine.Stamp(x.since.Add(w.horizon()))))
		}
		all = append(all, x)
	}
	unlisted := false
	for account, seen := range w.Accounts {
		if seen.Err != nil {
			unlisted = true
			all = append(all, w.carried(account, rankInstance)...)
		}
	}
	if unlisted {
		all = append(all, w.carried(machine.SweptNodes, rankNode)...)
	}
	return all
}

// carried returns what is on record of one account.
func (w sweep) carried(account string, rank int) []sighting {
	var all []sighting
	for key, since := range of(w.state.Sightings, account) {
		x := sighting{key: key, since: since, known: true, rank: rank}
		if strings.HasPrefix(key, machine.ForeignKey(account, "")) {
			x.rank = rankForeign
		}
		all = append(all, x)
	}
	return all
}

// sight returns the sighting of what is called key: since it is on record, else since now.
func (w sweep) sight(key string, created time.Time) sighting {
	since, known := w.state.Sightings[key]
	if !known {
		since = metav1.NewTime(w.Now.Truncate(time.Second))
	}
	return sighting{key: key, since: since, known: known, created: created}
}
