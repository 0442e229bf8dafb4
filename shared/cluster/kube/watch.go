// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/machine-functions/machine-functions/shared/plan"
)

const (
	// watchSeconds is how long a watch is asked for. The server tells two seconds before that how far it is, where nothing
	// happens that would show it: sooner cannot be asked for.
	watchSeconds = 3
	// largestFrame bounds one event: etcd holds no object of this size.
	largestFrame = 16 << 20
)

// name is what an object is found by.
type name struct{ namespace, name string }

// changes reads everything that happened to the objects of a list after one revision, until another has been reached, and
// returns what became of them with the revision that they are at. A watch that ends before is an error.
func (c *Cluster) changes(ctx context.Context, r plan.Resource, a address, after, until uint64) (map[name]change, uint64, error) {
	path, err := a.path()
	if err != nil {
		return nil, 0, err
	}
	leave, err := c.enter(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel() // which ends the watch
	response, err := c.send(ctx, http.MethodGet, path, url.Values{
		"watch": {"1"}, "resourceVersion": {strconv.FormatUint(after, 10)}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {strconv.Itoa(watchSeconds)},
	}, "", nil, acceptFor(r.Group))
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = response.Body.Close() }() // of no more interest
	if response.StatusCode/100 != 2 {
		_, err := c.readAll(response)
		return nil, 0, err
	}
	next, contentType, err := frames(response)
	if err != nil {
		return nil, 0, err
	}
	changed := map[name]change{}
	for at := after; at < until; {
		event, err := next()
		if err != nil {
			return nil, 0, fmt.Errorf("watch %s until %d, at %d: %w", r.Plural, until, at, err)
		}
		o, err := event.object(r, contentType)
		if err != nil {
			return nil, 0, fmt.Errorf("watch %s: %w", r.Plural, err)
		}
		if at = version(o.GetResourceVersion()); at == 0 {
			return nil, 0, fmt.Errorf("watch %s: an event without revision", r.Plural)
		}
		after = max(after, at)
		key := name{o.GetNamespace(), o.GetName()}
		switch watch.EventType(event.Type) {
		case watch.Added, watch.Modified:
			changed[key] = change{now: o}
		case watch.Deleted:
			changed[key] = change{was: o}
		case watch.Bookmark, watch.Error: // how far it is is all that it says; an error does not come here
		}
	}
	return changed, after, nil
}

// event is one event of a watch, its object still to be read.
type event struct{ metav1.WatchEvent }

// object reads what an event is about. An event that tells of an error is that error.
func (e event) object(r plan.Resource, contentType string) (plan.Object, error) {
	a := answer{contentType: contentType, body: e.Object.Raw}
	switch watch.EventType(e.Type) {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
		o := r.New()
		return o, a.object(r.GVK(), o)
	case watch.Error:
		return nil, a.refusal(&http.Response{StatusCode: http.StatusInternalServerError, Request: &http.Request{URL: &url.URL{}}})
	}
	return nil, fmt.Errorf("event of type %q", e.Type)
}

// frames returns what reads the events of a watch one by one, and the type of their objects.
func frames(response *http.Response) (next func() (event, error), contentType string, err error) {
	a := answer{contentType: response.Header.Get("Content-Type")}
	protobuf, err := a.protobuf()
	if err != nil {
		return nil, "", err
	}
	if protobuf {
		return func() (event, error) { return frame(response.Body) }, typeProtobuf, nil
	}
	lines := json.NewDecoder(response.Body)
	return func() (e event, err error) {
		var line struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := lines.Decode(&line); err != nil {
			return e, err
		}
		e.Type, e.Object.Raw = line.Type, line.Object
		return e, nil
	}, typeJSON, nil
}

// frame reads an event in protobuf: its length in four bytes, then the event.
func frame(from io.Reader) (e event, err error) {
	var size [4]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return e, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > largestFrame {
		return e, fmt.Errorf("event of %d bytes", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(from, body); err != nil {
		return e, err
	}
	return e, e.Unmarshal(body)
}
