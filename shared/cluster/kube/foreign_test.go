// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	requestKind plan.Kind = "Metal3Remediation.v1beta1.infrastructure.cluster.x-k8s.io"
	requests    string    = "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/ns/metal3remediations"
	requestA    string    = `{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta1","kind":"Metal3Remediation","metadata":{"name":"a","namespace":"ns","uid":"1","managedFields":[]},"spec":{"retryLimit":2}}`
)

// A kind that a cluster does without is not asked for with every event.
func TestKindsThatAreNotServedAreNotAskedForAgain(t *testing.T) {
	t.Parallel()
	for q, path := range map[snapshot.Query]string{
		snapshot.All(plan.LegacyHealthCheck): "/apis/healthchecking.openshift.io/v1alpha1/namespaces/ns/legacymachinehealthchecks",
		{Kind: requestKind, Namespace: "ns"}: requests,
	} {
		f, c := serve(t, reply(404, "text/plain", "404 page not found"), reply(200, typeJSON, `{"apiVersion":"v1","kind":"APIGroupList","groups":[]}`))
		for range 3 {
			s, err := c.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{q})
			if err != nil || s.Now.IsZero() || s.Now.Nanosecond() != 0 || !s.Has(q) {
				t.Fatalf("now %v, error %v", s.Now, err)
			}
		}
		if want := []string{"GET " + path + "?limit=500", "GET /apis"}; !slices.Equal(f.asked, want) {
			t.Errorf("asked %q", f.asked)
		}
	}
}

// What was proven not to be served may be by now, as the rest of the cluster may be installed after the functions.
func TestKindsThatWereNotServedAreAskedForAgain(t *testing.T) {
	t.Parallel()
	for ago, asked := range map[time.Duration]int{notServedFor / 2: 0, 2 * notServedFor: 1} {
		f, c := serve(t, reply(200, typeJSON, `{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta1","kind":"Metal3RemediationList","metadata":{},"items":[`+requestA+`]}`))
		c.notServed.Store(requestKind, time.Now().Add(-ago))
		s, err := c.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{{Kind: requestKind, Namespace: "ns"}})
		if err != nil || len(f.asked) != asked || (s.ForeignObject(requestKind, "ns", "a") != nil) != (asked > 0) {
			t.Errorf("proven %v ago: asked %q, error %v", ago, f.asked, err)
		}
	}
}

// The machine layer's own kinds are never absent: without Machines every instance would seem to be nobody's (R-S12).
func TestOwnKindsAreServed(t *testing.T) {
	t.Parallel()
	_, c := serve(t, reply(404, "text/plain", "404 page not found"), reply(200, typeJSON, `{"apiVersion":"v1","kind":"APIGroupList","groups":[]}`))
	if names, err := observeMachines(t, c); err == nil {
		t.Errorf("machines %v where the cluster serves none", names)
	}
}

// What nobody is asked about is true by the server's clock all the same (G7).
func TestKindThatIsNotServedIsAbsentByTheServersClock(t *testing.T) {
	t.Parallel()
	behind := func(answer http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
			answer(w, r)
		}
	}
	_, c := serve(t, behind(reply(404, "text/plain", "404 page not found")), behind(reply(200, typeJSON, `{"apiVersion":"v1","kind":"APIGroupList","groups":[]}`)))
	for range 2 {
		s, err := c.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{snapshot.All(plan.LegacyHealthCheck)})
		if off := time.Since(s.Now) - time.Hour; err != nil || off.Abs() > time.Minute {
			t.Errorf("%v off the server's clock, error %v", off, err)
		}
	}
}

// Kinds that this module has no type for are read and written as they are (SPEC B58).
func TestForeignObjects(t *testing.T) {
	t.Parallel()
	f, c := serve(t,
		reply(200, typeJSON, requestA),
		reply(200, typeJSON, `{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta1","kind":"Metal3RemediationList","metadata":{},"items":[`+requestA+`]}`),
		reply(200, typeJSON, requestA),
	)
	for _, q := range []snapshot.Query{snapshot.One(requestKind, "ns", "a"), {Kind: requestKind, Namespace: "ns"}} {
		s, err := c.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{q})
		if err != nil {
			t.Fatal(err)
		}
		a := s.ForeignObject(requestKind, "ns", "a")
		if a == nil || a.GetKind() != "Metal3Remediation" || len(a.GetManagedFields()) != 0 {
			t.Fatalf("%v: got %v", q, a)
		}
		if limit, _, err := unstructured.NestedInt64(a.Object, "spec", "retryLimit"); limit != 2 || err != nil {
			t.Errorf("%v: the spec became %v", q, a.Object["spec"])
		}
	}
	var a unstructured.Unstructured
	if err := json.Unmarshal([]byte(requestA), &a); err != nil {
		t.Fatal(err)
	}
	for _, action := range []plan.Action{plan.Create{Object: &a}, plan.Delete{Object: &a}} {
		if err := c.Apply(t.Context(), action); err != nil {
			t.Errorf("%s: %v", action.Key(), err)
		}
	}
	want := []string{"GET " + requests + "/a", "GET " + requests + "?limit=500", "POST " + requests + "?fieldManager=tester", "DELETE " + requests + "/a"}
	if !slices.Equal(f.asked, want) {
		t.Errorf("asked %q", f.asked)
	}
	if !strings.Contains(f.bodies[2], `"kind":"Metal3Remediation"`) || !strings.Contains(f.bodies[3], `"uid":"1"`) {
		t.Errorf("sent %q", f.bodies)
	}
}

// What a deployment does not grant, or a cluster does not serve, is not there: one check that names it must not stop all
// others (R-L4). Of kinds of our own it is an error.
func TestForeignKindsAreOptional(t *testing.T) {
	t.Parallel()
	forbidden := status(403, metav1.StatusReasonForbidden, "no")
	for name, answers := range map[string]*Cluster{
		"forbidden": second(serve(t, forbidden)),
		"not served": second(serve(t, reply(404, "text/plain", "404 page not found"),
			reply(200, typeJSON, `{"apiVersion":"v1","kind":"APIGroupList","groups":[]}`))),
	} {
		s, err := answers.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{{Kind: requestKind, Namespace: "ns"}})
		if err != nil || len(s.Foreign) != 0 {
			t.Errorf("%s: %v, error %v", name, s.Foreign, err)
		}
	}
	if _, err := observeMachines(t, second(serve(t, forbidden))); err == nil {
		t.Error("Machines that may not be read count as none")
	}
	busy := status(503, metav1.StatusReasonServiceUnavailable, "not now")
	if _, err := second(serve(t, busy)).Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{{Kind: requestKind, Namespace: "ns"}}); err == nil {
		t.Error("what a busy server does not answer counts as none") // G5
	}
	var a unstructured.Unstructured
	if err := json.Unmarshal([]byte(requestA), &a); err != nil {
		t.Fatal(err)
	}
	err := second(serve(t, reply(404, "text/plain", "404 page not found"))).Apply(t.Context(), plan.Create{Object: &a})
	if _, refused := errors.AsType[*cluster.RefusedError](err); !refused {
		t.Errorf("creating what is not served: %v", err)
	}
	err = second(serve(t, reply(502, "text/plain", "bad gateway"))).Apply(t.Context(), plan.Create{Object: &a})
	if _, refused := errors.AsType[*cluster.RefusedError](err); refused || err == nil { // it may have been created
		t.Errorf("creating where a proxy has no answer: %v", err)
	}
}

func second(_ *fakeServer, c *Cluster) *Cluster { return c }
