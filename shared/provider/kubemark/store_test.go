// SPDX-License-Identifier: Apache-2.0

package kubemark

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/provider"
)

func TestMemoryIsAStore(t *testing.T) {
	t.Parallel()
	testStore(t, new(Memory))
}

// testStore checks the promises of Store. Its objects' names begin with "store-test".
func testStore(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	want := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s = %v, want %v", what, err, want)
		}
	}
	must := func(o Object, err error) Object {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	a := must(s.Create(ctx, Object{Name: "store-test-a", Labels: map[string]string{"set": "x", "side": "left"}, Data: map[string]string{"k": "1"}}))
	b := must(s.Create(ctx, Object{Name: "store-test-b", Labels: map[string]string{"set": "x"}}))
	_, err := s.Create(ctx, Object{Name: a.Name})
	want("Create of what exists", err, ErrExists)
	if got := must(s.Get(ctx, a.Name)); got.Data["k"] != "1" || got.Version != a.Version {
		t.Errorf("Get = %+v, want %+v", got, a)
	}
	a.Data = map[string]string{"k": "2"}
	newer := must(s.Update(ctx, a))
	if !(Record{version: a.Version}).earlier(Record{version: newer.Version}) || newer.Data["k"] != "2" {
		t.Errorf("Update of %+v = %+v", a, newer)
	}
	_, err = s.Update(ctx, a)
	want("Update of what changed", err, ErrConflict)
	want("Delete of what changed", s.Delete(ctx, a), ErrConflict)
	for _, tt := range []struct {
		labels map[string]string
		names  []string
	}{
		{map[string]string{"set": "x"}, []string{a.Name, b.Name}},
		{map[string]string{"set": "x", "side": "left"}, []string{a.Name}},
		{map[string]string{"set": "x", "side": "right"}, nil},
		{map[string]string{"set": "x", "side": ""}, nil},
	} {
		all, err := s.List(ctx, tt.labels)
		var names []string
		for _, o := range all {
			names = append(names, o.Name)
		}
		if err != nil || !slices.Equal(names, tt.names) {
			t.Errorf("List(%v) = %v, %v, want %v", tt.labels, names, err, tt.names)
		}
	}
	want("Delete", s.Delete(ctx, newer), nil)
	want("Delete", s.Delete(ctx, b), nil)
	want("Delete again", s.Delete(ctx, newer), ErrGone)
	_, err = s.Get(ctx, a.Name)
	want("Get of what is gone", err, ErrGone)
	_, err = s.Update(ctx, newer)
	want("Update of what is gone", err, ErrGone)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = s.Get(ended, a.Name)
	want("Get after the end", err, context.Canceled)
}

// What is not an answer of the API server itself proves nothing (RELIABILITY 2b.4).
func TestAnswersOfAnAPIServer(t *testing.T) {
	t.Parallel()
	const status = `{"kind": "Status", "apiVersion": "v1", "reason": %q, "code": %d, "message": "told so", "details": {"retryAfterSeconds": 7}}`
	tests := []struct {
		name string
		code int
		body string
		is   error
		has  provider.Code
	}{
		{"gone", 404, fmt.Sprintf(status, "NotFound", 404), ErrGone, provider.Unknown},
		{"gone, by another status", 500, fmt.Sprintf(status, "NotFound", 404), nil, provider.Unknown},
		{"a proxy's page", 404, "<html>not here</html>", nil, provider.Unknown},
		{"another server", 404, `{"error": "no such route"}`, nil, provider.Unknown},
		{"conflict", 409, fmt.Sprintf(status, "Conflict", 409), ErrConflict, provider.Unknown},
		{"exists", 409, fmt.Sprintf(status, "AlreadyExists", 409), ErrExists, provider.Unknown},
		{"forbidden", 403, fmt.Sprintf(status, "Forbidden", 403), nil, provider.Denied},
		{"too many requests", 429, fmt.Sprintf(status, "TooManyRequests", 429), nil, provider.Throttled},
		{"broken", 500, fmt.Sprintf(status, "InternalError", 500), nil, provider.Unknown},
		{"cut off", 200, `{"kind": "ConfigMap", "data"`, nil, provider.Unknown},
		{"nothing", 200, `{}`, nil, provider.Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.code)
				_, _ = w.Write([]byte(tt.body))
			}))
			t.Cleanup(server.Close)
			store, err := NewConfigMaps(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			_, err = store.Get(t.Context(), "i-1")
			if err == nil || tt.is != nil && !errors.Is(err, tt.is) || provider.CodeOf(err) != tt.has {
				t.Errorf("error %v with code %v, want %v, %v", err, provider.CodeOf(err), tt.is, tt.has)
			}
			if tt.is == nil && (errors.Is(err, ErrGone) || errors.Is(err, ErrConflict) || errors.Is(err, ErrExists)) {
				t.Errorf("error %v proves too much", err)
			}
			if e, ok := errors.AsType[*provider.Error](err); tt.has == provider.Throttled && (!ok || e.RetryAfter != 7*time.Second) {
				t.Errorf("error %#v, want advice to wait", err)
			}
			if all, err := store.List(t.Context(), map[string]string{"set": "x"}); err == nil {
				t.Errorf("List = %v", all)
			}
		})
	}
	_, err := NewConfigMaps(&rest.Config{Host: "http://[broken"})
	if err == nil {
		t.Error("a broken address is accepted")
	}
}
