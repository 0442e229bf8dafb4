// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// at is when all of this is decided.
var at = time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC)

// workers is a set that wants so many Machines.
func workers(replicas int32) *machine.MachineSet {
	set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "worker", Namespace: machine.Namespace, UID: "set-1"}}
	set.Spec.Replicas = &replicas
	return set
}

// worker is a Machine of the set, of any name.
func worker(set *machine.MachineSet, name string) *machine.Machine {
	return &machine.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: set.Namespace, UID: types.UID("uid-of-" + name), Labels: map[string]string{"app": "worker"},
		Finalizers: []string{machine.Finalizer}, CreationTimestamp: metav1.NewTime(at.Add(-time.Hour)),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet", Name: set.Name, UID: set.UID, Controller: new(true)}},
	}}
}

// member is the Machine of an ordinal.
func member(set *machine.MachineSet, k int) *machine.Machine {
	m := worker(set, machine.Name(set.Name, set.UID, k))
	m.Labels[machine.LabelOrdinal] = strconv.Itoa(k)
	return m
}

func membersOf(set *machine.MachineSet, all ...*machine.Machine) members {
	return herdOf(snapshot.Snapshot{Machines: all}).membersOf(set, labels.SelectorFromSet(labels.Set{"app": "worker"}))
}

func ledgerOf(set *machine.MachineSet, n int) machine.Ledger {
	l := machine.NewLedger(set.UID)
	for ; l.Next < n; l.Next++ {
		l.Active = append(l.Active, l.Next)
	}
	return l
}

// A number of replicas that no set can have lets nobody go, also where the set gets a Machine that somebody else made for it (R-S4).
func TestNobodyGoesForWhatNoSetCanHave(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int32{-1, maxReplicas + 1} {
		set := workers(replicas)
		m := membersOf(set, member(set, 0), member(set, 1), worker(set, "made-by-somebody"))
		if c := decide(snapshot.Snapshot{Now: at}, set, ledgerOf(set, 2), m); len(c.ledger.Active) != 3 {
			t.Errorf("%d replicas: %v stay of three: %s", replicas, c.ledger.Active, c.why)
		}
		if want := wanted(set, ledgerOf(set, 2)); want != 2 {
			t.Errorf("%d replicas: %d are wanted of two", replicas, want)
		}
	}
}

// A set that has more Machines than its ledger has room for lets none of them go: the policy decides among all (2a.6).
func TestNobodyGoesWhileOthersWaitForRoom(t *testing.T) {
	t.Parallel()
	set := workers(5)
	l, all := machine.NewLedger(set.UID), []*machine.Machine{worker(set, "one-too-many")}
	l.Adopted = map[int]machine.Member{}
	for k := range maxAdopted {
		m := worker(set, fmt.Sprintf("adopted-%04d", k))
		l.Adopted[k], l.Active, l.Next = machine.Member{Name: m.Name, UID: m.UID}, append(l.Active, k), k+1
		all = append(all, m)
	}
	if c := decide(snapshot.Snapshot{Now: at}, set, l, membersOf(set, all...)); len(c.ledger.Active) != maxAdopted {
		t.Errorf("%d of %d stay: %s", len(c.ledger.Active), maxAdopted, c.why)
	}
}

// Only what makes a set twice as large makes the next creation wait, and only where somebody is let go: not what another set has by now, nor
// what is going, nor a set that needs no other Machine (R-B23).
func TestWhoIsLetGoHoldsTheSetUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		replicas, now, before int
		change                func(*machine.Machine) // of those of before
		until                 *metav1.Time           // when the next may be created already
		held                  bool
	}{
		"most at once":       {replicas: 8, now: 5, held: true},
		"half":               {replicas: 10, now: 5},
		"few of a small set": {replicas: 4, now: 4},
		"most one by one":    {replicas: 8, now: 1, before: 4, held: true},
		"nobody now":         {replicas: 8, before: 6},
		"those of before are another's": {replicas: 8, now: 1, before: 6, change: func(m *machine.Machine) {
			m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: "other", UID: "other", Controller: new(true)}}
		}},
		"those of before are going":                {replicas: 8, now: 1, before: 6, change: func(m *machine.Machine) { m.DeletionTimestamp = new(metav1.NewTime(at)) }},
		"those of before are in another namespace": {replicas: 8, now: 1, before: 6, change: func(m *machine.Machine) { m.Namespace = "other" }},
		"those of before are nobody's":             {replicas: 8, now: 1, before: 6, change: func(m *machine.Machine) { m.Name = "own" }},
		"a pause is over":                          {replicas: 8, now: 5, until: new(metav1.NewTime(at)), held: true},
	} {
		set := workers(int32(c.replicas)) //nolint:gosec // a few
		l, all := ledgerOf(set, c.before+c.replicas), []*machine.Machine(nil)
		for k := range c.before + c.replicas {
			m := member(set, k)
			if k < c.before {
				m.OwnerReferences, m.Labels, l.Active = nil, nil, l.Active.Without(k)
				if c.change != nil {
					c.change(m)
				}
			} else if k < c.before+c.now {
				delete(m.Labels, "app")
			}
			all = append(all, m)
		}
		l.NextCreateAt = c.until
		next := decide(snapshot.Snapshot{Now: at}, set, l, membersOf(set, all...)).ledger
		held := next.NextCreateAt != nil && next.NextCreateAt.Equal(new(metav1.NewTime(at.Add(letGoPause))))
		if grown := len(next.Active) == c.replicas; held != c.held || grown == held {
			t.Errorf("%s: held up %v, %v stand then", name, held, next.Active)
		}
		if told := paused(at, set, next) != ""; told != c.held {
			t.Errorf("%s: it is told: %v", name, told)
		}
	}
	set, all := workers(2), []*machine.Machine(nil)
	for k := range 8 { // and scaled down with them
		if all = append(all, member(set, k)); k < 6 {
			delete(all[k].Labels, "app")
		}
	}
	if next := decide(snapshot.Snapshot{Now: at}, set, ledgerOf(set, 8), membersOf(set, all...)).ledger; next.NextCreateAt != nil || len(next.Active) != 2 {
		t.Errorf("a set that has what it wants waits until %v, with %v", next.NextCreateAt, next.Active)
	}
	pause := new(metav1.NewTime(at.Add(10 * time.Second)))
	l := ledgerOf(set, 8)
	l.NextCreateAt, set.Spec.Replicas = pause, new(int32(8))
	if next := decide(snapshot.Snapshot{Now: at}, set, l, membersOf(set, all...)).ledger; !next.NextCreateAt.Equal(pause) {
		t.Errorf("a pause that is begun lasts until %v", next.NextCreateAt)
	}
}

// A Machine that ran before it failed says nothing of the next: that is made at once (2a.8).
func TestMachineThatRanMakesNobodyWait(t *testing.T) {
	t.Parallel()
	set := workers(1)
	gone := member(set, 0)
	gone.DeletionTimestamp, gone.Status.ErrorMessage = new(metav1.NewTime(at)), new("can't find created instance")
	for _, ran := range []bool{false, true} {
		m := gone.DeepCopy()
		if ran {
			m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: "n", UID: "n"}
		}
		c := decide(snapshot.Snapshot{Now: at}, set, ledgerOf(set, 1), membersOf(set, m))
		if waits := c.ledger.NextCreateAt != nil; waits == ran || len(c.ledger.Active) > 0 == waits {
			t.Errorf("it ran %v, others wait %v: %s", ran, waits, c.ledger)
		}
	}
}

// A name that a Machine has, in whatever state, is no other ordinal's: one that goes would be taken for the one that is to come (2a.2).
func TestNamesThatAreTakenArePassedOver(t *testing.T) {
	t.Parallel()
	set := workers(2)
	namesake := worker(set, machine.Name(set.Name, set.UID, 1)) // by chance, of an ordinal long ago
	namesake.DeletionTimestamp = new(metav1.NewTime(at))
	c := decide(snapshot.Snapshot{Now: at}, set, ledgerOf(set, 1), membersOf(set, member(set, 0), namesake))
	if len(c.ledger.Active) != 2 || c.ledger.Active.Has(1) {
		t.Errorf("active are %v: %s", c.ledger.Active, c.why)
	}
}

// Two ordinals whose names are alike by chance are not both given out, also while neither has its Machine: one would count for both (2a.2).
func TestNamesThatAreAlikeAreGivenOnce(t *testing.T) {
	t.Parallel()
	set := workers(2)
	first, second, seen := 0, 0, map[string]int{}
	for k := 0; second == 0; k++ { // some six thousand
		name := machine.Name(set.Name, set.UID, k)
		if at, again := seen[name]; again {
			first, second = at, k
		}
		seen[name] = k
	}
	l := machine.NewLedger(set.UID)
	l.Active, l.Next = machine.Ordinals{first}, second
	if c := decide(snapshot.Snapshot{Now: at}, set, l, membersOf(set)); len(c.ledger.Active) != 2 || c.ledger.Active.Has(second) {
		t.Errorf("%d and %d have one name, active are %v", first, second, c.ledger.Active)
	}
	*set.Spec.Replicas, l.Active, l.Next = int32(second-first+1), nil, first
	if c := decide(snapshot.Snapshot{Now: at}, set, l, membersOf(set)); !c.ledger.Active.Has(first) || c.ledger.Active.Has(second) {
		t.Errorf("%d and %d have one name, and are given out together", first, second)
	}
}

// An orphan that is written down at its ordinal makes nobody forget who was adopted: his ordinal would get a Machine of its own, and one of
// them go (2a.6, R-S4).
func TestWhoIsWrittenDownForgetsNobody(t *testing.T) {
	t.Parallel()
	set := workers(2)
	adopted, orphan := worker(set, "made-by-somebody"), member(set, 1)
	orphan.OwnerReferences = nil
	l := ledgerOf(set, 2)
	l.Adopted = map[int]machine.Member{0: {Name: adopted.Name, UID: adopted.UID}}
	c := decide(snapshot.Snapshot{Now: at}, set, l, membersOf(set, adopted, orphan))
	if c.ledger.Adopted[0].UID != adopted.UID || c.ledger.Adopted[1].UID != orphan.UID || c.ledger.Next != 2 || len(l.Adopted) != 1 {
		t.Errorf("%s: %s; the snapshot's is %v", c.why, c.ledger, l.Adopted)
	}
}

// A ledger that is rebuilt gives no ordinal out again that any Machine has, whatever is to become of that (2a.7, R-S17).
func TestRebuiltLedgerGoesOnBehindEveryMachine(t *testing.T) {
	t.Parallel()
	set := workers(1)
	for name, change := range map[string]func(*machine.Machine){
		"stays":                    func(*machine.Machine) {},
		"goes":                     func(m *machine.Machine) { m.DeletionTimestamp = new(metav1.NewTime(at)) },
		"no longer matches":        func(m *machine.Machine) { m.Labels["app"] = "other" },
		"goes and matches nothing": func(m *machine.Machine) { m.Labels["app"], m.DeletionTimestamp = "other", new(metav1.NewTime(at)) },
		"is nobody's":              func(m *machine.Machine) { m.OwnerReferences = nil },
	} {
		last := member(set, 7)
		change(last)
		l := rebuild(snapshot.Snapshot{Now: at, Invocation: "me"}, set, membersOf(set, member(set, 0), last))
		if l.Next <= 7 {
			t.Errorf("one that %s at ordinal 7: the next is %d", name, l.Next)
		}
	}
	l := rebuild(snapshot.Snapshot{Now: at, Invocation: "me"}, set, membersOf(set, member(set, 0)))
	if _, err := machine.ParseLedger(l.String()); err != nil { // nobody could read it: it would be rebuilt for ever
		t.Errorf("of one Machine, at ordinal 0: %v", err)
	}
}

// Failures are over once a Machine that came after them has a Node: that there is one, and so far has none, is no reason to make the next
// sooner, nor that one from before them has a Node (2a.8, R-B27).
func TestFailuresAreForgivenToWhoRuns(t *testing.T) {
	t.Parallel()
	set := workers(2)
	l := ledgerOf(set, 1)
	l.Failures, l.NextCreateAt, l.FailedTemplate = 3, new(metav1.NewTime(at.Add(time.Minute))), machine.TemplateOf(set)
	for _, c := range []struct{ after, runs bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		m := member(set, 0)
		if c.after {
			m.CreationTimestamp = metav1.NewTime(lastFailure(l).Add(time.Second))
		}
		if c.runs {
			m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: "n", UID: "n"}
		}
		d := decide(snapshot.Snapshot{Now: at}, set, l, membersOf(set, m))
		if forgiven := d.ledger.Failures == 0; forgiven != (c.after && c.runs) || forgiven != (len(d.ledger.Active) == 2) {
			t.Errorf("%+v: %s", c, d.ledger)
		}
	}
}

// A pause that follows from no failure, as somebody wrote it there, is one all the same, and no fault of ours (R-L2).
func TestPauseWithoutFailures(t *testing.T) {
	t.Parallel()
	set := workers(1)
	m, l := member(set, 0), ledgerOf(set, 1)
	m.DeletionTimestamp, m.Status.ErrorMessage = new(metav1.NewTime(at)), new("no such image")
	l.NextCreateAt = new(metav1.NewTime(at.Add(time.Second)))
	if d := decide(snapshot.Snapshot{Now: at}, set, l, membersOf(set, m)); d.ledger.Failures != 1 || len(d.ledger.Active) > 0 {
		t.Errorf("%s: %s", d.why, d.ledger)
	}
}

// Who is adopted anew stands at the new ordinal alone: by the retired one it would go (2a.6).
func TestAdoptedAnewStandsAtOneOrdinal(t *testing.T) {
	t.Parallel()
	set := workers(1)
	m := worker(set, "adopted")
	m.OwnerReferences = nil // people have taken it from the set, which had let it go by then
	l := machine.NewLedger(set.UID)
	l.Next, l.Adopted = 4, map[int]machine.Member{3: {Name: m.Name, UID: m.UID}}
	d := decide(snapshot.Snapshot{Now: at}, set, l, membersOf(set, m))
	if len(d.ledger.Adopted) != 1 || d.ledger.Adopted[4].UID != m.UID || !d.ledger.Active.Has(4) {
		t.Errorf("%s: %s", d.why, d.ledger)
	}
}

// Who is let go for its labels is written down as that, whether the set made or adopted it, for as long as the set controls it: should they
// come back before its owner is taken off, it is adopted anew. One that was chosen to go goes, whatever became of its labels meanwhile (2a.6).
func TestWhoIsLetGoDoesNotGo(t *testing.T) {
	t.Parallel()
	const relabeled = "other"
	for name, c := range map[string]struct {
		adopted  bool
		replicas int32 // of the two that there are before
		stays    bool
	}{
		"made for its ordinal": {replicas: 2, stays: true},
		"adopted":              {adopted: true, replicas: 2, stays: true},
		"chosen":               {replicas: 1},
		"chosen and adopted":   {adopted: true, replicas: 1},
	} {
		set := workers(2)
		l, x, y := ledgerOf(set, 2), member(set, 0), member(set, 1)
		if c.adopted {
			x = worker(set, "adopted")
			l.Adopted = map[int]machine.Member{0: {Name: x.Name, UID: x.UID}}
		}
		x.Annotations = map[string]string{machine.AnnotationDelete: "yes"}
		label := func(to string) { x.Labels = map[string]string{"app": to} }
		next := func() { l = decide(snapshot.Snapshot{Now: at}, set, l, membersOf(set, x, y)).ledger }
		deleted := func() (all []string) {
			for _, seq := range execute(snapshot.Snapshot{Now: at}, set, l, membersOf(set, x, y)) {
				for _, a := range seq.Do {
					if d, is := a.(plan.Delete); is {
						all = append(all, d.Object.GetName())
					}
				}
			}
			return all
		}
		*set.Spec.Replicas = c.replicas
		if c.stays {
			label(relabeled)
		}
		next()
		label(relabeled)
		if got := deleted(); l.Active.Has(0) || len(got) > 0 {
			t.Errorf("%s: without its label %v are deleted by %s", name, got, l)
		}
		if *set.Spec.Replicas++; !c.stays {
			next() // for another reason the ledger is written meanwhile
		}
		label("worker")
		next()
		if got := deleted(); slices.Contains(got, x.Name) == c.stays || slices.Contains(got, y.Name) {
			t.Errorf("%s: once the label is back %v are deleted by %s", name, got, l)
		}
		if k, ok := l.OrdinalOf(set.Name, x); c.stays && (!ok || !l.Active.Has(k) || len(l.Adopted) != 1) {
			t.Errorf("%s: once the label is back the ledger is %s", name, l)
		}
	}
}

// A ledger that is rebuilt says what is there: whoever no longer matches is let go by the next commit, which writes that down (2a.6, 2a.7).
func TestRebuiltLedgerLetsNobodyGo(t *testing.T) {
	t.Parallel()
	set := workers(2)
	x, y := member(set, 0), member(set, 1)
	x.Labels["app"] = "other"
	l := rebuild(snapshot.Snapshot{Now: at}, set, membersOf(set, x, y))
	if !l.Active.Has(0) || !l.Active.Has(1) {
		t.Fatalf("rebuilt it is %s", l)
	}
	if l = decide(snapshot.Snapshot{Now: at}, set, l, membersOf(set, x, y)).ledger; l.Active.Has(0) || !l.Adopted[0].LetGo() {
		t.Errorf("the next is %s", l)
	}
}

// Once its owner is off it is forgotten that a Machine was let go.
func TestWhoIsFreeIsForgotten(t *testing.T) {
	t.Parallel()
	set := workers(3)
	x := member(set, 0)
	x.OwnerReferences, x.Labels = nil, nil
	l := ledgerOf(set, 2)
	l.Active, l.Adopted = machine.Ordinals{1}, map[int]machine.Member{0: {Name: x.Name}}
	if d := decide(snapshot.Snapshot{Now: at}, set, l, membersOf(set, x, member(set, 1))); len(d.ledger.Adopted) > 0 {
		t.Errorf("%s: %s", d.why, d.ledger)
	}
}

// Nobody is let go whom the ledger has no room for: he is once those before him are free (2a.6).
func TestNobodyIsLetGoBeforeThereIsRoom(t *testing.T) {
	t.Parallel()
	const n = maxAdopted + spareMembers + 5
	set := workers(n)
	l, all := ledgerOf(set, n), make([]*machine.Machine, n)
	for k := range all {
		all[k] = member(set, k)
		all[k].Labels["app"] = "other"
	}
	for _, left := range []int{5, 0} {
		l = decide(snapshot.Snapshot{Now: at}, set, l, membersOf(set, all...)).ledger
		if len(l.Active) != left {
			t.Fatalf("%d of %d stay, want %d", len(l.Active), n, left)
		}
		for _, seq := range execute(snapshot.Snapshot{Now: at}, set, l, membersOf(set, all...)) {
			for _, a := range seq.Do {
				u, is := a.(plan.Update)
				if !is {
					t.Fatalf("%s", a)
				}
				for k := range all {
					if all[k].Name == u.New.GetName() {
						all[k] = u.New.(*machine.Machine) //nolint:forcetypeassert // it is one
					}
				}
			}
		}
	}
	if free := membersOf(set, all...).released; len(free) > 0 {
		t.Errorf("%d are the set's still", len(free))
	}
}

// A set that adopted as many as its ledger can remember lets go whoever loses its labels all the same: people who take them off to look at a
// Machine get another one in its place (2a.6).
func TestFullLedgerLetsGo(t *testing.T) {
	t.Parallel()
	for name, long := range map[string]int{"many": 1, "long names": 252} {
		set := workers(0)
		l, all := ledgerOf(set, 1), []*machine.Machine{member(set, 0)}
		for k := range maxAdopted {
			x := member(set, k+1)
			x.Name, x.UID = fmt.Sprintf("a%0*d", long, k), types.UID(fmt.Sprintf("0c8a6b1e-2f43-4d75-8e96-%012d", k))
			all = append(all, x)
		}
		adopt(&l, all[1:])
		all = all[:1+len(l.Adopted)]
		set.Spec.Replicas = new(int32(len(all)))
		all[0].Labels["app"] = "other"
		c := decide(snapshot.Snapshot{Now: at}, set, l, membersOf(set, all...))
		if c.ledger.Active.Has(0) || !c.ledger.Adopted[0].LetGo() {
			t.Errorf("%s: it is kept beside %d: %s", name, len(all), c.why)
		}
		if size := len(c.ledger.String()); size > 220_000 {
			t.Errorf("%s: the ledger has %d bytes", name, size)
		}
	}
}

// Who may not be adopted is out of the set's hands: it is not the one who goes, whatever the policy says of it (2a.6).
func TestWhoMayNotBeAdoptedDoesNotGo(t *testing.T) {
	t.Parallel()
	set := workers(1)
	first, second, orphan := member(set, 0), member(set, 1), member(set, 2)
	first.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: "n0", UID: "n0"}
	second.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: "n1", UID: "n1"}
	orphan.OwnerReferences = nil // and without a Node the first to go
	l := ledgerOf(set, 3)
	l.Adopted = map[int]machine.Member{2: {Name: orphan.Name, UID: orphan.UID}}
	s := snapshot.Snapshot{Now: at, Outcomes: map[plan.Key]plan.Outcome{plan.Update{Old: orphan}.Key(): {Result: plan.Refused}}}
	if d := decide(s, set, l, membersOf(set, first, second, orphan)); len(d.ledger.Active) != 2 || !d.ledger.Active.Has(2) {
		t.Errorf("active are %v: %s", d.ledger.Active, d.why)
	}
}

// An orphan at a retired ordinal, whose adoption was refused, is none of those that are counted: it makes room for nobody (2a.6, R-S4).
func TestWhoStandsAtARetiredOrdinalIsNotCounted(t *testing.T) {
	t.Parallel()
	set := workers(1)
	orphan := member(set, 1)
	orphan.OwnerReferences = nil
	s := snapshot.Snapshot{Now: at, Outcomes: map[plan.Key]plan.Outcome{plan.Update{Old: orphan}.Key(): {Result: plan.Refused}}}
	l := ledgerOf(set, 2)
	m := membersOf(set, orphan)
	if got := outOfReach(s, set, l, m); !got.Has(1) || len(got) != 1 {
		t.Errorf("at an active ordinal: %v", got)
	}
	l.Active = machine.Ordinals{0}
	if got := outOfReach(s, set, l, m); len(got) != 0 {
		t.Errorf("at a retired one: %v", got)
	}
}
