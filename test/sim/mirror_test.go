// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/kube"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// mirror does on a real API server what was done in memory.
type mirror struct {
	cluster    *kube.Cluster
	client     *http.Client
	host       string
	namespace  string            // for that of Machines; before the names of others, and of what has no namespace
	versions   map[string]string // of memory: the server's
	uids       map[types.UID]types.UID
	back       map[types.UID]types.UID
	generation map[types.UID]int64 // of the server: how far ahead of memory, where a backup brought the object back
}

func newMirror(t *testing.T, server *rest.Config, seed uint64) *mirror {
	t.Helper()
	m := &mirror{namespace: fmt.Sprintf("seed-%d", seed), versions: map[string]string{}, generation: map[types.UID]int64{}}
	m.uids, m.back = map[types.UID]types.UID{}, map[types.UID]types.UID{}
	var err error
	if m.client, err = rest.HTTPClientFor(server); err != nil {
		t.Fatal(err)
	}
	m.host = server.Host
	if m.cluster, err = kube.New(server, kube.Options{FieldManager: "sim", Namespaces: []string{m.namespace}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{machine.Namespace, workload} {
		m.apply(t, plan.Create{Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.in(name)}}})
	}
	return m
}

// close takes away what is there once in a cluster.
func (m *mirror) close(t *testing.T) {
	t.Helper()
	if ca := m.find(t, &autoscaling.ClusterAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: autoscaling.Name}}); ca != nil {
		m.end(t, ca)
	}
}

// mirrors reports whether an object is held there: Kubernetes' own controllers, which play no part, alone read the others.
func mirrors(o plan.Object) bool {
	switch o.(type) {
	case nil, *corev1.Namespace, *appsv1.ReplicaSet:
		return false
	}
	return true
}

// follow carries out one entry and tells what differs.
func (m *mirror) follow(t *testing.T, e Entry) string {
	t.Helper()
	about := e.about()
	if e.Action == nil && !mirrors(about) {
		return ""
	}
	if got, want := answer(m.do(t, e)), answer(e.Err); got != want {
		return fmt.Sprintf("the real server answers %q, memory answered %q", got, want)
	}
	if about == nil {
		return ""
	}
	held := m.find(t, about)
	if _, created := e.Action.(plan.Create); created && e.Err == nil && (e.After == nil || e.After.GetDeletionTimestamp() != nil) {
		m.apply(t, plan.Delete{Object: held}) // as garbage at once: whose it was is gone
		held = m.find(t, about)
	}
	if held != nil && e.After != nil {
		m.versions[e.After.GetResourceVersion()] = held.GetResourceVersion()
		m.uids[e.After.GetUID()], m.back[held.GetUID()] = held.GetUID(), e.After.GetUID()
	}
	return m.differs(t, held, e.After)
}

// holds tells what differs from what an entry left there.
func (m *mirror) holds(t *testing.T, e Entry) string {
	t.Helper()
	about := e.about()
	if !mirrors(about) {
		return ""
	}
	return m.differs(t, m.find(t, about), e.After)
}

func (m *mirror) differs(t *testing.T, held, want plan.Object) string {
	t.Helper()
	switch {
	case held == nil && want == nil:
		return ""
	case held == nil || want == nil:
		return fmt.Sprintf("the real server holds %v, memory %v", held, want)
	}
	return cmp.Diff(plain(t, want), plain(t, m.returned(held)))
}

func (m *mirror) do(t *testing.T, e Entry) error {
	t.Helper()
	switch a := e.Action.(type) {
	case nil:
		if e.Who == budgets { // the server has done so itself
			return nil
		}
		return m.people(t, e)
	case plan.Create:
		return m.cluster.Apply(t.Context(), plan.Create{Object: m.sent(a.Object)})
	case plan.Update:
		return m.cluster.Apply(t.Context(), plan.Update{Old: m.sent(a.Old), New: m.sent(a.New)})
	case plan.UpdateStatus:
		return m.cluster.Apply(t.Context(), plan.UpdateStatus{Old: m.sent(a.Old), New: m.sent(a.New)})
	case plan.Delete:
		return m.cluster.Apply(t.Context(), plan.Delete{Object: m.sent(a.Object), IfUnchanged: a.IfUnchanged})
	case plan.Evict:
		pod, _ := m.sent(a.Pod).(*corev1.Pod)
		return m.cluster.Apply(t.Context(), plan.Evict{Pod: pod, GraceSeconds: a.GraceSeconds})
	case plan.Approve, plan.CreateInstance, plan.DeleteInstance, plan.PowerCycle, plan.UpdateInstance:
	}
	t.Fatalf("no schedule of these functions has a %T", e.Action)
	return nil
}

// people makes After of whatever there is, in as many requests as that takes. What cannot be made of it, as before it was deleted, is made
// anew.
func (m *mirror) people(t *testing.T, e Entry) error {
	t.Helper()
	if e.Err != nil {
		return e.Err
	}
	want := e.about()
	held := m.find(t, want)
	if e.After == nil {
		m.end(t, held)
		return nil
	}
	if held != nil && m.another(held, want) {
		m.end(t, held)
		held = nil
	}
	if held == nil {
		n := m.sent(want)
		n.SetResourceVersion("")
		n.SetDeletionTimestamp(nil)
		m.apply(t, plan.Create{Object: n})
		held = m.find(t, want)
	}
	if pod, is := held.(*corev1.Pod); is && pod.Spec.NodeName == "" && nodeOf(want) != "" {
		m.request(t, http.MethodPost, pod, "/binding", corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: m.named(nodeOf(want))}})
		held = m.find(t, want)
	}
	m.apply(t, plan.Update{Old: held, New: m.as(held, want)})
	held = m.find(t, want)
	m.apply(t, plan.UpdateStatus{Old: held, New: m.as(held, want)})
	if want.GetDeletionTimestamp() != nil && held.GetDeletionTimestamp() == nil {
		m.apply(t, plan.Delete{Object: held})
	}
	if held = m.find(t, want); e.Who == backup && held != nil {
		m.generation[held.GetUID()] = held.GetGeneration() - want.GetGeneration()
	}
	return nil
}

// another reports whether no request makes want of what is there.
func (m *mirror) another(held, want plan.Object) bool {
	known := m.uids[want.GetUID()]
	return known != "" && known != held.GetUID() || known == "" && m.back[held.GetUID()] != "" && m.back[held.GetUID()] != want.GetUID() ||
		held.GetDeletionTimestamp() != nil && want.GetDeletionTimestamp() == nil ||
		nodeOf(held) != "" && nodeOf(held) != m.named(nodeOf(want))
}

func nodeOf(o plan.Object) string {
	if pod, is := o.(*corev1.Pod); is {
		return pod.Spec.NodeName
	}
	return ""
}

// end removes an object, whoever holds it.
func (m *mirror) end(t *testing.T, held plan.Object) {
	t.Helper()
	if len(held.GetFinalizers()) > 0 {
		n, _ := held.DeepCopyObject().(plan.Object)
		n.SetFinalizers(nil)
		m.apply(t, plan.Update{Old: held, New: n})
	}
	if pod, is := held.(*corev1.Pod); is {
		m.request(t, http.MethodDelete, pod, "", metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		return
	}
	if err := m.cluster.Apply(t.Context(), plan.Delete{Object: held}); err != nil && !errors.Is(err, cluster.ErrGone) {
		t.Fatal(err)
	}
}

// request does to a Pod what functions never do.
func (m *mirror) request(t *testing.T, method string, pod *corev1.Pod, subresource string, body any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	url := m.host + "/api/v1/namespaces/" + pod.Namespace + "/pods/" + pod.Name + subresource
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := m.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s: %s", method, url, text)
	}
}

func (m *mirror) apply(t *testing.T, a plan.Action) {
	t.Helper()
	if err := m.cluster.Apply(t.Context(), a); err != nil {
		t.Fatalf("%s: %v", a.Key(), err)
	}
}

// as returns want as it is sent, under the version and the UID of what is there.
func (m *mirror) as(held, want plan.Object) plan.Object {
	n := m.sent(want)
	n.SetResourceVersion(held.GetResourceVersion())
	n.SetUID(held.GetUID())
	n.SetDeletionTimestamp(held.GetDeletionTimestamp())
	n.SetDeletionGracePeriodSeconds(held.GetDeletionGracePeriodSeconds())
	return n
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

// in returns the namespace that stands for one of memory.
func (m *mirror) in(namespace string) string {
	if namespace == machine.Namespace {
		return m.namespace
	}
	return m.namespace + "-" + namespace
}

// named returns the name of what has no namespace.
func (m *mirror) named(name string) string {
	if name == "" {
		return ""
	}
	return m.namespace + "." + name
}

// sent returns an object of memory as the real server knows it.
func (m *mirror) sent(o plan.Object) plan.Object {
	n := m.translated(o, m.uids)
	n.SetResourceVersion(m.versions[o.GetResourceVersion()])
	switch o := n.(type) {
	case *corev1.Pod:
		o.Namespace, o.Spec.NodeName, o.Spec.SchedulerName = m.in(o.Namespace), m.named(o.Spec.NodeName), people
	case *autoscaling.ClusterAutoscaler:
	default:
		if n.GetNamespace() != "" {
			n.SetNamespace(m.in(n.GetNamespace()))
		} else {
			n.SetName(m.named(n.GetName()))
		}
	}
	return n
}

// returned returns an object of the real server as memory knows it.
func (m *mirror) returned(o plan.Object) plan.Object {
	n := m.translated(o, m.back)
	n.SetGeneration(n.GetGeneration() - m.generation[o.GetUID()])
	switch n.GetNamespace() {
	case "":
		n.SetName(strings.TrimPrefix(n.GetName(), m.namespace+"."))
	case m.namespace:
		n.SetNamespace(machine.Namespace)
	default:
		n.SetNamespace(strings.TrimPrefix(n.GetNamespace(), m.namespace+"-"))
	}
	if pod, is := n.(*corev1.Pod); is {
		pod.Spec.NodeName = strings.TrimPrefix(pod.Spec.NodeName, m.namespace+".")
	}
	return n
}

func (m *mirror) translated(o plan.Object, uids map[types.UID]types.UID) plan.Object {
	n, _ := o.DeepCopyObject().(plan.Object)
	n.SetUID(uids[o.GetUID()])
	refs := n.GetOwnerReferences()
	for i, ref := range refs {
		if ref.Kind != "ReplicaSet" {
			refs[i].UID = uids[ref.UID]
		}
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
	switch o := n.(type) { // defaults of what functions never write
	case *autoscaling.ClusterAutoscaler:
		o.Spec = autoscaling.ClusterAutoscalerSpec{}
	case *corev1.Pod:
		n = &corev1.Pod{ObjectMeta: o.ObjectMeta, Spec: corev1.PodSpec{NodeName: o.Spec.NodeName}, Status: corev1.PodStatus{
			Phase: o.Status.Phase, Conditions: o.Status.Conditions,
		}}
		n.SetGeneration(0)
		for i, c := range o.Status.Conditions {
			if c.Type == corev1.DisruptionTarget {
				o.Status.Conditions[i].LastTransitionTime = metav1.NewTime(Start)
			}
		}
	case *policyv1.PodDisruptionBudget:
		o.Status.Conditions = nil
		for pod := range o.Status.DisruptedPods {
			o.Status.DisruptedPods[pod] = metav1.NewTime(Start)
		}
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
	if _, ok := errors.AsType[*cluster.BlockedError](err); ok {
		return "blocked"
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
