// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/plan"
)

var telling = []test{
	{"an event is about its object and names its source", tellOnce},
	{"what is told again is counted up, by whoever tells it", tellAgain},
	{"what differs is told apart", tellApart},
	{"events of objects without namespace are in default", tellOfNode},
	{"events told at the same time are all counted", tellConcurrently},
	{"a note about no object is an error", tellNobody},
	{"long messages are shortened", tellLong},
	{"an event is told about an object of any name", tellOfAnyName},
}

func (h Harness) tell(t *testing.T, n plan.Note) {
	t.Helper()
	if err := h.Cluster.Tell(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

// told returns the Events about o.
func (h Harness) told(t *testing.T, namespace string, o plan.Object) (about []corev1.Event) {
	t.Helper()
	for _, e := range h.Events(t, namespace) {
		if e.InvolvedObject.UID == o.GetUID() {
			about = append(about, e)
		}
	}
	return about
}

func tellOnce(t *testing.T, h Harness) {
	m, since := create(t, h, h.machine("a")), h.Clock()
	h.tell(t, plan.Warning(m, "FailedCreate", "CreateError").From("openstack_controller"))
	told := h.told(t, h.Namespace, m)
	if len(told) != 1 {
		t.Fatalf("events %v", told)
	}
	e := told[0]
	if e.Type != "Warning" || e.Reason != "FailedCreate" || e.Message != "CreateError" || e.Count != 1 {
		t.Errorf("event %+v", e)
	}
	if e.Source.Component != "openstack_controller" || e.ReportingController != "openstack_controller" {
		t.Errorf("source %+v, reporting controller %s", e.Source, e.ReportingController)
	}
	if o := e.InvolvedObject; o.APIVersion != "machine.openshift.io/v1beta1" || o.Kind != "Machine" || o.Namespace != m.Namespace || o.Name != m.Name {
		t.Errorf("about %+v", o)
	}
	if h.aside(e.LastTimestamp.Time, since) > 5*time.Second || !e.FirstTimestamp.Equal(&e.LastTimestamp) {
		t.Errorf("from %v to %v", e.FirstTimestamp, e.LastTimestamp)
	}
	h.tell(t, plan.Normal(m, "Update", "done"))
	for _, e := range h.told(t, h.Namespace, m) {
		if e.Reason == "Update" && e.Source.Component == "" {
			t.Errorf("without a source it is told by %q", e.Source.Component)
		}
	}
}

func tellAgain(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	n := plan.Warning(m, "FailedCreate", "CreateError").From("openstack_controller")
	for range 3 {
		h.tell(t, n)
	}
	if err := h.Other.Tell(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if told := h.told(t, h.Namespace, m); len(told) != 1 || told[0].Count != 4 || told[0].LastTimestamp.Before(&told[0].FirstTimestamp) {
		t.Errorf("events %+v", told)
	}
}

func tellApart(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	h.tell(t, plan.Normal(m, "Update", "one"))
	h.tell(t, plan.Normal(m, "Update", "two"))
	h.tell(t, plan.Normal(m, "Delete", "two"))
	h.tell(t, plan.Warning(m, "Delete", "two"))
	h.tell(t, plan.Warning(m, "Delete", "two").From("another"))
	if told := h.told(t, h.Namespace, m); len(told) != 5 {
		t.Errorf("%d events: %v", len(told), told)
	}
	h.apply(t, plan.Delete{Object: m})
	again := create(t, h, h.machine("a"))
	h.tell(t, plan.Normal(again, "Update", "one"))
	if told := h.told(t, h.Namespace, again); len(told) != 1 || told[0].Count != 1 {
		t.Errorf("of the next machine of that name: %v", told)
	}
}

func tellOfNode(t *testing.T, h Harness) {
	n := create(t, h, h.node("a"))
	h.tell(t, plan.Normal(n, "ScaleDown", "marked"))
	if told := h.told(t, "default", n); len(told) != 1 || told[0].InvolvedObject.Kind != "Node" || told[0].InvolvedObject.Namespace != "" {
		t.Errorf("events %v", told)
	}
}

func tellConcurrently(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	won, others := race(func(i int) error {
		if i > 2 {
			return nil
		}
		return h.Cluster.Tell(t.Context(), plan.Normal(m, "Update", "done"))
	})
	told := h.told(t, h.Namespace, m)
	if len(others) > 0 || len(told) != 1 || told[0].Count != 3 {
		t.Errorf("%d won, others %v, events %v", won, others, told)
	}
}

func tellNobody(t *testing.T, h Harness) {
	if err := h.Cluster.Tell(t.Context(), plan.Log("hello")); err == nil {
		t.Error("no error")
	}
}

func tellLong(t *testing.T, h Harness) {
	m := h.machine(strings.Repeat("a", 200) + ".b")
	m = create(t, h, m)
	h.tell(t, plan.Normal(m, "Update", strings.Repeat("ü", 2000)))
	if told := h.told(t, h.Namespace, m); len(told) != 1 || len(told[0].Message) > 1024 || !strings.HasPrefix(told[0].Message, "üü") {
		t.Errorf("events %v", told)
	}
}

// tellOfAnyName is about signing requests: nearly everybody may make some, of names that no Event may have.
func tellOfAnyName(t *testing.T, h Harness) {
	for i, name := range []string{"system:node:A_b", "_a", "a..b", "-", "ä", ":::"} {
		r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprint(h.Namespace, "-", i))}}
		h.tell(t, plan.Warning(r, "NodeRequestRefused", "not for a Node"))
		if told := h.told(t, "default", r); len(told) != 1 || told[0].InvolvedObject.Name != name {
			t.Errorf("%q: events %v", name, told)
		}
	}
}
