// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"

	"github.com/machine-functions/machine-functions/shared/plan"
)

// people is whoever changes objects beside the functions: persons, kubelets, Kubernetes' own controllers.
const people = "people"

// budgets is who spends the disruptions that are allowed: an API server, with the eviction that it carries out.
const budgets = "budgets"

// backup is whoever brings back what was there at some time.
const backup = "backup"

// Entry is one change of an object, or the attempt. Objects in it are never changed again.
type Entry struct {
	Who    string
	Action plan.Action // of a function; nil: people made After of Before, whatever its version, status included
	Before plan.Object // nil: there was none
	After  plan.Object // nil: there is none any more
	Err    error       // what was answered
}

// journal does something to an object and tells of it, then of what else became of it: what garbage collection did, a disruption that was
// spent.
func (p *Play) journal(who string, a plan.Action, o plan.Object, do func() error) error {
	if p.Journal == nil || o == nil {
		return do()
	}
	kind, namespace, name := plan.KindOf(o), o.GetNamespace(), o.GetName()
	e := Entry{Who: who, Action: a, Before: p.API.Object(kind, namespace, name)}
	e.Err = do()
	e.After = p.API.Object(kind, namespace, name)
	p.Journal(e)
	if p.held == nil {
		p.held = map[string]plan.Object{}
	}
	if delete(p.held, plan.NameOf(o)); e.After != nil {
		p.held[plan.NameOf(o)] = e.After
	}
	who = people
	if _, evicted := a.(plan.Evict); evicted {
		who = budgets
	}
	p.journalRest(who)
	return e.Err
}

// journalRest tells of all changes that nobody told of yet: they are who's.
func (p *Play) journalRest(who string) {
	if p.Journal == nil {
		return
	}
	now := map[string]plan.Object{}
	for _, o := range p.API.Objects() {
		name := plan.NameOf(o)
		now[name] = o
		if before := p.held[name]; before == nil || before.GetUID() != o.GetUID() || before.GetResourceVersion() != o.GetResourceVersion() {
			p.Journal(Entry{Who: who, Before: before, After: o})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.held)) {
		if now[name] == nil {
			p.Journal(Entry{Who: who, Before: p.held[name]})
		}
	}
	p.held = now
}
