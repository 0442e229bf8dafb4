// SPDX-License-Identifier: Apache-2.0

package eventing_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// event is what a function was sent.
type event struct {
	at                          time.Time
	kind, verb, name, namespace string // of an object
	scan                        string // of a tick
	code, destination           string // of a dead letter: what the function answered, and its URL
}

// recorder is one replica of a function: it keeps what it is sent and answers as it is told.
type recorder struct {
	address string
	server  *httptest.Server

	mu     sync.Mutex
	events []event
	answer func(event) int
}

func startRecorder(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{answer: func(event) int { return http.StatusAccepted }}
	r.server = httptest.NewServer(r)
	r.address = strings.TrimPrefix(r.server.URL, "http://")
	t.Cleanup(r.server.Close)
	return r
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	h := request.Header
	e := event{
		at: time.Now(), kind: h.Get("Ce-Kind"), name: h.Get("Ce-Name"), namespace: h.Get("Ce-Namespace"), scan: h.Get("Ce-Scan"),
		code: h.Get("Ce-Knativeerrorcode"), destination: h.Get("Ce-Knativeerrordest"),
	}
	e.verb, _ = strings.CutPrefix(h.Get("Ce-Type"), "dev.knative.apiserver.ref.")
	r.mu.Lock()
	r.events = append(r.events, e)
	answer := r.answer
	r.mu.Unlock()
	w.WriteHeader(answer(e))
}

// answers tells the replica what to do from now on.
func (r *recorder) answers(f func(event) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

// matching returns the events so far that match.
func (r *recorder) matching(match func(event) bool) []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []event
	for _, e := range r.events {
		if match(e) {
			found = append(found, e)
		}
	}
	return found
}

// await returns the first event that matches, and fails the test if none has come in time.
func (r *recorder) await(t *testing.T, limit time.Duration, match func(event) bool) event {
	t.Helper()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if found := r.matching(match); len(found) > 0 {
			return found[0]
		}
	}
	t.Fatalf("no such event in %v", limit)
	return event{}
}

// of matches events about one object.
func of(verb, kind, name string) func(event) bool {
	return func(e event) bool { return e.verb == verb && e.kind == kind && e.name == name }
}
