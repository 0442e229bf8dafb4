// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A new Machine is complete from the first moment: name, finalizer, owner, ordinal, the template's labels, annotations
// and spec (S15, S17, B40). Plans show only its name.
func TestNewMachineIsComplete(t *testing.T) {
	t.Parallel()
	set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "worker", Namespace: machine.Namespace, UID: "set-1"}}
	set.Spec.Template.Labels = map[string]string{machine.LabelMachineSet: "worker"}
	set.Spec.Template.Annotations = map[string]string{machine.AnnotationDrainTimeout: "10m"}
	set.Spec.Template.Spec.Labels = map[string]string{"node-role.kubernetes.io/general-use": ""}
	set.Spec.Template.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{"kind":"x"}`)}
	set.Spec.Template.Spec.ProviderID = new("kubemark://abi/i-1")
	m := newMachine(set, machine.NewLedger("set-1"), 7)

	if m.Name != machine.Name("worker", "set-1", 7) || m.Namespace != machine.Namespace || len(m.Name) != len("worker-12345") {
		t.Errorf("it is called %s/%s", m.Namespace, m.Name)
	}
	if !slices.Equal(m.Finalizers, []string{machine.Finalizer}) {
		t.Errorf("finalizers %v", m.Finalizers)
	}
	owner := metav1.OwnerReference{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet", Name: "worker", UID: "set-1"}
	if len(m.OwnerReferences) != 1 {
		t.Fatalf("owners %v", m.OwnerReferences)
	}
	got := m.OwnerReferences[0]
	if got.Controller == nil || !*got.Controller || got.BlockOwnerDeletion == nil || !*got.BlockOwnerDeletion {
		t.Errorf("owner %v neither controls nor blocks", got)
	}
	if got.Controller, got.BlockOwnerDeletion = nil, nil; got != owner {
		t.Errorf("owner %v, want %v", got, owner)
	}
	if m.Labels[machine.LabelMachineSet] != "worker" || m.Labels[machine.LabelOrdinal] != "7" || m.Annotations[machine.AnnotationDrainTimeout] != "10m" {
		t.Errorf("labels %v annotations %v", m.Labels, m.Annotations)
	}
	if _, ok := m.Spec.Labels["node-role.kubernetes.io/general-use"]; !ok || string(m.Spec.ProviderSpec.Value.Raw) != `{"kind":"x"}` {
		t.Errorf("spec %v", m.Spec)
	}
	if m.Spec.ProviderID != nil {
		t.Errorf("it claims the instance %s of another Machine", *m.Spec.ProviderID)
	}
	if set.Spec.Template.Labels[machine.LabelOrdinal] != "" {
		t.Error("the template was written into")
	}
}

// madeAt returns a set with its Machine of an ordinal, and a ledger that allocated the first one and has retired it.
func madeAt(k int) (*machine.MachineSet, machine.Ledger, *machine.Machine) {
	set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "worker", Namespace: machine.Namespace, UID: "set-1"}}
	l := machine.NewLedger("set-1")
	l.Next = 1
	return set, l, newMachine(set, l, k)
}

// A Machine that is retired goes only as it was seen: whoever changed it meanwhile is looked at first (2a.4). Plans do not
// show the condition.
func TestRetiredMachineGoesOnlyUnchanged(t *testing.T) {
	t.Parallel()
	set, l, x := madeAt(0)
	all := execute(snapshot.Snapshot{}, set, l, members{owned: []*machine.Machine{x}})
	if len(all) != 1 || len(all[0].Do) != 1 {
		t.Fatalf("plan %v", all)
	}
	if d, ok := all[0].Do[0].(plan.Delete); !ok || d.Object != plan.Object(x) || !d.IfUnchanged {
		t.Errorf("got %#v", all[0].Do[0])
	}
}

// Of an ordinal that this ledger has not come to yet it says nothing: who is there was made by a later one (2a.4).
func TestOrdinalAheadOfTheLedgerIsNotRetired(t *testing.T) {
	t.Parallel()
	set, l, x := madeAt(1)
	if all := execute(snapshot.Snapshot{}, set, l, members{owned: []*machine.Machine{x}}); len(all) != 0 {
		t.Errorf("plan %v", all)
	}
}

// Who is adopted stands in the committed ledger first: a Machine that it does not name, or has retired, is left alone (2a.6).
func TestOrphanOutsideTheLedgerIsNotAdopted(t *testing.T) {
	t.Parallel()
	set, l, x := madeAt(0)
	x.OwnerReferences = nil
	stranger := x.DeepCopy()
	stranger.Name = "stranger"
	if all := execute(snapshot.Snapshot{}, set, l, members{orphans: []*machine.Machine{x, stranger}}); len(all) > 0 {
		t.Errorf("plan %v", all)
	}
	l.Active = machine.Ordinals{0}
	all := execute(snapshot.Snapshot{}, set, l, members{orphans: []*machine.Machine{x, stranger}})
	if len(all) == 0 || len(all[0].Do) != 1 {
		t.Fatalf("plan %v", all)
	}
	if u, ok := all[0].Do[0].(plan.Update); !ok || u.Old != plan.Object(x) {
		t.Errorf("got %#v", all[0].Do[0])
	}
}

// A template may say nothing of a cluster, as in OpenShift: its Machines get the Infrastructure's name, by which their instances are
// tagged (SPEC S79, S91). What it says stands.
func TestMachinesNameTheirCluster(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name           string
		template       map[string]string
		infrastructure string
		want           map[string]string
	}{
		{"nothing", nil, "abi-sb5b6", map[string]string{machine.LabelCluster: "abi-sb5b6"}},
		{"another name", map[string]string{machine.LabelCluster: "abi"}, "abi-sb5b6", map[string]string{machine.LabelCluster: "abi"}},
		{"an empty name", map[string]string{machine.LabelCluster: ""}, "abi-sb5b6", map[string]string{machine.LabelCluster: ""}},
		{"nothing, nor does anybody", nil, "", map[string]string{}},
	} {
		set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "worker", Namespace: machine.Namespace, UID: "set-1"}}
		set.Spec.Template.Labels = tt.template
		s := snapshot.Snapshot{MachineSets: []*machine.MachineSet{set}, Request: snapshot.Request{Kind: "MachineSet", Namespace: set.Namespace, Name: set.Name}}
		infrastructure := snapshot.One("Infrastructure", "", machine.InfrastructureName)
		if asks := slices.Contains(reads(s).Objects, infrastructure); asks != (tt.template == nil) {
			t.Errorf("%s: the Infrastructure is asked for: %v", tt.name, asks)
		}
		if tt.infrastructure != "" {
			i := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: machine.InfrastructureName}}
			i.Status.InfrastructureName = tt.infrastructure
			s.Infrastructures = append(s.Infrastructures, i)
		}
		l := machine.NewLedger("set-1")
		l.Active = machine.Ordinals{0}
		got := creations(s, set, l, members{})[0].Do[0].(plan.Create).Object.GetLabels() //nolint:forcetypeassert // it panics if not
		tt.want[machine.LabelOrdinal] = "0"
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if _, has := set.Spec.Template.Labels[machine.LabelOrdinal]; has {
			t.Errorf("%s: the set's own template was written", tt.name)
		}
	}
}
