// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Same carries out the same random actions, drawn from seed, on two implementations and fails at the first that is
// answered differently or leaves different objects behind. UIDs, versions and times may differ.
func Same(t *testing.T, seed uint64, one, other Harness) {
	t.Helper()
	draw := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // to be repeated
	a, b := newWorld(one), newWorld(other)
	create(t, one, one.node("host")) // Pods of a Node that is not there are not left alone
	create(t, other, other.node("host"))
	var story strings.Builder
	kinds := []plan.Kind{anyOf(draw, variety), anyOf(draw, variety)} // few, so that they have a history
	for range 20 {
		w := wishFrom(draw, kinds)
		if w.verb != "create" && a.version(subject{w.kind, w.name}, 0) == nil {
			w.verb = "create"
		}
		first, second := a.grant(t, w), b.grant(t, w)
		fmt.Fprintf(&story, "%+v: %s\n", w, first)
		if first != second {
			t.Fatalf("seed %d: the other one answered %s to the last of\n%s", seed, second, story.String())
		}
		for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			left, right := a.look(t), b.look(t)
			if left == right {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("seed %d: different objects (-one +other) after\n%s\n%s", seed, story.String(), cmp.Diff(left, right))
			}
		}
		a.remember()
		b.remember()
	}
}

// wish is an action on whatever object has the name in either world.
type wish struct {
	verb      string
	kind      plan.Kind
	name      string
	age       int // of the version that the action saw: 0 is the latest
	change    string
	unchanged bool // of a delete; of a create: with a finalizer that kinds of Kubernetes itself refuse
	finalizer bool // of a create
	owner     bool // of a create: by the latest version of the set a
	bound     bool // of the create of a Pod
}

var (
	variety = []plan.Kind{"Machine", "Machine", "MachineSet", "MachineSet", "ConfigMap", "Node", "Pod", "Pod"}
	verbs   = []string{"create", "create", "update", "update", "update", "status", "delete", "delete", "delete", "evict"}
	changes = []string{
		"label", "unlabel", "bad label", "annotate", "finalize", "release", "release", "release one", "spec", "spec", "move", "nothing",
	}
)

func anyOf[T any](draw *rand.Rand, of []T) T { return of[draw.IntN(len(of))] }

func wishFrom(draw *rand.Rand, kinds []plan.Kind) wish {
	w := wish{
		verb: anyOf(draw, verbs), kind: anyOf(draw, kinds), name: anyOf(draw, []string{"a", "b"}), change: anyOf(draw, changes),
		unchanged: draw.IntN(2) == 0, finalizer: draw.IntN(3) == 0, owner: draw.IntN(2) == 0, bound: draw.IntN(2) == 0,
	}
	if draw.IntN(5) < 2 {
		w.age = 1 + draw.IntN(3)
	}
	return w
}

type subject struct {
	kind plan.Kind
	name string
}

// world is one implementation with what was seen there.
type world struct {
	Harness
	now  snapshot.Snapshot
	seen map[subject][]plan.Object // every version, the latest last
	uids map[types.UID]int         // in the order of their appearance, which both worlds share
}

func newWorld(h Harness) *world {
	return &world{Harness: h, seen: map[subject][]plan.Object{}, uids: map[types.UID]int{}}
}

// grant carries out w and names the answer.
func (o *world) grant(t *testing.T, w wish) string {
	t.Helper()
	err := o.Cluster.Apply(t.Context(), o.action(w))
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, cluster.ErrConflict):
		return "conflict"
	case errors.Is(err, cluster.ErrExists):
		return "exists"
	case errors.Is(err, cluster.ErrGone):
		return "gone"
	}
	if _, ok := errors.AsType[*cluster.RefusedError](err); ok {
		return "refused"
	}
	return err.Error()
}

func (o *world) action(w wish) plan.Action {
	if w.verb == "create" {
		return plan.Create{Object: o.fresh(w)}
	}
	old := o.version(subject{w.kind, w.name}, w.age)
	n, _ := old.DeepCopyObject().(plan.Object)
	switch w.verb {
	case "update":
		change(n, w.change)
		return plan.Update{Old: old, New: n}
	case "status":
		changeStatus(n, w.change)
		return plan.UpdateStatus{Old: old, New: n}
	case "evict":
		// With the UID of an earlier Pod of that name the real server takes ten seconds to say no.
		if pod, ok := o.version(subject{w.kind, w.name}, 0).(*corev1.Pod); ok {
			return plan.Evict{Pod: pod}
		}
	}
	return plan.Delete{Object: old, IfUnchanged: w.unchanged}
}

// version returns what was seen of s age versions ago, or the oldest that was.
func (o *world) version(s subject, age int) plan.Object {
	all := o.seen[s]
	if len(all) == 0 {
		return nil
	}
	return all[max(0, len(all)-1-age)]
}

func (o *world) fresh(w wish) plan.Object {
	var n plan.Object
	switch w.kind {
	case "MachineSet":
		n = o.machineSet(w.name)
	case "ConfigMap":
		n = o.configMap(w.name)
	case "Node":
		n = o.node(w.name)
	case "Pod":
		node := ""
		if w.bound {
			node = o.node("host").Name
		}
		n = o.pod(w.name, node)
	default:
		n = o.machine(w.name)
	}
	if w.finalizer && (w.kind != "Pod" || w.bound) { // see change
		n.SetFinalizers([]string{"example.com/first", "example.com/second"})
	}
	if w.unchanged && w.finalizer {
		n.SetFinalizers([]string{finalizer})
	}
	if set := o.version(subject{"MachineSet", "a"}, w.age); set != nil && w.owner && w.kind != "Node" && w.kind != "MachineSet" {
		n = owned(n, set)
	}
	return n
}

func change(o plan.Object, what string) {
	if pod, ok := o.(*corev1.Pod); ok && what == "finalize" && pod.Spec.NodeName == "" {
		what = "label" // the real server's Pod collector does not wait for the finalizers of Pods without Node
	}
	switch what {
	case "label":
		o.SetLabels(map[string]string{app: "web", "zone": "b"})
	case "unlabel":
		o.SetLabels(nil)
	case "bad label":
		o.SetLabels(map[string]string{app: "a b"})
	case "annotate":
		o.SetAnnotations(map[string]string{"example.com/note": fmt.Sprint(len(o.GetAnnotations()))})
	case "finalize":
		o.SetFinalizers(append(o.GetFinalizers(), "example.com/late"))
	case "release":
		o.SetFinalizers(nil)
	case "release one":
		if f := o.GetFinalizers(); len(f) > 0 {
			o.SetFinalizers(f[1:])
		}
	case "move":
		o.SetUID("another")
	case "spec":
		changeSpec(o)
	}
}

func changeSpec(o plan.Object) {
	switch o := o.(type) {
	case *machine.Machine:
		id := fmt.Sprintf("kubemark://%d", o.Generation)
		o.Spec.ProviderID = &id
	case *machine.MachineSet:
		n := int32(o.Generation % 3)
		o.Spec.Replicas = &n
	case *corev1.ConfigMap:
		o.Data = map[string]string{"key": "another"}
	case *corev1.Node:
		o.Spec.Taints = append(o.Spec.Taints, corev1.Taint{Key: fmt.Sprint("taint-", len(o.Spec.Taints)), Effect: "PreferNoSchedule"})
	}
}

func changeStatus(o plan.Object, what string) {
	switch o := o.(type) {
	case *machine.Machine:
		o.Status.Phase = &what
	case *machine.MachineSet:
		o.Status.Replicas++
		o.Status.ObservedGeneration = o.Generation
	case *corev1.Node:
		o.Status.Conditions = []corev1.NodeCondition{{Type: "Custom", Status: corev1.ConditionTrue, Reason: "Because", Message: what}}
	case *corev1.Pod:
		o.Status.Phase = corev1.PodRunning
		if what == "spec" {
			o.Status.Phase = corev1.PodSucceeded
		}
	}
}

// look renders all objects as far as both worlds must agree about them.
func (o *world) look(t *testing.T) string {
	t.Helper()
	var queries []snapshot.Query
	for _, k := range []plan.Kind{"Machine", "MachineSet", "ConfigMap", "Pod"} {
		queries = append(queries, snapshot.Query{Kind: k, Namespace: o.Namespace})
	}
	for _, name := range []string{"a", "b"} {
		queries = append(queries, snapshot.One("Node", "", o.node(name).Name))
	}
	o.now = o.observe(t, queries...)
	var all strings.Builder
	for found := range o.now.Objects() {
		if o.known(found) {
			text, err := json.MarshalIndent(o.portrait(found), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			all.Write(append(text, '\n'))
		}
	}
	return all.String()
}

// known leaves out what the server's own controllers put into every namespace.
func (o *world) known(found plan.Object) bool {
	return slices.Contains([]string{"a", "b"}, o.subject(found).name)
}

func (o *world) subject(found plan.Object) subject {
	return subject{plan.KindOf(found), strings.TrimPrefix(found.GetName(), o.Namespace+"-")}
}

// portrait leaves out of an object what may differ: the fields that only the real server defaults, times, UIDs.
func (o *world) portrait(found plan.Object) map[string]any {
	p := map[string]any{
		"subject": fmt.Sprint(o.subject(found)), "labels": found.GetLabels(), "annotations": found.GetAnnotations(),
		"finalizers": found.GetFinalizers(), "generation": found.GetGeneration(),
		"deleting": found.GetDeletionTimestamp() != nil, "grace": found.GetDeletionGracePeriodSeconds(),
	}
	for _, ref := range found.GetOwnerReferences() {
		p["owner"] = fmt.Sprint(ref.Kind, ref.Name, o.uids[ref.UID])
	}
	last := o.version(o.subject(found), 0)
	p["new"] = last == nil || last.GetUID() != found.GetUID()
	p["changed"] = last == nil || last.GetResourceVersion() != found.GetResourceVersion()
	switch found := found.(type) {
	case *machine.Machine:
		p["spec"], p["status"] = found.Spec, found.Status
	case *machine.MachineSet:
		p["spec"], p["status"] = found.Spec, found.Status
	case *corev1.ConfigMap:
		p["data"] = found.Data
	case *corev1.Node:
		p["taints"], p["conditions"] = found.Spec.Taints, found.Status.Conditions
	case *corev1.Pod:
		p["bound"], p["phase"] = found.Spec.NodeName != "", found.Status.Phase
		var conditions []corev1.PodConditionType
		for _, c := range found.Status.Conditions {
			conditions = append(conditions, c.Type)
		}
		p["conditions"] = conditions
	}
	return p
}

// remember adds what look saw to what was seen.
func (o *world) remember() {
	for found := range o.now.Objects() {
		s := o.subject(found)
		if !o.known(found) {
			continue
		}
		if last := o.version(s, 0); last != nil && last.GetResourceVersion() == found.GetResourceVersion() {
			continue
		}
		if _, ok := o.uids[found.GetUID()]; !ok {
			o.uids[found.GetUID()] = len(o.uids)
		}
		o.seen[s] = append(o.seen[s], found)
	}
}
