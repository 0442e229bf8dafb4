// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"pgregory.net/rapid"
)

func internals(ips ...string) (all []corev1.NodeAddress) {
	for _, ip := range ips {
		all = append(all, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	return all
}

func at(name, id string, ips ...string) *Machine {
	m := &Machine{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	if id != "" {
		m.Spec.ProviderID = &id
	}
	m.Status.Addresses = internals(ips...)
	return m
}

func joined(name, id string, ready bool, ips ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: corev1.NodeSpec{ProviderID: id}}
	n.Status.Addresses = internals(ips...)
	if ready {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
	return n
}

func linkedTo(m *Machine, node string) *Machine {
	m.Status.NodeRef = &corev1.ObjectReference{Name: node, UID: types.UID(node)}
	return m
}

// formerly makes m one that was linked to a Node of this name, of which the object is gone.
func formerly(m *Machine, node string) *Machine {
	m.Status.NodeRef = &corev1.ObjectReference{Name: node, UID: "former"}
	return m
}

func host(m *Machine, name string) *Machine {
	m.Status.Addresses = append(m.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: name})
	return m
}

func deleted(m *Machine) *Machine {
	m.DeletionTimestamp = &metav1.Time{}
	return m
}

// lost makes m one whose instance was given up, missing since a second before any Node was created.
func lost(m *Machine) *Machine {
	m.Status.Phase, m.Status.ErrorMessage = new(PhaseFailed), new("can't find created instance")
	m.Status.Conditions = []Condition{{
		Type: ConditionInstanceExists, Status: corev1.ConditionFalse, Reason: machinev1beta1.InstanceMissingReason,
		LastTransitionTime: metav1.NewTime(time.Time{}.Add(-time.Second)),
	}}
	return m
}

// TestWhoseNode asks about the first Machine: which Node is it that nobody doubts, and which has to be drained if it goes.
func TestWhoseNode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		machines   []*Machine
		nodes      []*corev1.Node
		only, goes string
	}{
		{"nothing known of either", []*Machine{at("a", "")}, []*corev1.Node{joined("n", "", true)}, "", ""},
		{"same instance", []*Machine{at("a", "x")}, []*corev1.Node{joined("n", "x", true)}, "n", "n"},
		{"another instance at its address", []*Machine{at("a", "x", "1")}, []*corev1.Node{joined("n", "y", true, "1")}, "", ""},
		{"the node's first address", []*Machine{at("a", "x", "1", "2")}, []*corev1.Node{joined("n", "", true, "2")}, "n", "n"},
		{"the machine's first address", []*Machine{at("a", "", "1")}, []*corev1.Node{joined("n", "y", true, "2", "1")}, "n", "n"},
		{"neither's first address", []*Machine{at("a", "", "1", "2")}, []*corev1.Node{joined("n", "", true, "3", "2")}, "", ""},
		{"linked, and another at its address", []*Machine{linkedTo(at("a", "", "1"), "n")}, []*corev1.Node{joined("m", "", true, "1"), joined("n", "", false)}, "n", "n"},
		{"linked to one that is gone", []*Machine{linkedTo(at("a", "x"), "n")}, []*corev1.Node{joined("m", "x", true)}, "m", "m"},
		{"linked to another machine", []*Machine{at("a", "x"), linkedTo(at("b", "x"), "n")}, []*corev1.Node{joined("n", "x", true)}, "", ""},
		{"fits another better", []*Machine{at("a", "", "1"), at("b", "x")}, []*corev1.Node{joined("n", "x", true, "1")}, "", ""},
		{"fits another as well", []*Machine{at("a", "", "1"), at("b", "", "1")}, []*corev1.Node{joined("n", "", true, "1")}, "", ""},
		{"stands back behind one that lives", []*Machine{deleted(at("a", "", "1")), at("b", "", "1")}, []*corev1.Node{joined("n", "", true, "1")}, "", ""},
		{"before one that goes", []*Machine{at("a", "", "1"), deleted(at("b", "", "1"))}, []*corev1.Node{joined("n", "", true, "1")}, "n", "n"},
		{"lost its instance before the node came", []*Machine{lost(at("a", "", "1"))}, []*corev1.Node{joined("n", "", true, "1")}, "", ""},
		{"deleted since then", []*Machine{deleted(lost(at("a", "", "1")))}, []*corev1.Node{joined("n", "", true, "1")}, "", ""},
		{"before one that lost its instance", []*Machine{deleted(at("a", "", "1")), lost(at("b", "", "1"))}, []*corev1.Node{joined("n", "", true, "1")}, "n", "n"},
		{"lost its instance, linked under this name", []*Machine{lost(linkedTo(at("a", "", "1"), "n"))}, []*corev1.Node{joined("n", "", true, "1")}, "n", "n"},
		{"lost its instance, and the node says it is of that", []*Machine{lost(at("a", "x", "1"))}, []*corev1.Node{joined("n", "x", true, "1")}, "n", "n"},
		{"another that records it gave it up", []*Machine{at("a", "x"), lost(at("b", "x"))}, []*corev1.Node{joined("n", "x", true)}, "n", "n"},
		{"gave it up, and another records it", []*Machine{lost(at("a", "x")), at("b", "x")}, []*corev1.Node{joined("n", "x", true)}, "", ""},
		{"gave it up, and another that goes records it", []*Machine{lost(at("a", "x")), deleted(at("b", "x"))}, []*corev1.Node{joined("n", "x", true)}, "", ""},
		{"both gave it up", []*Machine{lost(at("a", "x")), lost(at("b", "x"))}, []*corev1.Node{joined("n", "x", true)}, "", ""},
		{"both go", []*Machine{deleted(at("a", "", "1")), deleted(at("b", "", "1"))}, []*corev1.Node{joined("n", "", true, "1")}, "", "n"},
		{"its address, and another's former name", []*Machine{at("a", "", "1"), formerly(at("b", "", "2"), "n")}, []*corev1.Node{joined("n", "", true, "1")}, "", ""},
		{"its address and former name, another's former name", []*Machine{formerly(at("a", "", "1"), "n"), formerly(at("b", "", "2"), "n")}, []*corev1.Node{joined("n", "", true, "1")}, "n", "n"},
		{"its address, and another's instance's name", []*Machine{at("a", "", "1"), host(at("b", "", "2"), "n")}, []*corev1.Node{joined("n", "", true, "1")}, "", ""},
		{"its address, and the name of one that has another node", []*Machine{at("a", "", "1"), formerly(host(at("b", "", "2"), "n"), "m")}, []*corev1.Node{joined("n", "", true, "1")}, "n", "n"},
		{"its address, and the name of one that lost its instance", []*Machine{at("a", "", "1"), lost(formerly(at("b", "", "2"), "n"))}, []*corev1.Node{joined("n", "", true, "1")}, "n", "n"},
		{"its address, and the name of one that goes", []*Machine{at("a", "", "1"), deleted(formerly(at("b", "", "2"), "n"))}, []*corev1.Node{joined("n", "", true, "1")}, "", ""},
		{"its address, and the name of one that goes and has it as well", []*Machine{at("a", "", "1"), deleted(formerly(at("b", "", "1"), "n"))}, []*corev1.Node{joined("n", "", true, "1")}, "", ""},
		{"goes, of its name, and another that goes", []*Machine{deleted(formerly(at("a", "", "1"), "n")), deleted(at("b", "", "1"))}, []*corev1.Node{joined("n", "", true, "1")}, "", "n"},
		{"goes, and another's former name is its address's", []*Machine{deleted(at("a", "", "1")), formerly(at("b", "", "2"), "n")}, []*corev1.Node{joined("n", "", true, "1")}, "", ""},
		{"its former name, and another's address", []*Machine{formerly(at("a", "", "1"), "n"), at("b", "", "2")}, []*corev1.Node{joined("n", "", true, "2")}, "", ""},
		{"its instance, and another's former name", []*Machine{at("a", "x", "1"), formerly(at("b", "", "2"), "n")}, []*corev1.Node{joined("n", "x", true, "1")}, "n", "n"},
		{"its address, and the name of a machine whose cloud tells another", []*Machine{at("a", "", "1"), host(at("n", "", "2"), "localhost")}, []*corev1.Node{joined("n", "", true, "1")}, "n", "n"},
		{"two nodes, one ready", []*Machine{at("a", "", "1")}, []*corev1.Node{joined("m", "", false, "1"), joined("n", "", true, "1")}, "", "n"},
		{"two nodes, one of the instance", []*Machine{at("a", "x", "1")}, []*corev1.Node{joined("m", "", true, "1"), joined("n", "x", false)}, "", "n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := c.machines[0]
			only := CandidatesOf(c.machines, c.nodes)[a].Only()
			goes, best := FittingNode(a, c.nodes, c.machines), CandidatesOf(c.machines, c.nodes)[a].Best
			if i := slices.IndexFunc(c.nodes, func(n *corev1.Node) bool { return IsNodeOf(a, n) }); i >= 0 {
				goes = c.nodes[i]
			}
			if nameOf(only) != c.only || nameOf(goes) != c.goes || best != goes {
				t.Errorf("undoubted %q, want %q; drained %q, want %q; best of all at once %q", nameOf(only), c.only, nameOf(goes), c.goes, nameOf(best))
			}
		})
	}
}

func nameOf(n *corev1.Node) string {
	if n == nil {
		return ""
	}
	return n.Name
}

// What link-node would link is what the others take for a Machine's Node, and they take no other (B62, B63).
func TestOneRuleForEverybody(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
		var machines []*Machine
		var nodes []*corev1.Node
		for _, name := range []string{"a", "b", "c"} {
			machines = append(machines, at(name, pick("id", "", "x", "y"), pick("ip", "1", "2", "3"), pick("ip", "1", "2", "3")))
			nodes = append(nodes, joined("n"+name, pick("id", "", "x", "y"), rapid.Bool().Draw(t, "ready"), pick("ip", "1", "2", "3"), pick("ip", "1", "2", "3")))
		}
		ix := IndexOf(machines)
		fits, found := ix.NodesOf(nodes), CandidatesOf(machines, nodes)
		for _, m := range machines {
			var linked *corev1.Node
			if len(fits[m]) == 1 && len(ix.Of(fits[m][0])) == 1 {
				linked = fits[m][0]
			}
			if got := found[m].Only(); got != linked {
				t.Fatalf("%s: %q is taken for its node, %q would be linked", m.Name, nameOf(got), nameOf(linked))
			}
			if got := FittingNode(m, nodes, machines); linked != nil && got != linked {
				t.Fatalf("%s: %q would be drained, %q would be linked", m.Name, nameOf(got), nameOf(linked))
			}
			if len(found[m].Nodes) != len(fits[m]) {
				t.Fatalf("%s: %d nodes may be its, %d fit", m.Name, len(found[m].Nodes), len(fits[m]))
			}
		}
	})
}

// Looked for at once with all others, a Machine has the same Node as alone, also beside Machines that go, or are linked.
func TestAllAtOnceAsOneByOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
		var machines []*Machine
		var nodes []*corev1.Node
		for _, name := range []string{"a", "b", "c"} {
			m := at(name, pick("id", "", "x", "y"), pick("ip", "1", "2", "3"), pick("ip", "1", "2", "3"))
			if node := pick("linked to", "", "", "na", "gone"); node != "" {
				linkedTo(m, node)
			} else if node := pick("was linked to", "", "na", "nb"); node != "" {
				formerly(m, node)
			}
			if rapid.Bool().Draw(t, "lost") {
				lost(m)
			}
			if rapid.Bool().Draw(t, "deleted") {
				deleted(m)
			}
			machines = append(machines, m)
			nodes = append(nodes, joined("n"+name, pick("id", "", "x", "y"), rapid.Bool().Draw(t, "ready"), pick("ip", "1", "2", "3"), pick("ip", "1", "2", "3")))
		}
		found := CandidatesOf(machines, nodes)
		for _, m := range machines {
			alone := FittingNode(m, nodes, machines)
			if IsNodeOf(m, nodes[0]) {
				alone = nodes[0]
			}
			if got := found[m].Best; got != alone {
				t.Fatalf("%s: %q at once, %q alone", m.Name, nameOf(got), nameOf(alone))
			}
		}
	})
}

// A kubelet says what addresses it has: one that says those of all is not held against every Machine.
func TestFirstAddressesOfANodeSpeak(t *testing.T) {
	t.Parallel()
	var all []*Machine
	var ips []string
	for i := range 2 * mostAddresses {
		ip := fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)
		ips = append(ips, ip)
		all = append(all, at(fmt.Sprintf("m-%d", i), "", ip))
	}
	n := joined("greedy", "", true, append([]string{"10.9.9.9"}, ips...)...)
	if found := IndexOf(all).Of(n); len(found) != mostAddresses-1 {
		t.Errorf("it fits %d machines, of which it said the addresses first, want %d", len(found), mostAddresses-1)
	}
	for i, m := range all {
		if want := i < mostAddresses-1; Fits(m, n) != want {
			t.Fatalf("machine %d fits: %v, want %v", i, !want, want)
		}
	}
}
