// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/plan"
)

// Recorder is an API server that has nothing, takes everything, and writes down who asked for what. It is safe for
// concurrent use.
type Recorder struct {
	mu    sync.Mutex
	calls map[Call]bool
}

// NewRecorder returns a Recorder without calls.
func NewRecorder() *Recorder { return &Recorder{calls: map[Call]bool{}} }

// Config connects a function.
func (r *Recorder) Config(function string) *rest.Config {
	return &rest.Config{Host: "http://recorder", Transport: as{r, function}}
}

// Add adds a call.
func (r *Recorder) Add(c Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[c] = true
}

// Calls returns a copy of all calls.
func (r *Recorder) Calls() map[Call]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[Call]bool{}
	for c := range r.calls {
		all[c] = true
	}
	return all
}

type as struct {
	*Recorder
	function string
}

// RoundTrip answers a request: lists are empty, objects are not there, writes are done. What makes functions ask more is
// answered so: an Event was told before and is counted up, what shall be deleted or evicted changed and is looked at again.
func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	c, ok := callOf(a.function, r)
	if ok {
		a.Add(c)
	}
	code, body := a.answer(c)
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Request: r, Body: io.NopCloser(bytes.NewReader(text)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}},
	}, nil
}

func (a as) answer(c Call) (code int, body any) {
	event := c.Resource == "events"
	switch {
	case event && c.Verb == "create":
		return http.StatusConflict, status(http.StatusConflict, metav1.StatusReasonAlreadyExists)
	case event && c.Verb == "get":
		return http.StatusOK, map[string]any{"kind": "Event", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "1"}}
	case c.Verb == "get":
		return http.StatusNotFound, status(http.StatusNotFound, metav1.StatusReasonNotFound)
	case c.Verb == "list":
		for _, r := range plan.Resources() {
			if r.Plural == c.Resource && r.Group.Group == c.Group {
				return http.StatusOK, map[string]any{
					"kind": r.GVK().Kind + "List", "apiVersion": r.Group.String(), "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{},
				}
			}
		}
		return http.StatusForbidden, status(http.StatusForbidden, metav1.StatusReasonForbidden) // somebody else's kind
	case c.Verb == "delete", c.Resource == "pods/eviction":
		return http.StatusConflict, status(http.StatusConflict, metav1.StatusReasonConflict)
	}
	return http.StatusOK, map[string]any{"metadata": map[string]any{}}
}

func status(code int32, reason metav1.StatusReason) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason,
	}
}
