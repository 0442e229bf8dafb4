// SPDX-License-Identifier: Apache-2.0

package events

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/test/trickle"
)

// drip sends size bytes of a body at once, then one after the other without end, and returns the answer.
func drip(t *testing.T, server *httptest.Server, size int) *http.Response {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/cloudevents+json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", size, strings.Repeat(" ", size))
		for err == nil {
			time.Sleep(10 * time.Millisecond)
			_, err = fmt.Fprint(c, "1\r\n \r\n")
		}
	}()
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	_ = answer.Body.Close()
	return answer
}

// A body that does not come in time is answered, and keeps nobody from asking a large question: the sender of a large one that then
// comes slowly has its place for as long only (R-L5). 408 is delivered again, as it should be where the network is slow.
func TestSlowBodiesAreCutOff(t *testing.T) {
	t.Parallel()
	large := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := Parse(trickle.Soon{ResponseWriter: w}, r, served, large)
		_ = Reply(r.Context(), w, "1", nil, err)
	}))
	t.Cleanup(server.Close)
	for _, size := range []int{1, maxBody + 1000} {
		if answer := drip(t, server, size); answer.StatusCode != http.StatusRequestTimeout || !answer.Close {
			t.Errorf("%d bytes, then slowly: %d, closed %t", size, answer.StatusCode, answer.Close)
		}
		if len(large) > 0 {
			t.Errorf("%d bytes, then slowly: the place is not given back", size)
		}
	}
}

// The time that a body has is not that of the answer, nor of the next request on the same connection.
func TestWhoSentHisBodyMayWait(t *testing.T) {
	t.Parallel()
	gone := make(chan error, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := Parse(trickle.Soon{ResponseWriter: w}, r, served, nil)
		select {
		case <-r.Context().Done():
			gone <- context.Cause(r.Context())
		case <-time.After(3 * patience / trickle.Faster):
			gone <- err
		}
		_ = Reply(r.Context(), w, "1", nil, err)
	}))
	t.Cleanup(server.Close)
	for range 2 {
		r := reference("Machine", served[0], "worker-a")
		r.URL.Scheme, r.URL.Host, r.RequestURI = "http", server.Listener.Addr().String(), ""
		answer, err := server.Client().Do(r.WithContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if err := <-gone; err != nil || answer.StatusCode != http.StatusAccepted {
			t.Errorf("%d, error %v", answer.StatusCode, err)
		}
	}
}
