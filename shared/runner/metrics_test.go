// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/events"
	"github.com/machine-functions/machine-functions/shared/metrics"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

func get(s *Server, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Handle(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// The runtime leaves every path but /health to the function.
func TestServerTellsItsMetrics(t *testing.T) {
	t.Parallel()
	r := testRunner(label(func(s snapshot.Snapshot) plan.Plan {
		if len(s.Nodes) > 2 {
			panic("poison")
		}
		return wantLabel(s)
	}), world(t, 2).As("label"))
	if w := get(NewServer(r, nil), "/metrics"); w.Code != http.StatusNotFound {
		t.Errorf("without metrics: %d %s", w.Code, w.Body)
	}
	var err error
	if r.Metrics, err = metrics.New("label", time.Now); err != nil {
		t.Fatal(err)
	}
	s := NewServer(r, nil)
	post(s, events.TypePing)
	post(s, events.TypePing)
	r.Cluster = world(t, 3).As("label")
	post(s, events.TypePing)
	w := get(s, "/metrics")
	for _, line := range []string{
		`machines_label_invocations_total{result="acted"} 1`, `machines_label_invocations_total{result="quiet"} 1`,
		`machines_label_invocations_total{result="panicked"} 1`, `machines_label_actions_total{action="update",result="done"} 2`,
		`machines_label_events_total{reason="Labeled",type="Normal"} 2`, `machines_label_invocation_rounds_bucket{le="1"} 1`,
		`machines_label_invocation_rounds_sum 3`,
	} {
		if !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("no line %s in\n%s", line, w.Body)
		}
	}
	forwarded := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
	forwarded.Header.Set("X-Forwarded-For", "192.0.2.1")
	through := httptest.NewRecorder()
	if s.Handle(through, forwarded); through.Code != http.StatusNotFound || strings.Contains(through.Body.String(), "machines_label") {
		t.Errorf("through the queue-proxy: %d %s", through.Code, through.Body)
	}
	if w := get(s, "/"); w.Code != http.StatusBadRequest {
		t.Errorf("GET / is no event: %d", w.Code)
	}
}
