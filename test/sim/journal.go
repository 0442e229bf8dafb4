// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/machine-functions/machine-functions/shared/plan"

// people is whoever changes objects beside the functions: persons, kubelets, Kubernetes' own controllers.
const people = "people"

// Entry is one change of an object, or the attempt. Objects in it are never changed again.
type Entry struct {
	Who    string
	Action plan.Action // of a function; nil: people made After of Before, whatever its version, status included
	Before plan.Object // nil: there was none
	After  plan.Object // nil: there is none any more
	Err    error       // what was answered
}

// journal does something to an object and tells of it.
func (p *Play) journal(who string, a plan.Action, o plan.Object, do func() error) error {
	if p.Journal == nil || o == nil {
		return do()
	}
	kind, namespace, name := plan.KindOf(o), o.GetNamespace(), o.GetName()
	e := Entry{Who: who, Action: a, Before: p.API.Object(kind, namespace, name)}
	e.Err = do()
	e.After = p.API.Object(kind, namespace, name)
	p.Journal(e)
	return e.Err
}
