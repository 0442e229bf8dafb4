// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/events"
)

// soon is what a server answers with, whose deadlines come fifty times as fast.
type soon struct{ http.ResponseWriter }

func (s soon) SetReadDeadline(at time.Time) error {
	if !at.IsZero() {
		at = time.Now().Add(time.Until(at) / 50)
	}
	return http.NewResponseController(s.ResponseWriter).SetReadDeadline(at)
}

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
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.Handle(soon{w}, r) }))
		t.Cleanup(server.Close)
		conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", c.head)
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: no answer: %v", name, err)
			continue
		}
		if _ = answer.Body.Close(); answer.StatusCode != c.want {
			t.Errorf("%s: %d, want %d", name, answer.StatusCode, c.want)
		}
	}
}
