// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/provider"
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

// What is in a path is one name, whoever wrote it: another path would be of another object, or of another namespace. Nor is a write
// followed to where it is sent on, which would be a GET of what is there.
func TestPathsLeadNowhereElse(t *testing.T) {
	t.Parallel()
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		if r.Method == http.MethodPatch {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, `{"kind": "ConfigMap"}`)
	}))
	t.Cleanup(s.Close)
	c, err := New(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../../b/configmaps/x", "..%2fx", "..", ".", "x/y"} {
		err := c.Do(t.Context(), Request{Method: http.MethodGet, Path: []string{"api", "v1", "namespaces", "a", "configmaps", name}}, new(corev1.ConfigMap))
		if err == nil || len(asked) > 0 {
			t.Errorf("%s: %v, asked %q", name, err, asked)
		}
		asked = nil
	}
	if err := c.Do(t.Context(), Request{Method: http.MethodPatch, Path: []string{"x"}, Body: 1}, new(corev1.ConfigMap)); err == nil || len(asked) != 1 {
		t.Errorf("%v, asked %q", err, asked)
	}
}

// Haste is told with the time to wait.
func TestWhoAsksTooOftenIsToldWhenAgain(t *testing.T) {
	t.Parallel()
	err := classify(http.MethodGet, refusal(http.StatusTooManyRequests, []byte(`{"kind":"Status","reason":"TooManyRequests","code":429,"details":{"retryAfterSeconds":7}}`)))
	if e, ok := errors.AsType[*provider.Error](err); !ok || e.Code != provider.Throttled || e.RetryAfter != 7*time.Second {
		t.Errorf("%v", err)
	}
}

// Others may be faster for ever; who asks has no time for that.
func TestAgainEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := Again(ctx, func() error {
		if n++; n == 3 {
			cancel()
		}
		if n > 100 {
			return io.EOF
		}
		return ErrConflict
	}, ErrConflict)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrConflict) || n != 3 {
		t.Errorf("after %d: %v", n, err)
	}
}

// FuzzRefusal: absence, a conflict and a refusal are what the API server says in its own form, with the status that it says;
// nothing else proves anything, however it looks (RELIABILITY G5).
func FuzzRefusal(f *testing.F) {
	for _, body := range []string{
		`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`,
		`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`,
		`{"kind":"Status","reason":"AlreadyExists","code":409}`, `{"kind":"Status","reason":"NotFound"}`, `{"kind":"Status","code":404}`,
		`{"kind":"Status","reason":"TooManyRequests","code":429,"details":{"retryAfterSeconds":2147483647}}`,
		`{"kind":"Status","reason":"Forbidden","code":403}`, `<html>404</html>`, `404 page not found`, ``, `null`, `[]`, `{"kind":7}`,
		`{"kind":"Status","details":` + strings.Repeat("[", 20_000),
	} {
		for _, status := range []int{300, 403, 404, 409, 429, 500, 503} {
			f.Add(status, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete} {
			err := classify(method, refusal(status, body))
			gone, taken, definite := errors.Is(err, ErrGone), errors.Is(err, ErrExists) || errors.Is(err, ErrConflict), provider.CodeOf(err).Definite()
			if err == nil || gone && (status != http.StatusNotFound || method == http.MethodPost) || taken && status != http.StatusConflict ||
				definite && status/100 != 4 {
				t.Errorf("%s, %d %q: %v", method, status, body, err)
			}
			if (gone || taken || definite) && !strings.Contains(string(body), "Status") {
				t.Errorf("%s, %d %q is no answer of the API server's: %v", method, status, body, err)
			}
		}
	})
}
