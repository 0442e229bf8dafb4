// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// An API server refuses a status whose labelSelector is longer than 4096 characters (SPEC B35), and with it the counts. A selector that
// is longer in text is left out; the longest that fits stands there.
func TestSelectorsThatAreTooLongAreLeftOut(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Load("testdata/status-leaves-zero-blank.txtar")
	if err != nil {
		t.Fatal(err)
	}
	seen, _, err := scenario.Observe(Function, s)
	if err != nil || len(seen.MachineSets) != 1 {
		t.Fatalf("%d sets, error %v", len(seen.MachineSets), err)
	}
	told := func(length int) (string, bool) {
		world, set := seen.Clone(), seen.MachineSets[0].DeepCopy()
		zones := metav1.LabelSelectorRequirement{Key: "zone", Operator: metav1.LabelSelectorOpNotIn}
		set.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{zones}
		text := func(last string) string {
			set.Spec.Selector.MatchExpressions[0].Values = append(zones.Values[:len(zones.Values):len(zones.Values)], last)
			return metav1.FormatLabelSelector(&set.Spec.Selector)
		}
		for len(text("a")) < length-60 {
			zones.Values = append(zones.Values, fmt.Sprintf("%050d", len(zones.Values)))
		}
		if n := len(text(strings.Repeat("a", 1+length-len(text("a"))))); n != length {
			t.Fatalf("a selector of %d characters, want %d", n, length)
		}
		set.Status = machine.MachineSet{}.Status
		world.MachineSets = []*machine.MachineSet{set}
		for _, a := range Decide(world).Actions() {
			if u, is := a.(plan.UpdateStatus); is {
				next, _ := u.New.(*machine.MachineSet)
				return next.Status.LabelSelector, next.Status.ObservedGeneration == set.Generation
			}
		}
		return "", false
	}
	if text, counted := told(4096); len(text) != 4096 || !counted {
		t.Errorf("of the longest selector %d characters are told, counts: %v", len(text), counted)
	}
	if text, counted := told(4097); text != "" || !counted {
		t.Errorf("of a selector that is too long %d characters are told, counts: %v", len(text), counted)
	}
}

// What is wrong with a set is told in short: it quotes what somebody wrote, and a status that says that twice has no room in an object.
func TestWhatIsWrongWithASetIsToldInShort(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*machine.MachineSet){
		"an instance's id": func(set *machine.MachineSet) { set.Spec.Template.Spec.ProviderID = new(strings.Repeat("p", 900_000)) },
		"a label for its Nodes": func(set *machine.MachineSet) {
			set.Spec.Template.Spec.Labels = map[string]string{"a": strings.Repeat("ü", 400_000)}
		},
		"labels that do not match": func(set *machine.MachineSet) {
			set.Spec.Template.Labels = map[string]string{"a": strings.Repeat("v", 900_000)}
		},
		"a selector that is not known": func(set *machine.MachineSet) {
			set.Spec.Selector.MatchLabels = map[string]string{strings.Repeat("k", 900_000): ""}
		},
	} {
		s, _, err := scenario.Load("testdata/status-leaves-zero-blank.txtar")
		if err != nil {
			t.Fatal(err)
		}
		seen, _, err := scenario.Observe(Function, s)
		if err != nil {
			t.Fatal(err)
		}
		set := seen.MachineSets[0].DeepCopy()
		change(set)
		seen.MachineSets = []*machine.MachineSet{set}
		told := ""
		for _, a := range Decide(seen).Actions() {
			if u, is := a.(plan.UpdateStatus); is {
				if next, _ := u.New.(*machine.MachineSet); next.Status.ErrorMessage != nil {
					told = *next.Status.ErrorMessage
				}
			}
		}
		if told == "" || len(told) > 4096 || !strings.HasPrefix(told, "spec.") || !utf8.ValidString(told) {
			t.Errorf("%s: %d bytes: %.100s", name, len(told), told)
		}
	}
}
