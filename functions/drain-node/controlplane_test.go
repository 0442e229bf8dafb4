// SPDX-License-Identifier: Apache-2.0

package drainnode

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/cluster"
	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// unreadableSlot returns what is seen of a control-plane Machine that wants the slot while its record is text.
func unreadableSlot(tb testing.TB) func(text string) snapshot.Snapshot {
	tb.Helper()
	s, _, err := scenario.Load("testdata/master-slot-unreadable.txtar")
	if err != nil {
		tb.Fatal(err)
	}
	seen, _, err := scenario.Observe(Function, s)
	if err != nil {
		tb.Fatal(err)
	}
	return func(text string) snapshot.Snapshot {
		world := seen.Clone()
		for i, cm := range world.ConfigMaps {
			if cm.Name == machine.ConfigMapDisrupt {
				world.ConfigMaps[i] = cm.DeepCopy()
				world.ConfigMaps[i].Data = map[string]string{slotKey: text}
			}
		}
		return world
	}
}

// disrupts reports whether a plan takes the slot, or does something to a Node.
func disrupts(p plan.Plan) bool {
	for _, a := range p.Actions() {
		if _, status := a.(plan.UpdateStatus); !status {
			return true
		}
	}
	return false
}

func TestSlotsAreReadInOneWay(t *testing.T) {
	t.Parallel()
	world := unreadableSlot(t)
	const gone = `"namespace":"openshift-machine-api","name":"master-9","uid":"machine-m9"`
	for name, tt := range map[string]struct {
		text   string
		broken bool
	}{
		"of a machine that is gone": {`{"schema":1,` + gone + `}`, false},
		"nobody's":                  {"", false},
		"a field twice":             {`{"schema":1,` + gone + `,"uid":"machine-m1"}`, true},
		"a field in capitals":       {`{"schema":1,` + gone + `,"UID":"machine-m1"}`, true},
		"a field of nobody":         {`{"schema":1,` + gone + `,"x":1}`, true},
		"something behind it":       {`{"schema":1,` + gone + `}{}`, true},
		"another schema":            {`{"schema":2,` + gone + `}`, true},
		"without a uid":             {`{"schema":1,"namespace":"openshift-machine-api","name":"master-1"}`, true},
		"without a name":            {`{"schema":1,"namespace":"openshift-machine-api","uid":"machine-m1"}`, true},
		"without a namespace":       {`{"schema":1,"name":"master-1","uid":"machine-m1"}`, true},
		"null":                      {`null`, true},
	} {
		p := Decide(world(tt.text))
		if disrupts(p) == tt.broken || tt.broken && !strings.Contains(p.String(), "nobody disrupts the control plane") {
			t.Errorf("%s: %v", name, p)
		}
	}
}

// Whatever stands in the record of the slot: who does not understand all of it disrupts nothing, and says why; what is
// understood says the same when it is written again.
func FuzzSlot(f *testing.F) {
	world := unreadableSlot(f)
	f.Add(`{"schema":1,"namespace":"openshift-machine-api","name":"master-0","uid":"machine-m0"}`)
	f.Add(`{"schema":1,"namespace":"openshift-machine-api","name":"master-9","uid":"machine-m9"}`)
	f.Add(`{"schema":1,"schema":2,"uid":"machine-m0"}`)
	f.Add(`{"schema":1e0,"name":null}`)
	f.Add(`[` + strings.Repeat("[", 20000))
	f.Fuzz(func(t *testing.T, text string) {
		s := world(text)
		held, err := slotOf(s)
		p := Decide(s)
		switch {
		case err != nil && (disrupts(p) || !strings.Contains(p.String(), machine.ConfigMapDisrupt)):
			t.Errorf("%q cannot be read, %v:\n%v", text, err, p)
		case err == nil && text != "" && (held.Schema != slotSchema || held.Namespace == "" || held.Name == "" || held.UID == ""):
			t.Errorf("%q was read as %+v", text, held)
		}
	})
}

// Where nobody may write the record of the slot, be it new or as it stands, the Machine that waits for it says why, once; and it goes on once
// that is mended.
func TestSlotThatIsRefusedIsTold(t *testing.T) {
	t.Parallel()
	for name, there := range map[string]bool{"new": false, "as it stands": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := apiserver.New(time.Now)
				n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "master-0", UID: "node-0", Labels: map[string]string{machine.LabelMaster: ""}}}
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
				m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "master-0", UID: "machine-0", Finalizers: []string{machine.Finalizer}}}
				m.DeletionTimestamp = new(metav1.Now())
				m.Annotations = map[string]string{machine.AnnotationDrainTimeout: "10m"}
				m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: n.Name, UID: n.UID}
				put := func(o plan.Object) {
					if err := api.Put(o); err != nil {
						t.Fatal(err)
					}
				}
				put(n)
				put(m)
				if there {
					put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.ConfigMapDisrupt}})
				}
				refuses := &noConfigMaps{Cluster: api.As("drain-node")}
				r := &runner.Runner{Function: Function, Cluster: refuses, Log: slog.New(slog.DiscardHandler)}
				hour := func() (versions map[string]bool) {
					versions = map[string]bool{}
					for range 6 * 60 {
						if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
							t.Fatal(err)
						}
						versions[api.Object("Machine", machine.Namespace, "master-0").GetResourceVersion()] = true
						time.Sleep(10 * time.Second)
					}
					return versions
				}
				drained := func() machine.Condition {
					m, _ := api.Object("Machine", machine.Namespace, "master-0").(*machine.Machine)
					if c := machine.FindCondition(m.Status.Conditions, machine.ConditionDrained); c != nil {
						return *c
					}
					return machine.Condition{}
				}
				if n := len(hour()); n != 1 {
					t.Errorf("%d versions of the Machine", n)
				}
				if c := drained(); c.Status != corev1.ConditionFalse || c.Reason != reasonQueued || !strings.Contains(c.Message, "exceeded quota") {
					t.Errorf("got %+v", c)
				}
				refuses.mended = true
				hour()
				if c := drained(); c.Status != corev1.ConditionTrue {
					t.Errorf("mended: %+v", c)
				}
			})
		})
	}
}

// noConfigMaps is an API server that takes no ConfigMap: for a quota, a policy, as it is immutable, as its namespace goes.
type noConfigMaps struct {
	cluster.Cluster
	mended bool
}

func (c *noConfigMaps) Apply(ctx context.Context, a plan.Action) error {
	var o plan.Object
	switch a := a.(type) {
	case plan.Create:
		o = a.Object
	case plan.Update:
		o = a.New
	}
	if _, ok := o.(*corev1.ConfigMap); ok && !c.mended {
		return &cluster.RefusedError{Err: errors.New("exceeded quota")}
	}
	return c.Cluster.Apply(ctx, a)
}
