// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"net/http"
	"testing"

	"github.com/machine-functions/machine-functions/shared/events"
	"github.com/machine-functions/machine-functions/test/trickle"
)

// Whoever sends slowly is answered, whether what he sends is read or not (R-L5): before an answer, a server reads what is left.
func TestWhoSendsSlowlyIsAnswered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		head    string
		senders *events.Verifier
		want    int
	}{
		"an event":        {"POST /", nil, http.StatusRequestTimeout},
		"from a stranger": {"POST /", &events.Verifier{}, http.StatusUnauthorized},
		"a scrape":        {"GET /metrics", nil, http.StatusOK},
	} {
		s := NewServer(testRunner(label(wantLabel), world(t, 1).As("label")), nil)
		s.Senders, s.Runner.Metrics = c.senders, measured(t)
		if got := trickle.Ask(t, s.Handle, c.head+" HTTP/1.1\r\nHost: x", "x"); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
