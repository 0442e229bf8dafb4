// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// What is not an answer of the API server itself proves nothing (RELIABILITY 2b.4).
func TestAnswersOfAnAPIServer(t *testing.T) {
	t.Parallel()
	const status = `{"kind": "Status", "apiVersion": "v1", "reason": %q, "code": %d, "message": "told so"}`
	refused := func(code int, reason string) string {
		return strings.Replace(fmt.Sprintf(status, reason, code), "told so", `admission webhook \"hosts.example.com\" denied the request: told so`, 1)
	}
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
		{"who is that?", 401, fmt.Sprintf(status, "Unauthorized", 401), nil, provider.Denied},
		{"gone, in words of a webhook's", 404, strings.Replace(fmt.Sprintf(status, "NotFound", 404), "told so", "it denied the request", 1), ErrGone, provider.Unknown},
		{"gone, as a webhook is", 404, strings.Replace(fmt.Sprintf(status, "NotFound", 404), "told so", "admission webhook of this name not found", 1), ErrGone, provider.Unknown},
		{"a webhook's no", 400, refused(400, ""), nil, provider.Denied},
		{"a webhook's no, as of a schema", 422, refused(422, "Invalid"), nil, provider.Denied},
		{"a webhook's no, as of haste", 429, refused(429, "TooManyRequests"), nil, provider.Denied},
		{"a webhook's no, as of absence", 404, refused(404, "NotFound"), nil, provider.Denied},
		{"a webhook that fails", 500, refused(500, "InternalError"), nil, provider.Unknown},
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

// A scan reads 5,000 hosts page by page with one list, which is of no use without its last page.
func TestListCostsAHandfulOfCalls(t *testing.T) {
	t.Parallel()
	const many = 5000
	asked, cut := 0, false
	hosts := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		if err != nil || limit > 500 {
			t.Errorf("%s has limit %d, %v", r.URL, limit, err)
			limit = many
		}
		to := min(from+limit, many)
		if cut && to == many {
			w.WriteHeader(http.StatusGone)
			_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "reason": "Expired", "code": 410}`)
			return
		}
		page := metal3v1alpha1.BareMetalHostList{TypeMeta: metav1.TypeMeta{Kind: "BareMetalHostList"}, Items: []host{}}
		for i := from; i < to; i++ {
			h := free(i)
			h.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: consumerVersion, Kind: consumerKind, Name: h.Name, UID: h.UID}
			page.Items = append(page.Items, h)
		}
		if to < many {
			page.Continue = strconv.Itoa(to)
		}
		if err := json.NewEncoder(w).Encode(page); err != nil {
			t.Error(err)
		}
	})
	d := &driver{hosts: hosts, cluster: "abi", namespace: "machines"}
	if all, err := d.List(t.Context()); err != nil || len(all) != many || asked != 10 {
		t.Errorf("List = %d, %v with %d calls", len(all), err, asked)
	}
	cut = true
	if all, err := d.List(t.Context()); err == nil || len(all) != 0 {
		t.Errorf("List = %d, %v without its last page", len(all), err)
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
	if _, err := hosts.Patch(t.Context(), "machines", "host-0", d.claim(worker, s, host{ObjectMeta: metav1.ObjectMeta{Name: "host-0", ResourceVersion: "7"}})); err != nil {
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
