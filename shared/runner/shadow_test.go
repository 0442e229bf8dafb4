// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

var countsQuery = snapshot.One("ConfigMap", "default", "counts")

// counting labels a Node, then counts in a ConfigMap how often it was woken, once for each invocation.
func counting(s snapshot.Snapshot) (p plan.Plan) {
	n := s.Node("n0")
	if n.Labels["seen"] != s.Invocation {
		next := n.DeepCopy()
		metav1.SetMetaDataLabel(&next.ObjectMeta, "seen", s.Invocation)
		p.Add(plan.Sequence{Do: []plan.Action{plan.Update{Old: n, New: next}}})
		return p
	}
	cm := s.ConfigMap(countsQuery.Namespace, countsQuery.Name)
	switch {
	case cm == nil:
		cm = &corev1.ConfigMap{Data: map[string]string{"count": "1", "of": s.Invocation}}
		cm.Namespace, cm.Name = countsQuery.Namespace, countsQuery.Name
		p.Add(plan.Sequence{Do: []plan.Action{plan.Create{Object: cm}}})
	case cm.Data["of"] != s.Invocation:
		next := cm.DeepCopy()
		count, _ := strconv.Atoi(cm.Data["count"])
		next.Data["count"], next.Data["of"] = strconv.Itoa(count+1), s.Invocation
		p.Add(plan.Sequence{Do: []plan.Action{plan.Update{Old: cm, New: next}}})
	}
	return p
}

// A dry run remembers from one invocation to the next what it would have written down, within one it goes on from what it would
// have changed, and nothing of it reaches the cluster. What somebody else writes down counts more.
func TestShadowRemembers(t *testing.T) {
	t.Parallel()
	api := world(t, 1)
	seen := 0
	r := testRunner(function.Function{
		Name: "count",
		Reads: func(snapshot.Snapshot) snapshot.Scope {
			return snapshot.Scope{Objects: []snapshot.Query{snapshot.All("Node"), countsQuery}}
		},
		Decide: func(s snapshot.Snapshot) plan.Plan {
			if cm := s.ConfigMap(countsQuery.Namespace, countsQuery.Name); cm != nil {
				seen, _ = strconv.Atoi(cm.Data["count"])
			}
			return counting(s)
		},
	}, api.As("count"))
	r.DryRun, r.Shadow = true, &Shadow{}
	before := len(api.Writes())
	invoke := func(want int) {
		t.Helper()
		p, err := r.Handle(t.Context(), snapshot.Request{})
		if err != nil || len(p.Do) != 2 || seen != want {
			t.Errorf("count %d, want %d, error %v, planned\n%v", seen, want, err, p)
		}
	}
	for want := range 3 {
		invoke(want + 1)
	}
	if got := len(api.Writes()) - before; got > 0 {
		t.Errorf("%d writes", got)
	}
	theirs := &corev1.ConfigMap{Data: map[string]string{"count": "40", "else": "x"}}
	theirs.Namespace, theirs.Name = countsQuery.Namespace, countsQuery.Name
	if err := api.Put(theirs); err != nil {
		t.Fatal(err)
	}
	invoke(41)
	invoke(42)
	if err := memory.Patch(api, theirs.Namespace, theirs.Name, func(cm *corev1.ConfigMap) { cm.Data["else"] = "y" }); err != nil {
		t.Fatal(err)
	}
	invoke(43) // that is no matter of ours
}

// A dry run goes no further than to what has an answer that nobody knows: what is created or deleted is not there, or gone, at the next look.
func TestDryRunEndsWhereAnAnswerIsNeeded(t *testing.T) {
	t.Parallel()
	made := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "made"}}
	for name, deed := range map[string]func(n *corev1.Node) plan.Action{
		"create": func(*corev1.Node) plan.Action { return plan.Create{Object: made} },
		"delete": func(n *corev1.Node) plan.Action { return plan.Delete{Object: n} },
		"cloud":  func(*corev1.Node) plan.Action { return plan.DeleteInstance{Account: "a"} },
	} {
		api := world(t, 1)
		decided := 0
		r := testRunner(function.Function{
			Name: "count",
			Reads: func(snapshot.Snapshot) snapshot.Scope {
				return snapshot.Scope{Objects: []snapshot.Query{snapshot.All("Node"), countsQuery}}
			},
			Decide: func(s snapshot.Snapshot) (p plan.Plan) {
				decided++
				kept := &corev1.ConfigMap{Data: map[string]string{"count": "1"}}
				kept.Namespace, kept.Name = countsQuery.Namespace, countsQuery.Name
				p.Then(deed(s.Node("n0")))
				p.Then(plan.Create{Object: kept})
				return p
			},
		}, api.As("count"))
		r.DryRun, r.Shadow = true, &Shadow{}
		if p, err := r.Handle(t.Context(), snapshot.Request{}); err != nil || decided != 1 || len(p.Do) != 2 {
			t.Errorf("%s: decided %d times, error %v, planned\n%v", name, decided, err, p)
		}
	}
}

// What is wanted as it stands there is nothing to remember: what was wanted before that is forgotten.
func TestShadowForgetsWhatIsAsItWas(t *testing.T) {
	t.Parallel()
	i := &invocation{Runner: &Runner{Shadow: &Shadow{}}}
	found := &corev1.ConfigMap{Data: map[string]string{"count": "1"}}
	found.Namespace, found.Name = countsQuery.Namespace, countsQuery.Name
	q := queryOf(found)
	i.pretended.found = map[snapshot.Query]map[string]string{q: found.Data}
	for _, count := range []string{"2", "1"} {
		next := found.DeepCopy()
		next.Data["count"] = count
		i.keep(found, next)
		if _, kept := i.Shadow.kept[q]["count"]; kept != (count == "2") {
			t.Errorf("%s is kept: %v", count, kept)
		}
	}
}
