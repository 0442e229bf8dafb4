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
	return &meta.RESTMapping{}, nil
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
