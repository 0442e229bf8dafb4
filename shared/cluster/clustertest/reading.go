// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

var reading = []test{
	{"an object that is not there is an answer", absentObject},
	{"an object whose name none can have is not there", impossibleName},
	{"a list sees every write before it", readAfterWrite},
	{"a list of everything sees every write before it", everythingAfterWrite},
	{"a list is sorted by name", sortedList},
	{"a list by labels holds what the selector matches", listByLabels},
	{"a label selector that does not parse is an error", badSelector},
	{"pods are found by their node, and those without", podsByNode},
	{"without a namespace only what is served is read, of foreign kinds everything", servedNamespaces},
	{"an object is found by name in the namespaces that are served", nameWithoutNamespace},
	{"a second reading replaces the first", secondReading},
	{"what is gone at the second reading is gone", goneAtSecondReading},
	{"observing adds to a copy", observingCopies},
	{"now is the server's clock in whole seconds", serverClock},
	{"objects tell neither their kind nor their managed fields", cleanObjects},
	{"a kind that functions do not know is an error", unknownKind},
	{"a secret is read with its version", readSecret},
}

func absentObject(t *testing.T, h Harness) {
	q := snapshot.One("Machine", h.Namespace, "absent")
	s := h.observe(t, q)
	if len(s.Machines) != 0 || !s.Has(q) {
		t.Errorf("machines %v, asked %v", s.Machines, s.Has(q))
	}
	node := snapshot.One("Node", "", h.Namespace+"-absent")
	if s := h.observe(t, node); len(s.Nodes) != 0 || !s.Has(node) {
		t.Errorf("nodes %v, asked %v", s.Nodes, s.Has(node))
	}
}

// impossibleName is about what people, tenants among them, write where a name belongs: the claim of a Pod, the Node of a Machine. It
// leads nowhere else, and keeps nobody from what else is asked.
func impossibleName(t *testing.T, h Harness) {
	create(t, h, h.machine("a"))
	for _, name := range []string{"a/b", "..", ".", "%", "../machines/a", "a,metadata.namespace=" + h.Namespace, "a\\", "a?x=y", "a b"} {
		asked := []snapshot.Query{
			snapshot.One("Machine", h.Namespace, name), snapshot.One("Machine", "", name), snapshot.One("Node", "", name),
			snapshot.One("PersistentVolumeClaim", h.Namespace, name), {Kind: "Pod", Node: name},
		}
		for _, q := range asked {
			s, err := h.Cluster.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{q})
			if err != nil || !s.Has(q) || s.Now.IsZero() {
				t.Errorf("%+v: now %v, error %v", q, s.Now, err)
			}
			for o := range s.Objects() {
				t.Errorf("%+v: found %s", q, plan.NameOf(o))
			}
		}
	}
}

func readAfterWrite(t *testing.T, h Harness) {
	list := func() []string {
		var seen []string
		for _, m := range h.observe(t, snapshot.All("Machine")).Machines {
			seen = append(seen, m.Name+" "+m.Labels[app])
		}
		return seen
	}
	for range 10 {
		m := create(t, h, h.machine("a"))
		if got, want := list(), []string{"a "}; !slices.Equal(got, want) {
			t.Fatalf("after the create: %q, want %q", got, want)
		}
		m = update(t, h, m, func(m *machine.Machine) { m.Labels = map[string]string{app: "x"} })
		if got, want := list(), []string{"a x"}; !slices.Equal(got, want) {
			t.Fatalf("after the update: %q, want %q", got, want)
		}
		h.apply(t, plan.Delete{Object: m})
		if got := list(); len(got) != 0 {
			t.Fatalf("after the delete: %q", got)
		}
	}
}

// everythingAfterWrite is about the lists that an implementation may keep, and bring up to date.
func everythingAfterWrite(t *testing.T, h Harness) {
	all := []snapshot.Query{snapshot.All("Pod"), snapshot.All("Node")}
	list := func() (seen []string) {
		for o := range h.observe(t, all...).Objects() {
			if strings.HasPrefix(o.GetNamespace()+o.GetName(), h.Namespace) && (o.GetNamespace() == "" || o.GetNamespace() == h.Namespace) {
				seen = append(seen, strings.TrimPrefix(o.GetName(), h.Namespace+"-")+" "+o.GetLabels()[app])
			}
		}
		slices.Sort(seen)
		return seen
	}
	for round := range 3 {
		n, p := create(t, h, h.node("n")), create(t, h, h.pod("p", ""))
		if got, want := list(), []string{"n ", "p web"}; !slices.Equal(got, want) {
			t.Fatalf("round %d, after the creates: %q, want %q", round, got, want)
		}
		n = update(t, h, n, func(n *corev1.Node) { n.Labels = map[string]string{app: "x"} })
		p = update(t, h, p, func(p *corev1.Pod) { p.Labels = map[string]string{app: "y"} })
		other := create(t, h, h.pod("q", ""))
		if got, want := list(), []string{"n x", "p y", "q web"}; !slices.Equal(got, want) {
			t.Fatalf("round %d, after the updates: %q, want %q", round, got, want)
		}
		for _, o := range []plan.Object{n, p, other} {
			h.apply(t, plan.Delete{Object: o})
		}
		if got := list(); len(got) != 0 {
			t.Fatalf("round %d, after the deletes: %q", round, got)
		}
	}
}

func sortedList(t *testing.T, h Harness) {
	for _, name := range []string{"b", "c", "a"} {
		create(t, h, h.machine(name))
	}
	if got, want := names(h.observe(t, snapshot.All("Machine")).Machines), "a b c"; got != want {
		t.Errorf("machines %s, want %s", got, want)
	}
}

func listByLabels(t *testing.T, h Harness) {
	for name, value := range map[string]string{"a": "web", "b": "db", "c": ""} {
		m := h.machine(name)
		if value != "" {
			m.Labels = map[string]string{app: value}
		}
		create(t, h, m)
	}
	for selector, want := range map[string]string{
		"app=web": "a", "app!=web": "b c", "app": "a b", "!app": "c", "app in (web,db)": "a b", "app=web,app=db": "",
	} {
		s := h.observe(t, snapshot.Query{Kind: "Machine", Labels: selector})
		if got := names(s.Machines); got != want {
			t.Errorf("%s selects %q, want %q", selector, got, want)
		}
	}
	one := snapshot.Query{Kind: "Machine", Namespace: h.Namespace, Name: "a", Labels: "app=db"}
	if got := names(h.observe(t, one).Machines); got != "" {
		t.Errorf("by name, with a selector that it does not match: %s", got)
	}
}

func badSelector(t *testing.T, h Harness) {
	_, err := h.Cluster.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{{Kind: "Machine", Labels: "app in web"}})
	if err == nil {
		t.Error("no error")
	}
}

func podsByNode(t *testing.T, h Harness) {
	a, b := h.node("a").Name, h.node("b").Name
	for name, node := range map[string]string{"on-a": a, "on-b": b, "unbound": ""} {
		create(t, h, h.pod(name, node))
	}
	for want, q := range map[string]snapshot.Query{
		"on-a":              {Kind: "Pod", Node: a},
		"on-b":              {Kind: "Pod", Namespace: h.Namespace, Node: b},
		"unbound":           {Kind: "Pod", Namespace: h.Namespace, Unbound: true},
		"on-a on-b unbound": {Kind: "Pod", Namespace: h.Namespace},
	} {
		if got := names(h.observe(t, q).Pods); got != want {
			t.Errorf("%+v: %s, want %s", q, got, want)
		}
	}
}

func servedNamespaces(t *testing.T, h Harness) {
	create(t, h, h.machine("here"))
	create(t, h, h.configMap("here"))
	create(t, h, h.pod("here", ""))
	there := h
	there.Namespace = h.Elsewhere
	create(t, h, there.machine("there"))
	create(t, h, there.configMap("there"))
	create(t, h, there.pod("there", ""))
	s := h.observe(t, snapshot.All("Machine"), snapshot.All("ConfigMap"), snapshot.All("Pod"))
	if got := names(s.Machines); got != "here" {
		t.Errorf("machines %s", got)
	}
	if !s.Serves(h.Namespace) || s.Serves(h.Elsewhere) {
		t.Errorf("served are %v, want %s and not %s", s.Served, h.Namespace, h.Elsewhere)
	}
	if got := names(s.ConfigMaps); strings.Contains(got, "there") || s.ConfigMap(h.Namespace, "here") == nil {
		t.Errorf("config maps %s", got)
	}
	var pods []string
	for _, p := range s.Pods {
		if p.Namespace == h.Namespace || p.Namespace == h.Elsewhere {
			pods = append(pods, p.Name)
		}
	}
	slices.Sort(pods)
	if !slices.Equal(pods, []string{"here", "there"}) {
		t.Errorf("pods %s", pods)
	}
	s = h.observe(t, snapshot.Query{Kind: "Machine", Namespace: h.Elsewhere}, snapshot.One("Machine", h.Elsewhere, "there"), snapshot.One("ConfigMap", h.Elsewhere, "there"))
	if got := names(s.Machines); got != "" || s.ConfigMap(h.Elsewhere, "there") == nil {
		t.Errorf("of a namespace that is not served, asked by name: machines %s, config maps %s", got, names(s.ConfigMaps))
	}
}

func nameWithoutNamespace(t *testing.T, h Harness) {
	create(t, h, h.machine("a"))
	create(t, h, h.machine("b"))
	create(t, h, h.pod("a", ""))
	create(t, h, h.pod("b", ""))
	s := h.observe(t, snapshot.One("Machine", "", "b"), snapshot.Query{Kind: "Pod", Name: "b", Labels: "app=web"})
	if got := names(s.Machines); got != "b" {
		t.Errorf("machines %s", got)
	}
	if slices.ContainsFunc(s.Pods, func(p *corev1.Pod) bool { return p.Name != "b" }) || len(s.PodsOn("")) == 0 {
		t.Errorf("pods %s", names(s.Pods))
	}
}

func secondReading(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	first := h.observe(t, snapshot.All("Machine"))
	update(t, h, m, func(m *machine.Machine) { m.Labels = map[string]string{app: "x"} })
	again := snapshot.Query{Kind: "Machine", Namespace: h.Namespace, Name: "a", Again: true}
	second, err := h.Cluster.Observe(t.Context(), first, []snapshot.Query{again})
	if err != nil {
		t.Fatal(err)
	}
	if len(second.Machines) != 1 || second.Machines[0].Labels[app] != "x" {
		t.Errorf("machines %v", second.Machines)
	}
	if !second.Has(again) || !second.Has(snapshot.All("Machine")) || first.Has(again) {
		t.Error("answered queries are marked in the copy alone")
	}
}

func goneAtSecondReading(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	create(t, h, h.machine("b"))
	first := h.observe(t, snapshot.All("Machine"))
	h.apply(t, plan.Delete{Object: m})
	second, err := h.Cluster.Observe(t.Context(), first, []snapshot.Query{{Kind: "Machine", Namespace: h.Namespace, Name: "a", Again: true}})
	if err != nil {
		t.Fatal(err)
	}
	if got := names(second.Machines); got != "b" {
		t.Errorf("machines %s", got)
	}
	if got := names(first.Machines); got != "a b" {
		t.Errorf("the first observation became %s", got)
	}
}

func observingCopies(t *testing.T, h Harness) {
	create(t, h, h.machine("b"))
	create(t, h, h.machine("c"))
	before := h.observe(t, snapshot.One("Machine", h.Namespace, "c"))
	create(t, h, h.machine("a"))
	after, err := h.Cluster.Observe(t.Context(), before, []snapshot.Query{snapshot.All("Machine")})
	if err != nil {
		t.Fatal(err)
	}
	if names(before.Machines) != "c" || names(after.Machines) != "a b c" {
		t.Errorf("before %s, after %s", names(before.Machines), names(after.Machines))
	}
	after.Machines[2].Labels = map[string]string{app: "mine"}
	if again := h.observe(t, snapshot.All("Machine")); again.Machines[2].Labels[app] != "" {
		t.Error("a change to an observed object reached the server")
	}
}

func serverClock(t *testing.T, h Harness) {
	since := h.Clock()
	s := h.observe(t, snapshot.All("Machine"))
	if h.aside(s.Now, since) > 5*time.Second {
		t.Errorf("now is %v, the clock said %v before and %v after", s.Now, since, h.Clock())
	}
	if s.Now.Nanosecond() != 0 {
		t.Errorf("now is %v", s.Now)
	}
	m := create(t, h, h.machine("a"))
	if h.aside(m.CreationTimestamp.Time, s.Now) > 5*time.Second {
		t.Errorf("created at %v, observed at %v", m.CreationTimestamp, s.Now)
	}
}

func cleanObjects(t *testing.T, h Harness) {
	create(t, h, h.machine("a"))
	create(t, h, h.pod("a", ""))
	all := snapshot.Query{Kind: "Pod", Namespace: h.Namespace}
	for _, queries := range [][]snapshot.Query{
		{snapshot.One("Machine", h.Namespace, "a"), snapshot.One("Pod", h.Namespace, "a")}, {snapshot.All("Machine"), all},
	} {
		for o := range h.observe(t, queries...).Objects() {
			if !o.GetObjectKind().GroupVersionKind().Empty() || len(o.GetManagedFields()) > 0 {
				t.Errorf("%s: kind %v, managed fields %v", plan.NameOf(o), o.GetObjectKind().GroupVersionKind(), o.GetManagedFields())
			}
		}
	}
}

func unknownKind(t *testing.T, h Harness) {
	if _, err := h.Cluster.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{snapshot.All("Secret")}); err == nil {
		t.Error("no error")
	}
}

func readSecret(t *testing.T, h Harness) {
	if _, _, err := h.Cluster.Secret(t.Context(), h.Namespace, "absent"); !errors.Is(err, cluster.ErrGone) {
		t.Errorf("a secret that is not there: %v", err)
	}
	h.PutSecret(t, &corev1.Secret{ObjectMeta: h.meta("cloud"), Data: map[string][]byte{"key": []byte("value")}})
	data, version, err := h.Cluster.Secret(t.Context(), h.Namespace, "cloud")
	if err != nil || string(data["key"]) != "value" || version == "" {
		t.Errorf("data %q, version %q, error %v", data, version, err)
	}
}
