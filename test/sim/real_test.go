// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/kube"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/local/controlplane"
)

// mirrored is how many schedules are played against a real API server.
const mirrored = 120

// A schedule's outcome follows from its choices and from what the API server answers. A real one answers every write of a
// schedule as the one in memory did, and holds the same object after it: so the same seeds lead to the same outcomes there.
// UIDs, versions and times of its own are translated. The levels without the autoscaler are played: nobody evicts Pods there. Left
// out are the seeds in which all of its storage is set back, or the set is deleted: no garbage is collected there.
func TestSeedsOnARealServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	server := serve(t)
	var writes, refused atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		t.Parallel()
		for seed, played := *firstSeed, 0; played < mirrored; seed++ {
			entries, whole := journalOf(t, seed)
			if !whole {
				continue
			}
			played++
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				m := newMirror(t, server, seed)
				for i, e := range entries {
					if diff := m.follow(t, e); diff != "" {
						t.Fatalf("seed %d, write %d of %d: %s\n%s", seed, i, len(entries), e, diff)
					}
					writes.Add(1)
					if e.Err != nil {
						refused.Add(1)
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		t.Logf("%d schedules, %d writes, of which %d were refused", mirrored, writes.Load(), refused.Load())
	})
}

// journalOf plays a seed in memory, and reports whether all that happened was writes that a server can hold: config/crd has no
// spec.authoritativeAPI, which OpenShift's definitions have where its API is being migrated (SPEC B7).
func journalOf(t *testing.T, seed uint64) ([]Entry, bool) {
	t.Helper()
	var all []Entry
	var s Strategy = NewSwarm(seed)
	if seed%4 > 1 {
		s = NewPriorities(seed, 4, few(seed)) // with more conflicts
	}
	c := Config{Level: Level(seed % 2), Steps: few(seed)}
	told := c
	told.Journal = func(e Entry) { all = append(all, e) }
	p := NewPlay(told, &Script{Strategy: s})
	if err := p.Run(); err != nil {
		t.Fatalf("seed %d: %s", seed, keep(c, p.Vector(), err))
	}
	return all, !p.restored && !p.collected && !slices.ContainsFunc(all, func(e Entry) bool { return authorityOf(e.After) != "" })
}

// few steps are enough to compare servers: each write waits for a real one.
func few(seed uint64) int { return 20 + int(seed%5)*20 }

func authorityOf(o plan.Object) machinev1beta1.MachineAuthority {
	switch o := o.(type) {
	case *machine.Machine:
		return o.Spec.AuthoritativeAPI
	case *machine.MachineSet:
		return o.Spec.AuthoritativeAPI
	}
	return ""
}

// serve starts an API server whose objects nobody else changes.
func serve(t *testing.T) *rest.Config {
	t.Helper()
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Dir: t.TempDir(), Fresh: true, Args: []string{
		"--kwok=false", "--apiserver-arg=--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
		// The controller manager waits for ever to lead: it would taint Nodes that functions cordon.
		"--controller-manager-arg=--leader-elect=true", "--controller-manager-arg=--leader-elect-resource-namespace=nowhere",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Log("a controller manager that never led ends so:", err)
		}
	})
	if err := plane.InstallAPI(t.Context(), "../../config/crd"); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// mirror does on a real API server what was done in memory.
type mirror struct {
	cluster   *kube.Cluster
	namespace string            // for that of Machines; before the names of what has no namespace
	versions  map[string]string // of memory: the server's
	uids      map[types.UID]types.UID
	back      map[types.UID]types.UID
}

func newMirror(t *testing.T, server *rest.Config, seed uint64) *mirror {
	t.Helper()
	m := &mirror{namespace: fmt.Sprintf("seed-%d", seed), versions: map[string]string{}, uids: map[types.UID]types.UID{}, back: map[types.UID]types.UID{}}
	var err error
	if m.cluster, err = kube.New(server, kube.Options{FieldManager: "sim", Namespaces: []string{m.namespace}}); err != nil {
		t.Fatal(err)
	}
	if err := m.cluster.Apply(t.Context(), plan.Create{Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.namespace}}}); err != nil {
		t.Fatal(err)
	}
	return m
}

// follow carries out one entry and tells what differs.
func (m *mirror) follow(t *testing.T, e Entry) string {
	t.Helper()
	if got, want := answer(m.do(t, e)), answer(e.Err); got != want {
		return fmt.Sprintf("the real server answers %q, memory answered %q", got, want)
	}
	about := e.After
	if about == nil {
		about = e.Before
	}
	if about == nil {
		return ""
	}
	held := m.find(t, about)
	if held == nil || e.After == nil {
		if held == nil && e.After == nil {
			return ""
		}
		return fmt.Sprintf("the real server holds %v, memory %v", held, e.After)
	}
	m.versions[e.After.GetResourceVersion()] = held.GetResourceVersion()
	m.uids[e.After.GetUID()], m.back[held.GetUID()] = held.GetUID(), e.After.GetUID()
	return cmp.Diff(plain(t, e.After), plain(t, m.returned(held)))
}

func (m *mirror) do(t *testing.T, e Entry) error {
	t.Helper()
	switch a := e.Action.(type) {
	case nil:
		return m.people(t, e)
	case plan.Create:
		return m.cluster.Apply(t.Context(), plan.Create{Object: m.sent(a.Object)})
	case plan.Update:
		return m.cluster.Apply(t.Context(), plan.Update{Old: m.sent(a.Old), New: m.sent(a.New)})
	case plan.UpdateStatus:
		return m.cluster.Apply(t.Context(), plan.UpdateStatus{Old: m.sent(a.Old), New: m.sent(a.New)})
	case plan.Delete:
		return m.cluster.Apply(t.Context(), plan.Delete{Object: m.sent(a.Object), IfUnchanged: a.IfUnchanged})
	case plan.Approve, plan.CreateInstance, plan.DeleteInstance, plan.Evict, plan.PowerCycle, plan.UpdateInstance:
	}
	t.Fatalf("no schedule of these functions has a %T", e.Action)
	return nil
}

// people makes After of Before in as many requests as that takes.
func (m *mirror) people(t *testing.T, e Entry) error {
	t.Helper()
	do := func(a plan.Action) {
		if err := m.cluster.Apply(t.Context(), a); err != nil {
			t.Fatalf("%s: %v", a.Key(), err)
		}
	}
	switch {
	case e.Err != nil:
		return e.Err
	case e.Before == nil:
		do(plan.Create{Object: m.sent(e.After)})
	case e.After == nil, e.After.GetDeletionTimestamp() != nil && e.Before.GetDeletionTimestamp() == nil:
		do(plan.Delete{Object: m.sent(e.Before)})
	default:
		do(plan.Update{Old: m.sent(e.Before), New: m.as(e.Before, e.After)})
		do(plan.UpdateStatus{Old: m.find(t, e.Before), New: m.as(e.Before, e.After)})
	}
	return nil
}

// as returns o as it is sent, under the version and the UID of another.
func (m *mirror) as(other, o plan.Object) plan.Object {
	n, _ := o.DeepCopyObject().(plan.Object)
	n.SetResourceVersion(other.GetResourceVersion())
	n.SetUID(other.GetUID())
	return m.sent(n)
}

func (m *mirror) find(t *testing.T, o plan.Object) plan.Object {
	t.Helper()
	at := m.sent(o)
	s, err := m.cluster.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{snapshot.One(plan.KindOf(o), at.GetNamespace(), at.GetName())})
	if err != nil {
		t.Fatal(err)
	}
	for found := range s.Objects() {
		return found
	}
	return nil
}

// sent returns an object of memory as the real server knows it.
func (m *mirror) sent(o plan.Object) plan.Object {
	n := m.translated(o, m.uids)
	n.SetResourceVersion(m.versions[o.GetResourceVersion()])
	if o.GetNamespace() == machine.Namespace {
		n.SetNamespace(m.namespace)
	} else {
		n.SetName(m.namespace + "." + o.GetName())
	}
	return n
}

// returned returns an object of the real server as memory knows it.
func (m *mirror) returned(o plan.Object) plan.Object {
	n := m.translated(o, m.back)
	if o.GetNamespace() == m.namespace {
		n.SetNamespace(machine.Namespace)
	} else {
		n.SetName(strings.TrimPrefix(o.GetName(), m.namespace+"."))
	}
	return n
}

func (m *mirror) translated(o plan.Object, uids map[types.UID]types.UID) plan.Object {
	n, _ := o.DeepCopyObject().(plan.Object)
	n.SetUID(uids[o.GetUID()])
	refs := n.GetOwnerReferences()
	for i := range refs {
		refs[i].UID = uids[refs[i].UID]
	}
	n.SetOwnerReferences(refs)
	return n
}

// plain returns what both servers have to agree on.
func plain(t *testing.T, o plan.Object) any {
	t.Helper()
	n, _ := o.DeepCopyObject().(plan.Object)
	n.SetResourceVersion("")
	n.SetManagedFields(nil)
	n.SetCreationTimestamp(metav1.Time{})
	if n.GetDeletionTimestamp() != nil {
		n.SetDeletionTimestamp(&metav1.Time{Time: Start.In(time.Local)})
	}
	text, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// answer names what a function can decide about.
func answer(err error) string {
	for name, is := range map[string]error{"conflict": cluster.ErrConflict, "exists": cluster.ErrExists, "gone": cluster.ErrGone} {
		if errors.Is(err, is) {
			return name
		}
	}
	if _, ok := errors.AsType[*cluster.RefusedError](err); ok {
		return "refused"
	}
	if err != nil {
		return err.Error()
	}
	return "done"
}

// String tells what was done, by whom.
func (e Entry) String() string {
	if e.Action != nil {
		return e.Who + ": " + e.Action.String()
	}
	return fmt.Sprintf("%s: %v becomes %v", e.Who, e.Before, e.After)
}
