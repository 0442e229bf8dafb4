// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// Scope is what a function wants to know.
type Scope struct {
	Objects  []Query
	Lookups  []Lookup
	Accounts []AccountQuery
	// Scan says that what woke the function concerns all of the cluster: a scan decides it in place of this invocation, one for all that ask
	// for it meanwhile. Of thousands of Nodes that fall ill together each says the same.
	Scan bool
}

// Query selects objects of one kind. It is comparable: the same Query is answered once per observation. Queries are
// answered in the order in which they were asked (RELIABILITY 2a.1, 2d).
type Query struct {
	Kind      plan.Kind
	Namespace string // empty: every namespace that the deployment serves
	Name      string // one object; its absence is an answer
	Labels    string // label selector
	Node      string // Pods bound to this Node
	Unbound   bool   // Pods bound to no Node
	// Again marks a second reading of the same object: it replaces the first. A list that was made between two
	// readings with the same resourceVersion is no older than the object.
	Again bool
}

// Lookup asks the cloud behind one Machine, or MachineSet, of the snapshot.
type Lookup struct {
	UID     types.UID
	Bulk    bool // one list per account will do; else a Find of its own
	Alone   bool // with Bulk: a Find of its own where the list does not come
	Open    bool // no call at all: only which account it is, with its properties
	New     bool // no Find where Create is idempotent by token: nobody needs to know whether there is an instance
	Resolve bool // resolve the providerSpec too
	Type    bool // what the cloud says about the instance type
	Fresh   bool // of the type: in answer to this, not what it said before
	Stock   bool // what the cloud holds ready for the providerSpec, where it has a stock (provider.Stocked)
}

// AccountQuery asks for everything of the cluster in one account. Either Key is known from a Lookup of the same
// observation, or Spec and Namespace name the account.
type AccountQuery struct {
	Key       string
	Namespace string
	Spec      string // raw providerSpec; of one Machine or remembered
	ClusterID string
}

var (
	// Infrastructure asks for what tells the cluster's id, and its addresses.
	Infrastructure = One("Infrastructure", "", machine.InfrastructureName)
	// System asks for the namespace that tells the cluster's mark ([Snapshot.ClusterUID]).
	System = One("Namespace", "", machine.NamespaceSystem)
)

// One returns the query for one object.
func One(k plan.Kind, namespace, name string) Query {
	return Query{Kind: k, Namespace: namespace, Name: name}
}

// All returns the query for every object of a kind.
func All(k plan.Kind) Query { return Query{Kind: k} }

// few is how many objects are read one by one before one list of them all is cheaper, for the API server too.
const few = 20

// Few returns ask with All(k) at its end in the place of the objects of k that it names, where those are more than 20 different ones: what
// was read has them either way, Has knows of those alone that were asked for. Whatever else is asked stays as it is, in its order. ask is
// not modified.
func Few(ask []Query, k plan.Kind) []Query {
	single := func(q Query) bool { return q.Name != "" && q == One(k, q.Namespace, q.Name) }
	named := map[Query]bool{}
	for _, q := range ask {
		if single(q) {
			named[q] = true
		}
	}
	if len(named) <= few {
		return ask
	}
	return append(slices.DeleteFunc(slices.Clone(ask), single), All(k))
}

// Has reports whether q was answered in this observation: then what is not in the snapshot was not there.
func (s Snapshot) Has(q Query) bool { return s.asked.has(q) }

// Answered returns s with queries marked as answered. It is for whoever builds a snapshot.
func (s Snapshot) Answered(queries ...Query) Snapshot {
	if !slices.ContainsFunc(queries, func(q Query) bool { return !s.asked.has(q) }) {
		return s
	}
	s.asked = s.asked.clone(len(queries))
	for _, q := range queries {
		s.asked.add(q)
	}
	return s
}

// Missing returns what sc asks beyond what s holds.
func (s Snapshot) Missing(sc Scope) Scope {
	var m Scope
	var known querySet
	for n, q := range sc.Objects {
		if s.asked.has(q) || known.has(q) {
			continue
		}
		if m.Objects == nil {
			m.Objects = make([]Query, 0, len(sc.Objects)-n)
		}
		if m.Objects = append(m.Objects, q); len(m.Objects) <= few {
			known.list = m.Objects
		} else {
			known.add(q)
		}
	}
	for _, l := range sc.Lookups {
		if c, ok := s.Clouds[l.UID]; !ok || l.Fresh && !c.Fresh {
			m.Lookups = append(m.Lookups, l)
		}
	}
	for _, a := range sc.Accounts {
		if _, ok := s.Accounts[a.Key]; !ok {
			m.Accounts = append(m.Accounts, a)
		}
	}
	m.Scan = sc.Scan && !s.Request.Scan()
	return m
}

// Empty reports whether sc asks nothing.
func (sc Scope) Empty() bool {
	return len(sc.Objects) == 0 && len(sc.Lookups) == 0 && len(sc.Accounts) == 0 && !sc.Scan
}

// Selects reports whether q asks for o. A label selector that does not parse selects nothing.
func (q Query) Selects(o plan.Object) bool {
	if plan.KindOf(o) != q.Kind || q.Namespace != "" && o.GetNamespace() != q.Namespace || q.Name != "" && o.GetName() != q.Name {
		return false
	}
	if pod, ok := o.(*corev1.Pod); ok && !q.places(pod) {
		return false
	}
	if q.Labels == "" {
		return true
	}
	sel, err := labels.Parse(q.Labels)
	return err == nil && sel.Matches(labels.Set(o.GetLabels()))
}

// places reports whether q asks for Pods where pod is.
func (q Query) places(pod *corev1.Pod) bool {
	return (q.Node == "" || pod.Spec.NodeName == q.Node) && (!q.Unbound || pod.Spec.NodeName == "")
}

// querySet is a set of them: a list as long as it takes less to compare them than to hash one. The zero querySet is empty.
type querySet struct {
	list []Query
	more map[Query]bool // beyond few
}

func (s *querySet) has(q Query) bool { return slices.Contains(s.list, q) || s.more[q] }

func (s *querySet) add(q Query) {
	switch {
	case s.has(q):
	case len(s.list) < few:
		s.list = append(s.list, q)
	case s.more == nil:
		s.more = map[Query]bool{q: true}
	default:
		s.more[q] = true
	}
}

// clone returns a set that add changes without changing s, with room for n more.
func (s *querySet) clone(n int) querySet {
	return querySet{append(make([]Query, 0, len(s.list)+n), s.list...), maps.Clone(s.more)}
}
