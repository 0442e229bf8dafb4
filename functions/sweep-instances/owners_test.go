// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// now is when all of this is decided.
var now = time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)

// Of what carries another attempt's token only that is a leftover which an instance is made with, and which something else can be in the place of
// (RELIABILITY 2b.10).
func TestLeftByAFormerAttempt(t *testing.T) {
	t.Parallel()
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker-0", Namespace: machine.Namespace, UID: "uid-0"}}
	intent := machine.NewIntent(m, 2, "kubemark", []byte(`{}`)).Claimed("me", now, time.Minute)
	m.Annotations = map[string]string{machine.AnnotationIntent: intent.String()}
	o := ownersIn(snapshot.Snapshot{Now: now, Machines: []*machine.Machine{m}, Records: machine.NewRecords()})
	for name, c := range map[string]struct {
		in   provider.Instance
		want bool
	}{
		"a port of another attempt":            {provider.Instance{UID: m.UID, Child: true, Token: "another"}, true},
		"a port of this attempt":               {provider.Instance{UID: m.UID, Child: true, Token: intent.Token}, false},
		"a port of nobody knows which attempt": {provider.Instance{UID: m.UID, Child: true}, false},
		"a port of another machine":            {provider.Instance{UID: "uid-1", Child: true, Token: "another"}, false},
		"an instance":                          {provider.Instance{UID: m.UID, Token: "another"}, false},
		"a claim of a host":                    {provider.Instance{UID: m.UID, Child: true, Sole: true, Token: "another"}, false},
	} {
		if got := o.former(c.in); got != c.want {
			t.Errorf("%s: left by a former attempt %v, want %v", name, got, c.want)
		}
	}
}

// Of no other's attempt, that a copy of its record tells of, does anybody know whether it is over; nor was anything left in another region by
// a Machine that has no instance on record yet: it may go on with what is there (RELIABILITY 2b.10).
func TestNothingIsLeftByWhoMayGoOnWithIt(t *testing.T) {
	t.Parallel()
	const here, there = "AWSMachineProviderConfig/eu-west-1/machines/aws", "AWSMachineProviderConfig/us-east-1/machines/aws"
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker-0", Namespace: machine.Namespace, UID: "uid-0"}}
	left := provider.Instance{UID: m.UID, Child: true, Token: "another"}
	for _, c := range []struct {
		name           string
		of             types.UID // whose record it is
		recorded       bool
		former, beside bool
	}{
		{"its own, with its instance", m.UID, true, true, true},
		{"its own, without one", m.UID, false, true, false},
		{"another's", "uid-1", true, false, false},
	} {
		intent := machine.NewIntent(&machine.Machine{ObjectMeta: metav1.ObjectMeta{UID: c.of}}, 2, here, []byte(`{}`)).Released(machine.OutcomeCreated, now)
		m.Annotations, m.Spec.ProviderID = map[string]string{machine.AnnotationIntent: intent.String()}, nil
		if c.recorded {
			m.Spec.ProviderID = new("aws:///eu-west-1a/i-1")
		}
		o := ownersIn(snapshot.Snapshot{Now: now, Machines: []*machine.Machine{m}, Records: machine.NewRecords()})
		if got := o.former(left); got != c.former {
			t.Errorf("%s: left by a former attempt %v", c.name, got)
		}
		if got := o.leftBy(there, m); got != c.beside {
			t.Errorf("%s: left in another region %v", c.name, got)
		}
	}
}

// What a Machine may go on with stays where another instance with its tag goes: that one is named by its own id (RELIABILITY 2b.10, R-S3).
func TestWhatAMachineKeepsIsNotNamedByItsTag(t *testing.T) {
	t.Parallel()
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker-0", Namespace: machine.Namespace, UID: "uid-0"}}
	m.Spec.ProviderID = new("memory:///i-1")
	port := provider.Instance{ID: "port-1", Name: m.Name, UID: m.UID, Child: true}
	for _, kept := range []bool{false, true} {
		here := []provider.Instance{{ID: "i-2", ProviderID: "memory:///i-2", Name: m.Name, UID: m.UID, State: provider.StateRunning}}
		if kept {
			here = append(here, port)
		}
		s := snapshot.Snapshot{Now: now, Machines: []*machine.Machine{m}, Records: machine.NewRecords(), Accounts: map[string]snapshot.Account{
			"a": {Instances: here}, "b": {Instances: []provider.Instance{{ID: "i-1", ProviderID: "memory:///i-1", Name: m.Name}}},
		}}
		finds := findsIn(s, ownersIn(s))
		if len(finds) != 1 || finds[0].in.ID != "i-2" || (finds[0].deletion().Ref.UID == "") != kept {
			t.Errorf("with a port %v: %+v", kept, finds)
		}
	}
}

// Whoever is only ever reported, as the hosts of an installer, makes no orphan wait for a person (RELIABILITY 2b.10, R-S2).
func TestForeignInstancesHoldNobodyUp(t *testing.T) {
	t.Parallel()
	for _, foreign := range []bool{true, false} {
		w := sweep{finds: []find{{account: "a", in: provider.Instance{ID: "orphan", UID: "uid-0"}}}}
		for _, id := range []string{"m-0", "m-1", "m-2"} {
			w.finds = append(w.finds, find{account: "a", in: provider.Instance{ID: id, UID: "uid-1"}, foreign: foreign})
		}
		if held, why := w.held(); (len(held) > 0) == foreign {
			t.Errorf("foreign %v: held %v: %s", foreign, held, why)
		}
	}
}

// A Node tells by the name of its Machine of an instance only where its own is in no list: beside that the other is a twin (R-S1).
func TestNodeOfAnotherInstanceKeepsNoTwin(t *testing.T) {
	t.Parallel()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0", Annotations: map[string]string{machine.AnnotationMachine: machine.Namespace + "/worker-0"}}}
	n.Spec.ProviderID = "memory:///i-1"
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	twin := find{account: "a", in: provider.Instance{ID: "i-2", ProviderID: "memory:///i-2", Name: "worker-0"}}
	for _, shown := range []bool{true, false} {
		w := sweep{Snapshot: snapshot.Snapshot{Nodes: []*corev1.Node{n}}, known: map[string]machine.SweptAccount{"a": {Namespace: machine.Namespace}}}
		w.owners.listed = map[machine.InstanceID]bool{machine.InstanceOf(n.Spec.ProviderID): shown}
		if kept := w.readyNode(twin) != ""; kept == shown {
			t.Errorf("the Node's own instance is shown %v: the other is kept %v", shown, kept)
		}
		twin := find{account: "a", in: provider.Instance{ID: "i-2", ProviderID: "memory:///i-2", Name: "worker-1"}}
		if w.readyNode(twin) != "" {
			t.Errorf("the Node's own instance is shown %v: another Machine's is kept", shown)
		}
	}
}

// A Node may be an instance's of any account: the account that takes longest to show what it has says how long that is waited for (R-S2).
func TestNodesWaitForTheLongestHorizon(t *testing.T) {
	t.Parallel()
	w := sweep{Snapshot: snapshot.Snapshot{Accounts: map[string]snapshot.Account{"a": {Horizon: time.Minute}, "b": {Horizon: time.Hour}, "c": {Horizon: time.Second}}}}
	for range 20 { // of a map, in any order
		if got := w.horizon(); got != time.Hour {
			t.Fatalf("%v, want an hour", got)
		}
	}
}

// An empty account that leads to where nobody can look into any more is not forgotten before that is (RELIABILITY 2b.10).
func TestAccountThatLeadsToAnotherIsRemembered(t *testing.T) {
	t.Parallel()
	empty := metav1.NewTime(now.Add(-time.Hour))
	for needs, want := range map[string]bool{"cloud": true, "": false} {
		before := machine.SweptAccount{Namespace: machine.Namespace, EmptySince: &empty}
		w := sweep{Snapshot: snapshot.Snapshot{Now: now, Accounts: map[string]snapshot.Account{"cloud": {Horizon: time.Minute}}}}
		w.known = map[string]machine.SweptAccount{"cloud": before, "before": {Namespace: machine.Namespace, Of: needs}}
		if _, got := w.accounts()["cloud"]; got != want {
			t.Errorf("another that led to %q: remembered %v, want %v", needs, got, want)
		}
	}
}

// What goes beside an instance of the same tag goes by its own id: a cloud that is told the tag removes that one too, though a Node runs on it.
func TestWhatRunsIsNotNamedByItsTag(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Load("testdata/left-beside-what-runs.txtar")
	if err != nil {
		t.Fatal(err)
	}
	seen, _, err := scenario.Observe(Function, s)
	if err != nil {
		t.Fatal(err)
	}
	gone := 0
	for _, a := range Decide(seen).Actions() {
		if d, is := a.(plan.DeleteInstance); is {
			if gone++; d.Ref.UID != "" {
				t.Errorf("%s is removed by the tag %s", d.Ref.ID, d.Ref.UID)
			}
		}
	}
	if gone != 2 {
		t.Errorf("%d removals, want 2", gone)
	}
}

// A Machine is where the credentials led to before if its attempt was made with them, and its record says so (RELIABILITY 2b.10).
func TestMachineIsWithinAFormerAccount(t *testing.T) {
	t.Parallel()
	const east, west = "Kind/east/ns/c", "Kind/west/ns/c"
	for name, c := range map[string]struct {
		intent, owner string
		want          bool
	}{
		"made there":                          {machine.NewIntent(&machine.Machine{}, 1, west, nil).String(), "a", true},
		"made elsewhere by these":             {machine.NewIntent(&machine.Machine{}, 1, west, nil).String(), "b", false},
		"in another region of the same":       {machine.NewIntent(&machine.Machine{}, 1, east, nil).String(), "a", false},
		"with an intent that nobody can read": {`{"schema":9}`, "a", true},
		"made while nobody told where":        {machine.NewIntent(&machine.Machine{}, 1, west, nil).String(), "", true},
		"never made":                          {"", "", false},
	} {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker-0", Namespace: machine.Namespace, UID: "uid-0"}}
		if m.Annotations = map[string]string{machine.AnnotationIntent: c.intent, machine.AnnotationCloudAccount: c.owner}; c.intent == "" {
			m.Annotations = nil
		}
		if got := within(snapshot.Snapshot{Machines: []*machine.Machine{m}}, west, machine.SweptAccount{ClusterID: "abi", Owner: "a"}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Nobody is asked for an account that its credentials do not lead to any more, nor told that it does not answer (RELIABILITY 2b.10).
func TestFormerAccountIsNotAskedFor(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Load("testdata/former-account-stays-on-record.txtar")
	if err != nil {
		t.Fatal(err)
	}
	seen, _, err := scenario.Observe(Function, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range reads(seen).Accounts {
		if q.Key != "kubemark" {
			t.Errorf("%s is asked for", q.Key)
		}
	}
}

// A providerSpec that is no JSON would make the whole state unwritable, with all that it remembers.
func TestSpecThatIsNoJSONIsNotRemembered(t *testing.T) {
	t.Parallel()
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker-0", Namespace: machine.Namespace, UID: "uid-0"}}
	m.Annotations = map[string]string{machine.AnnotationIntent: machine.NewIntent(m, 1, "cloud", nil).String()}
	m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{"kind"`)}
	s := snapshot.Snapshot{Now: now, Machines: []*machine.Machine{m}}.Answered(stateQuery)
	for _, a := range Decide(s).Actions() {
		if c, is := a.(plan.Create); is && c.Object.(*corev1.ConfigMap).Data[machine.SweepKey] == "" {
			t.Error("the state is written empty")
		}
	}
}

// Of many instances that Nodes run on, and of many Machines whose cloud proves nothing, a few are told of by name (RELIABILITY 2g).
func TestFewAreToldOf(t *testing.T) {
	t.Parallel()
	s := lost(60)
	s.Now = s.Now.Truncate(time.Hour)
	s.ConfigMaps[0].Annotations = map[string]string{annotationConfirmed: s.Now.Format(time.RFC3339)}
	for _, n := range s.Nodes {
		n.Status.Conditions[0].Status = corev1.ConditionTrue
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m-" + n.Name, Namespace: machine.Namespace, UID: "m-" + n.UID}}
		m.Annotations = map[string]string{machine.AnnotationIntent: machine.NewIntent(m, 1, "a", nil).String()}
		s.Machines = append(s.Machines, m)
	}
	a := s.Accounts["a"]
	a.Insecure = "verify is false"
	s.Accounts["a"] = a
	told := map[string]int{}
	for _, n := range Decide(s).Notes {
		told[n.Reason]++
	}
	if told["SweepHeld"] != maxTold+1 || told["InsecureTLS"] != maxTold {
		t.Errorf("told of %v", told)
	}
}

// What carries the tag that a Machine took over has the tokens of whoever made that: none of them is of a former attempt of its own (RELIABILITY 2b.10).
func TestTokensOfWhoWasTakenOverAreNotFormer(t *testing.T) {
	t.Parallel()
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker-0", Namespace: machine.Namespace, UID: "heir"}}
	i := (*machine.Intent)(nil).Adopted(m, "a", "i-1", "gone", now)
	m.Annotations = map[string]string{machine.AnnotationIntent: i.String()}
	o := ownersIn(snapshot.Snapshot{Machines: []*machine.Machine{m}})
	if why := o.owns("a", provider.Instance{ID: "port", UID: "gone", Child: true, Token: machine.Token("gone", 1, "a")}); why != "" {
		t.Errorf("it has no owner: %s", why)
	}
	if why := o.owns("a", provider.Instance{ID: "port", UID: "heir", Child: true, Token: machine.Token("heir", 2, "a")}); why == "" {
		t.Error("what another attempt of its own left is kept")
	}
}

// Whose intent nobody can read may go on with what carries the tag that it took over: that is reported, and stays, unless its instance is shown with
// the Machine's own UID (RELIABILITY 2b.10, G9).
func TestTagThatNobodyCanReadMayBeTakenOver(t *testing.T) {
	t.Parallel()
	port := provider.Instance{ID: "port", UID: "gone", Child: true}
	for name, c := range map[string]struct {
		intent, records string
		tag             types.UID
		stays           bool
	}{
		"another's tag is shown": {`{"schema":9}`, "memory:///i-1", "gone", true},
		"no tag is shown":        {`{"schema":9}`, "memory:///i-1", "", true},
		"it is not shown":        {`{"schema":9}`, "memory:///i-2", "heir", true},
		"none is on record":      {`{"schema":9}`, "", "heir", true},
		"the intent is spoilt":   {`{"schema"`, "", "heir", true},
		"its own tag is shown":   {`{"schema":9}`, "memory:///i-1", "heir", false},
	} {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker-0", Namespace: machine.Namespace, UID: "heir"}}
		m.Annotations = map[string]string{machine.AnnotationIntent: c.intent}
		if c.records != "" {
			m.Spec.ProviderID = &c.records
		}
		s := snapshot.Snapshot{Machines: []*machine.Machine{m}, Records: machine.NewRecords(), Accounts: map[string]snapshot.Account{
			"a": {Instances: []provider.Instance{{ID: "i-1", ProviderID: "memory:///i-1", UID: c.tag}, port}},
		}}
		for _, f := range findsIn(s, ownersIn(s)) {
			if f.in.ID == port.ID && f.foreign != c.stays {
				t.Errorf("%s: the port is only reported %v, want %v: %s", name, f.foreign, c.stays, f.why)
			}
		}
	}
}
