// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// What is not an answer of the API server itself proves nothing (RELIABILITY 2b.4).
func TestAnswersOfAnAPIServer(t *testing.T) {
	t.Parallel()
	const status = `{"kind": "Status", "apiVersion": "v1", "reason": %q, "code": %d, "message": "told so"}`
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
		{"conflict", 409, fmt.Sprintf(status, "Conflict", 409), ErrConflict, provider.Unknown},
		{"forbidden", 403, fmt.Sprintf(status, "Forbidden", 403), nil, provider.Denied},
		{"refused by the schema", 422, fmt.Sprintf(status, "Invalid", 422), nil, provider.Invalid},
		{"cut off", 200, `{"kind": "BareMetalHost", "spec"`, nil, provider.Unknown},
		{"nothing", 200, `{}`, nil, provider.Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			hosts := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.code)
				_, _ = w.Write([]byte(tt.body))
			})
			_, err := hosts.Patch(t.Context(), "machines", "host-0", patch{})
			if err == nil || tt.is != nil && !errors.Is(err, tt.is) || provider.CodeOf(err) != tt.has {
				t.Errorf("error %v with code %v, want %v, %v", err, provider.CodeOf(err), tt.is, tt.has)
			}
			if tt.is == nil && (errors.Is(err, ErrGone) || errors.Is(err, ErrConflict)) {
				t.Errorf("error %v proves too much", err)
			}
		})
	}
}

// An answer without a list is not taken for a namespace without hosts.
func TestAnAnswerWithoutHostsIsNoList(t *testing.T) {
	t.Parallel()
	for body, good := range map[string]bool{
		`{"kind": "BareMetalHostList", "items": []}`: true, `{"kind": "BareMetalHostList"}`: false, `{"items": []}`: false, `{}`: false,
	} {
		hosts := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
		if all, err := hosts.List(t.Context(), "machines"); (err == nil) != good || len(all) != 0 {
			t.Errorf("%s: List = %v, %v", body, all, err)
		}
	}
}

// A kube-apiserver answers a path of a kind that it does not serve with a page that a proxy might have written: whether the
// operator is missing is told by the list of groups.
func TestAClusterWithoutTheOperator(t *testing.T) {
	t.Parallel()
	for groups, want := range map[string]provider.Code{
		`{"kind": "APIGroupList", "groups": [{"name": "apps"}]}`:                           provider.Denied,
		`{"kind": "APIGroupList", "groups": [{"name": "apps"}, {"name": "metal3.io"}]}`:    provider.Unknown,
		`{"kind": "Status", "reason": "Forbidden", "message": "not for you", "code": 403}`: provider.Unknown,
		"<html>Not Found": provider.Unknown,
	} {
		t.Run(groups, func(t *testing.T) {
			t.Parallel()
			hosts := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/apis" {
					_, _ = io.WriteString(w, groups)
					return
				}
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, "404 page not found\n")
			})
			_, err := hosts.List(t.Context(), "machines")
			if told := err != nil && strings.Contains(err.Error(), "is the baremetal-operator installed?"); provider.CodeOf(err) != want || told != (want == provider.Denied) {
				t.Errorf("List = %v (%v), want %v", err, provider.CodeOf(err), want)
			}
		})
	}
}

func serve(t *testing.T, f http.HandlerFunc) Hosts {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	hosts, err := NewHosts(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return hosts
}

// A claim is one merge patch of the version that was chosen: fields that nobody here knows are kept.
func TestClaimOnTheWire(t *testing.T) {
	t.Parallel()
	var got string
	hosts := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("Content-Type"), " ", string(body))
		_, _ = w.Write([]byte(`{"kind": "BareMetalHost", "metadata": {"name": "host-0"}}`))
	})
	s, err := parse(specOf(image), "machines")
	if err != nil {
		t.Fatal(err)
	}
	d := driver{cluster: "abi", namespace: "machines"}
	if _, err := hosts.Patch(t.Context(), "machines", "host-0", d.claim(worker, s, choice{"host-0", "uid", "7"})); err != nil {
		t.Fatal(err)
	}
	want := `PATCH /apis/metal3.io/v1alpha1/namespaces/machines/baremetalhosts/host-0 application/merge-patch+json ` +
		`{"metadata":{"resourceVersion":"7","annotations":{"machine.openshift.io/cluster-api-cluster":"abi","machine.openshift.io/provision-token":"token-1"}},` +
		`"spec":{"consumerRef":{"kind":"Machine","namespace":"machines","name":"abi-sb5b6-worker-0-x2x7k","uid":"machine-uid","apiVersion":"machine.openshift.io/v1beta1"},` +
		`"customDeploy":null,"image":{"url":"http://192.0.2.9/rhcos.qcow2","checksum":"http://192.0.2.9/rhcos.sum"},"online":true,"userData":null}}`
	if got != want {
		t.Errorf("sent %s\nwant %s", got, want)
	}
}
