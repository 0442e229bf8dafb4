// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// An answer without what was asked for proves nothing: whoever takes an empty page for an empty list takes all that exists
// for gone (RELIABILITY 2b.4).
func TestAnAnswerIsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	answer := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	t.Cleanup(s.Close)
	c, err := New(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	list, one, plain := func() any { return new(corev1.ConfigMapList) }, func() any { return new(corev1.ConfigMap) }, func() any { return new(struct{ Spec any }) }
	for _, tt := range []struct {
		answer string
		out    func() any
		good   bool
	}{
		{`{"kind": "ConfigMapList", "items": []}`, list, true},
		{`{"kind": "ConfigMapList", "items": [{}]}`, list, true},
		{`{"kind": "ConfigMapList"}`, list, false},
		{`{"kind": "ConfigMapList", "items": null}`, list, false},
		{`{"items": []}`, list, false},
		{`{"kind": "SecretList", "items": []}`, list, false},
		{`{}`, list, false},
		{`null`, list, false},
		{`{"kind": "ConfigMap"}`, one, true},
		{`{"kind": "Status"}`, one, false},
		{`{}`, one, false},
		{`{"kind": "IPAddress", "spec": {}}`, plain, true},
		{`{"spec": {}}`, plain, false},
		{`null`, plain, false},
	} {
		answer = tt.answer
		if err := c.Do(t.Context(), Request{Method: http.MethodGet}, tt.out()); (err == nil) != tt.good {
			t.Errorf("%s as %T: %v", tt.answer, tt.out(), err)
		}
	}
}
