// SPDX-License-Identifier: Apache-2.0

// Package trickle has senders whose bodies come slowly, for the tests of whoever is sent them.
package trickle

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Faster is how many times as fast the deadlines of Soon come.
const Faster = 50

// Soon is what a server answers with, whose deadlines come fifty times as fast.
type Soon struct{ http.ResponseWriter }

// SetReadDeadline is what [http.ResponseController] calls.
func (s Soon) SetReadDeadline(at time.Time) error {
	if !at.IsZero() {
		at = time.Now().Add(time.Until(at) / Faster)
	}
	return http.NewResponseController(s.ResponseWriter).SetReadDeadline(at)
}

// Ask begins a request with these first lines, of whose body one byte comes and no more, and returns the status of the answer, or 0
// if none comes within ten seconds.
func Ask(t *testing.T, handle http.HandlerFunc, lines, body string) int {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(Soon{w}, r) }))
	t.Cleanup(server.Close)
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, _ = fmt.Fprintf(conn, "%s\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n%s\r\n", lines, body)
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Logf("no answer: %v", err)
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}
