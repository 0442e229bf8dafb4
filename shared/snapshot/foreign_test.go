// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/plan"
)

const (
	hostKind  plan.Kind = "BareMetalHost.v1alpha1.metal3.io"
	claimKind plan.Kind = "IPAddressClaim.v1beta1.ipam.cluster.x-k8s.io"
)

func foreignOf(kind, namespace, name, uid string) *unstructured.Unstructured {
	group, version := "metal3.io", "v1alpha1"
	if kind == "IPAddressClaim" {
		group, version = "ipam.cluster.x-k8s.io", "v1beta1"
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetUID(types.UID(uid))
	return o
}

// uidOf returns the UID of the foreign object that s has under this name, or "": what is not there was not there (R-S12).
func uidOf(s Snapshot, k plan.Kind, namespace, name string) types.UID {
	if o := s.ForeignObject(k, namespace, name); o != nil {
		return o.GetUID()
	}
	return ""
}

// Objects of all foreign kinds are in one list: each is found by its kind, namespace and name, and the newest of one is the one.
func TestForeignObjectIsOfItsKind(t *testing.T) {
	t.Parallel()
	var s Snapshot
	if !s.Add(foreignOf("IPAddressClaim", "a", "x", "claim"), foreignOf("BareMetalHost", "b", "x", "b"), foreignOf("BareMetalHost", "a", "x", "former"),
		foreignOf("BareMetalHost", "a", "x", "a")) {
		t.Error("they are of no known kind")
	}
	for uid, of := range map[types.UID]struct {
		kind            plan.Kind
		namespace, name string
	}{
		"claim": {claimKind, "a", "x"}, "a": {hostKind, "a", "x"}, "b": {hostKind, "b", "x"},
	} {
		if got := uidOf(s, of.kind, of.namespace, of.name); got != uid {
			t.Errorf("%s is %s", uid, got)
		}
	}
	if s.ForeignObject(hostKind, "a", "y") != nil || s.ForeignObject(claimKind, "b", "x") != nil || len(s.Foreign) != 3 {
		t.Errorf("%d are there, and others", len(s.Foreign))
	}
	if s.Add(foreignOf("IPAddressClaim/odd", "a", "x", "odd")) || len(s.Foreign) != 3 {
		t.Error("what is of no kind is held")
	}
}

// A kind that is read anew takes the place of what was known of it, and leaves the others, and the copy that others hold, alone.
func TestForeignKindIsReadAnewAlone(t *testing.T) {
	t.Parallel()
	first := func() Snapshot {
		var s Snapshot
		s.Add(foreignOf("BareMetalHost", "a", "x", "host"), foreignOf("BareMetalHost", "a", "z", "goes"), foreignOf("IPAddressClaim", "a", "x", "claim"),
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		return s
	}
	for name, read := range map[string]func(*Snapshot){
		"all of it": func(s *Snapshot) { s.Hold(All(hostKind), []plan.Object{foreignOf("BareMetalHost", "a", "x", "anew")}) },
		"one of a namespace": func(s *Snapshot) {
			s.Hold(Query{Kind: hostKind, Namespace: "a"}, []plan.Object{foreignOf("BareMetalHost", "a", "x", "anew")})
		},
		"one by one": func(s *Snapshot) {
			s.Drop(One(hostKind, "a", "z"))
			s.Add(foreignOf("BareMetalHost", "a", "x", "anew"))
		},
	} {
		s := first()
		c := s.Clone()
		read(&c)
		if uidOf(c, hostKind, "a", "x") != "anew" || uidOf(c, hostKind, "a", "z") != "" || uidOf(c, claimKind, "a", "x") != "claim" || c.Node("n") == nil {
			t.Errorf("%s: it has %v", name, c.Foreign)
		}
		replaced := s.Clone()
		replaced.Add(foreignOf("BareMetalHost", "a", "x", "anew"))
		if uidOf(s, hostKind, "a", "x") != "host" || uidOf(s, hostKind, "a", "z") != "goes" || uidOf(s, claimKind, "a", "x") != "claim" || len(s.Foreign) != 3 {
			t.Errorf("%s: the first one has %v", name, s.Foreign)
		}
	}
}

// What is added to a list after a drop is in that one alone, though several began with the same.
func TestDroppedListIsAnother(t *testing.T) {
	t.Parallel()
	node := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	room := make([]*corev1.Node, 0, 4)
	for name, s := range map[string]Snapshot{"empty": {Nodes: room}, "of one": {Nodes: append(room, node("old"))}} {
		one, two := s, s
		one.Drop(All("Node"))
		one.Add(node("one"))
		two.Drop(All("Node"))
		two.Add(node("two"))
		if len(one.Nodes) != 1 || one.Nodes[0].Name != "one" {
			t.Errorf("%s: it has %v", name, one.Nodes)
		}
	}
}

// Nobody who stops looking is shown more.
func TestObjectsEndWhereNobodyLooks(t *testing.T) {
	t.Parallel()
	var s Snapshot
	s.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, foreignOf("BareMetalHost", "a", "x", "host"))
	all := 0
	for range s.Objects() {
		all++
	}
	for range s.Objects() {
		break
	}
	if all != 3 {
		t.Errorf("%d objects, want 3", all)
	}
}
