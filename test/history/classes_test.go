// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/sim"
)

const (
	provision = "provision-machine"
	scale     = "scale-machineset"
)

var (
	untokened = []byte{1, 3, 0, 0, 0, 1}          // a list that lags, no ports, at once running
	inSteps   = []byte{1, 2, 1, 0, 0, 1}          // some lists lag, with ports
	bareMetal = []byte{2, 0, 1, 0, 0, 2, 0, 0, 1} // fewer hosts than Machines, which have chosen theirs
	doubles   = []string{"R-S1"}
	orphans   = []string{"R-S1", "R-S2", "R-S15", "R-L1"}
)

var classes = []class{
	{"R-B01", "the record of an instance is lost, the lookup lags: another one is made", doubles, sim.Machines, untokened, of(provision, forgetful), nil, story, nil, lost},
	{"R-B02", "the process ends after the create: another one is made at each start", doubles, sim.Machines, untokened, of(provision, forgetful), nil, story, nil, killed},
	{"R-B03", "what guards the launch is in memory", doubles, sim.Machines, untokened, of(provision, withoutClaim), nil, swarm, nil, nil},
	{"R-B04", "whoever is interrupted between create and write makes a duplicate", doubles, sim.Machines, untokened, of(provision, forgetful), nil, swarm, nil, nil},
	{"R-B05", "a stale view of the Machine: Create is called again", doubles, sim.Machines, untokened, of(provision, stale), nil, swarm, nil, nil},
	{"R-B10", "the Machine is deleted while its instance is being made", orphans, sim.Machines, untokened, of(provision, hasty), nil, deletes, nil, lost},
	{"R-B13", "the finalizer goes although an instance may exist", orphans, sim.Machines, nil, of(provision, careless), nil, swarm, nil, nil},
	{"R-B14", "a stale list of Machines: more are made than are wanted", []string{"R-S4", "R-S17", "R-L1"}, sim.Machines, nil, of(scale, uncommitted), nil, swarm, nil, nil},
	{"R-B15", "every invocation makes its own Machines", []string{"R-S4", "R-L1"}, sim.Machines, nil, of(scale, ownNames), nil, swarm, nil, nil},
	{"R-B30", "the Node goes before its instance is off", []string{"R-S9"}, sim.Machines, nil, of(provision, nodeFirst), nil, swarm, nil, nil},
	{"R-B33", "hosts are claimed whatever their version: two Machines claim one, one claims two", []string{"R-S1", "R-S3"}, sim.Machines, bareMetal, nil, hosts(unversioned), delayed, nil, nil},
	talkative(),
}

// hosts returns a way to hosts.
func hosts(way func(http.RoundTripper) http.RoundTripper) func(*sim.Config) {
	return func(c *sim.Config) { c.Hosts = way }
}

// planned returns f with its plans changed.
func planned(f function.Function, change func(snapshot.Snapshot, plan.Plan) plan.Plan) function.Function {
	decide := f.Decide
	f.Decide = func(s snapshot.Snapshot) plan.Plan { return change(s, decide(s)) }
	return f
}

// each returns f with every action that it plans changed.
func each(f function.Function, change func(snapshot.Snapshot, plan.Action) plan.Action) function.Function {
	return planned(f, func(s snapshot.Snapshot, p plan.Plan) plan.Plan {
		for i, seq := range p.Do {
			p.Do[i].Do = slices.Clone(seq.Do)
			for k, a := range seq.Do {
				p.Do[i].Do[k] = change(s, a)
			}
		}
		return p
	})
}

// seen returns f with what it knows changed.
func seen(f function.Function, change func(snapshot.Snapshot) snapshot.Snapshot) function.Function {
	reads, decide := f.Reads, f.Decide
	f.Reads = func(s snapshot.Snapshot) snapshot.Scope { return reads(change(s)) }
	f.Decide = func(s snapshot.Snapshot) plan.Plan { return decide(change(s)) }
	return f
}

// machines returns s with its Machines changed; they are copies.
func machines(s snapshot.Snapshot, change func(*machine.Machine)) snapshot.Snapshot {
	next := s.Clone()
	for i, m := range next.Machines {
		c := m.DeepCopy()
		change(c)
		next.Machines[i] = c
	}
	return next
}

// withIntent changes the intent of every Machine that has one.
func withIntent(s snapshot.Snapshot, change func(*machine.Machine, *machine.Intent)) snapshot.Snapshot {
	return machines(s, func(m *machine.Machine) {
		if i, err := machine.ParseIntent(m); err == nil && i != nil {
			change(m, i)
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, machine.AnnotationIntent, i.String())
		}
	})
}

// forgetful looks whether an instance is there, and makes one if not: exists, create, record.
func forgetful(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return withIntent(s, func(_ *machine.Machine, i *machine.Intent) {
			if i.Unresolved() && i.Holder != s.Invocation {
				*i = i.Released(machine.OutcomeRefused, s.Now)
				i.Unanswered = nil
			}
		})
	})
}

// believesRecords takes a Machine without a record for a new one, however old it is, for which no cloud has made anything.
func believesRecords(f function.Function) function.Function {
	asks := f.Reads
	f.Reads = func(s snapshot.Snapshot) snapshot.Scope {
		sc := asks(s)
		for i := range sc.Lookups {
			l := &sc.Lookups[i]
			l.Open, l.New = l.Open || l.New, false
		}
		return sc
	}
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return machines(s, func(m *machine.Machine) {
			if m.DeletionTimestamp == nil && m.Annotations[machine.AnnotationIntent] == "" {
				m.CreationTimestamp = metav1.NewTime(s.Now)
			}
		})
	})
}

// withoutClaim leaves out the claim before the call.
func withoutClaim(f function.Function) function.Function {
	return planned(f, func(_ snapshot.Snapshot, p plan.Plan) plan.Plan {
		for i, seq := range p.Do {
			if n := len(seq.Do); n > 1 {
				if _, creates := seq.Do[n-1].(plan.CreateInstance); creates {
					p.Do[i].Do = seq.Do[n-1:]
				}
			}
		}
		return p
	})
}

// stale believes what it knew of a Machine before anything was made for it.
func stale(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return machines(s, func(m *machine.Machine) {
			if i, err := machine.ParseIntent(m); err == nil && i != nil && i.Holder != s.Invocation {
				delete(m.Annotations, machine.AnnotationIntent)
				m.Spec.ProviderID, m.Status.Addresses = nil, nil
			}
		})
	})
}

// hasty lets go whatever is deleted while nobody knows what came of its attempt.
func hasty(f function.Function) function.Function {
	decide := f.Decide
	f = careless(f)
	own := f.Decide
	f.Decide = func(s snapshot.Snapshot) plan.Plan {
		if slices.ContainsFunc(s.Machines, func(m *machine.Machine) bool {
			i, _ := machine.ParseIntent(m)
			return m.DeletionTimestamp != nil && i.Unresolved()
		}) {
			return own(s)
		}
		return decide(s)
	}
	return f
}

// careless takes the finalizer away from whatever is deleted.
func careless(f function.Function) function.Function {
	return planned(f, func(s snapshot.Snapshot, p plan.Plan) plan.Plan {
		var next plan.Plan
		for _, m := range s.Machines {
			if m.DeletionTimestamp != nil && machine.HasFinalizer(m) {
				c := m.DeepCopy()
				c.Finalizers = slices.DeleteFunc(c.Finalizers, func(f string) bool { return f == machine.Finalizer })
				next.Then(plan.Update{Old: m, New: c, Why: "the configuration is invalid"})
			}
		}
		if len(next.Do) == 0 {
			return p
		}
		return next.Untried(s.Outcomes)
	})
}

// uncommitted makes what is missing without committing it first.
func uncommitted(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		for i, set := range next.MachineSets {
			l, err := machine.ParseLedger(set.Annotations[machine.AnnotationLedger])
			if err != nil || set.Spec.Replicas == nil {
				continue
			}
			for k := 0; len(l.Active) < int(*set.Spec.Replicas); k++ {
				l.Active = l.Active.With(k)
				l.Next = max(l.Next, k+1)
			}
			c := set.DeepCopy()
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, machine.AnnotationLedger, l.String())
			next.MachineSets[i] = c
		}
		return next
	})
}

// ownNames gives the Machines that an invocation makes names of its own: list, compare, generateName.
func ownNames(f function.Function) function.Function {
	return each(f, func(s snapshot.Snapshot, a plan.Action) plan.Action {
		c, creates := a.(plan.Create)
		m, is := c.Object.(*machine.Machine)
		if !creates || !is {
			return a
		}
		n := m.DeepCopy()
		n.Name = m.Name + "-" + string([]byte{'a' + s.Invocation[0]%26, 'a' + s.Invocation[1]%26})
		return plan.Create{Object: n, Why: c.Why}
	})
}

// nodeFirst deletes the Node as soon as the Machine is drained.
func nodeFirst(f function.Function) function.Function {
	reads := f.Reads
	f.Reads = func(s snapshot.Snapshot) snapshot.Scope {
		sc := reads(s)
		sc.Objects = append(sc.Objects, snapshot.All("Node"))
		return sc
	}
	return planned(f, func(s snapshot.Snapshot, p plan.Plan) plan.Plan {
		for _, m := range s.Machines {
			if m.DeletionTimestamp == nil || !machine.Drained(m) || m.Status.NodeRef == nil {
				continue
			}
			if n := s.Node(m.Status.NodeRef.Name); n != nil {
				var first plan.Plan
				first.Then(plan.Delete{Object: &corev1.Node{ObjectMeta: n.ObjectMeta}, Why: "its machine is deleted"})
				return first.Untried(s.Outcomes)
			}
		}
		return p
	})
}

// unversioned lets requests to hosts not say which version of the host they are about.
func unversioned(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		c := r.Clone(r.Context())
		c.Body = io.NopCloser(bytes.NewReader(versionOf.ReplaceAll(body, []byte(`"resourceVersion":""`))))
		return next.RoundTrip(c)
	})
}

var versionOf = regexp.MustCompile(`"resourceVersion":"[0-9]+"`)

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
