// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/events"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// One object over which a function panics keeps it from no other: that is counted, told of the object, and logged with its stack once, however
// many scans there are (2c, R-L4).
func TestPanicOverOneObjectIsOfThatAlone(t *testing.T) {
	t.Parallel()
	w := world(t, 3)
	f := each(func(n *corev1.Node) { dreadfulOver(n) }, func(*corev1.Node) {})
	poisoned(t, w, f)
}

// So it is where it panics while it tells what it reads of the object: that it did not read it all is no reason to decide as if there were
// nothing else.
func TestPanicWhileReadingIsOfOneObjectAlone(t *testing.T) {
	t.Parallel()
	f := each(func(*corev1.Node) {}, func(n *corev1.Node) { dreadfulOver(n) })
	poisoned(t, world(t, 3), f)
}

func dreadfulOver(n *corev1.Node) {
	if n.Name == "n1" {
		panic("dreadful")
	}
}

// each is a function that wants every Node to carry a label, with what it does before it decides about one, and when it reads for one.
func each(decides, reads func(*corev1.Node)) function.Function {
	f := label(func(s snapshot.Snapshot) (p plan.Plan) {
		for _, n := range s.Nodes {
			s.Apart(n, func() {
				decides(n)
				one := s
				one.Nodes = []*corev1.Node{n}
				p.Add(wantLabel(one).Do...)
			})
		}
		return p
	})
	all := f.Reads
	f.Reads = func(s snapshot.Snapshot) snapshot.Scope {
		for _, n := range s.Nodes {
			s.Apart(n, func() { reads(n) })
		}
		return all(s)
	}
	return f
}

func poisoned(t *testing.T, w *memory.Server, f function.Function) {
	t.Helper()
	var log bytes.Buffer
	s := NewServer(testRunner(f, w.As("label")), nil)
	s.Runner.Log, s.Runner.Metrics = slog.New(slog.NewJSONHandler(&log, nil)), measured(t)
	for range 2 {
		if got := post(s, events.TypePing); got.Code >= http.StatusMultipleChoices {
			t.Fatalf("the scan is answered with %d", got.Code)
		}
	}
	if _, err := s.Runner.Handle(t.Context(), snapshot.Request{Kind: "Node", Name: "n1"}); err == nil {
		t.Error("a request about the object over which it panics succeeds")
	}
	for _, n := range memory.List[*corev1.Node](w) {
		if labeled := n.Labels["wanted"] != ""; labeled == (n.Name == "n1") {
			t.Errorf("%s is labeled: %v", n.Name, labeled)
		}
	}
	scrape := httptest.NewRecorder()
	s.Handle(scrape, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if !strings.Contains(scrape.Body.String(), `result="panicked"}`) || strings.Count(log.String(), `"stack"`) != 1 || !strings.Contains(log.String(), "poison_test.go") {
		t.Errorf("metrics %s, log %s", scrape.Body, &log)
	}
	told := 0
	for _, e := range w.Events() {
		if e.InvolvedObject.Name == "n1" && e.Reason == "ReconcileError" && strings.Contains(e.Message, "dreadful") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("%d events in %v", told, w.Events())
	}
}

// Where nobody would see it, in a test that asks a function itself, a panic is one.
func TestPanicOverOneObjectIsSeenByTests(t *testing.T) {
	t.Parallel()
	defer func() {
		if v := recover(); v != "dreadful" {
			t.Errorf("recovered %v", v)
		}
	}()
	r := testRunner(function.Function{Name: "look", Reads: label(wantLabel).Reads, Decide: func(s snapshot.Snapshot) plan.Plan {
		s.Apart(s.Nodes[0], func() { panic("dreadful") })
		return plan.Plan{}
	}}, world(t, 1).As("look"))
	_, _ = r.Handle(t.Context(), snapshot.Request{})
}
