// SPDX-License-Identifier: Apache-2.0

package deadletter

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// soon is what a server answers with, whose deadlines come fifty times as fast.
type soon struct{ http.ResponseWriter }

func (s soon) SetReadDeadline(at time.Time) error {
	if !at.IsZero() {
		at = time.Now().Add(time.Until(at) / 50)
	}
	return http.NewResponseController(s.ResponseWriter).SetReadDeadline(at)
}

// A dead letter whose body comes slowly is answered: where all of it stands in headers it is taken, else it may come again and is not
// counted yet.
func TestSlowDeadLettersAreAnswered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		headers string
		want    int
		count   uint64
	}{
		{"Ce-Id: 1\r\nCe-Specversion: 1.0\r\nCe-Source: s\r\nCe-Type: t\r\n", http.StatusAccepted, 1},
		{"Content-Type: application/cloudevents+json\r\n", http.StatusRequestTimeout, 0},
	} {
		sink := New(slog.New(slog.DiscardHandler))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { sink.Handle(soon{w}, r) }))
		t.Cleanup(server.Close)
		conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\n%sTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", c.headers)
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: no answer: %v", c.headers, err)
			continue
		}
		if _ = answer.Body.Close(); answer.StatusCode != c.want || sink.Count() != c.count {
			t.Errorf("%s: %d, counted %d", c.headers, answer.StatusCode, sink.Count())
		}
	}
}
