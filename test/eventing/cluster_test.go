// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// lagging is discovery that comes to know its kinds only when it is read again for the second time.
type lagging struct {
	meta.RESTMapper
	reads int
}

func (l *lagging) Reset() { l.reads++ }

func (l *lagging) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if l.reads < 2 {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return &meta.RESTMapping{Scope: meta.RESTScopeNamespace, Resource: schema.GroupVersionResource{Group: kind.Group, Resource: "machines"}}, nil
}

// An established definition is used only once discovery names its kind.
func TestDiscoveryLagsBehindEstablished(t *testing.T) {
	t.Parallel()
	crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": "serving.knative.dev", "names": map[string]any{"kind": "Service"},
	}}}
	l := &lagging{}
	c := &cluster{mapper: l}
	if err := c.waitServed(t.Context(), []*unstructured.Unstructured{crd}); err != nil {
		t.Fatal(err)
	}
	if l.reads != 2 {
		t.Errorf("read %d times again, want 2", l.reads)
	}
}

// A source is started as well where its kind was defined a moment ago.
func TestSourceOfAKindJustDefined(t *testing.T) {
	t.Parallel()
	source := &unstructured.Unstructured{Object: map[string]any{
		"kind": "ApiServerSource",
		"spec": map[string]any{"resources": []any{map[string]any{"apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine"}}},
	}}
	c := &cluster{mapper: &lagging{}}
	watched, err := c.watched(t.Context(), []*unstructured.Unstructured{source})
	if err != nil {
		t.Fatal(err)
	}
	if want := (schema.GroupResource{Group: "machine.openshift.io", Resource: "machines"}); len(watched) != 1 || watched[0] != want {
		t.Errorf("watches %v, want %v", watched, want)
	}
}
