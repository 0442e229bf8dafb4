// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machine-functions/machine-functions/shared/plan"
)

const (
	// requestTimeout bounds one request with its whole answer (RELIABILITY G6).
	requestTimeout = 10 * time.Second
	// maxRequests bounds the requests of one process that are under way at a time: more of them make a busy server slower
	// for everybody, and their answers take memory.
	maxRequests = 20
)

// address is where something is served. Empty parts are left out.
type address struct {
	group                                schema.GroupVersion
	plural, namespace, name, subresource string
}

func of(o plan.Object) (plan.Resource, address, error) {
	r, ok := plan.ResourceOf(plan.KindOf(o))
	if !ok {
		return r, address{}, fmt.Errorf("%T is not a kind that functions know", o)
	}
	return r, address{group: r.Group, plural: r.Plural, namespace: o.GetNamespace(), name: o.GetName()}, nil
}

// path fails on names that would lead elsewhere.
func (a address) path() (string, error) {
	parts := []string{"", "apis", a.group.Group, a.group.Version}
	if a.group.Group == "" {
		parts = []string{"", "api", a.group.Version}
	}
	if a.namespace != "" {
		parts = append(parts, "namespaces", a.namespace)
	}
	for _, p := range []string{a.plural, a.name, a.subresource} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	for _, p := range parts {
		if wrong := content.IsPathSegmentName(p); len(wrong) > 0 {
			return "", fmt.Errorf("name %q %s", p, wrong[0])
		}
	}
	return strings.Join(parts, "/"), nil
}

// answer is a successful response, read to its end.
type answer struct {
	contentType string
	body        []byte
	date        time.Time // the server's clock; zero if it did not tell
}

// read makes a GET request.
func (c *Cluster) read(ctx context.Context, a address, query url.Values) (answer, error) {
	path, err := a.path()
	if err != nil {
		return answer{}, err
	}
	return c.call(ctx, http.MethodGet, path, query, "", nil, acceptFor(a.group))
}

// write makes a request that changes something. That it did is what the API server alone says: the page of a proxy, which may well be
// of status 200, is an error that proves nothing.
func (c *Cluster) write(ctx context.Context, method string, a address, contentType string, body any) error {
	path, err := a.path()
	if err != nil {
		return err
	}
	text, ok := body.([]byte)
	if !ok {
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	query := url.Values{}
	if method != http.MethodDelete {
		query.Set("fieldManager", c.FieldManager)
	}
	said, err := c.call(ctx, method, path, query, contentType, text, typeJSON)
	if err != nil {
		return err
	}
	return said.written()
}

// written reports an error unless the answer to a write is an object, or a Status, as every one of the API server's is.
func (a answer) written() error {
	if _, err := a.protobuf(); err != nil {
		return err
	}
	var is metav1.TypeMeta
	if err := json.Unmarshal(a.body, &is); err != nil || is.Kind == "" || is.APIVersion == "" {
		return errors.New("the answer to a write is no object of the API's")
	}
	return nil
}

// call makes one request. Its error is a *apierrors.StatusError exactly if the API server itself said no.
func (c *Cluster) call(ctx context.Context, method, path string, query url.Values, contentType string, body []byte, accept string) (answer, error) {
	leave, err := c.enter(ctx)
	if err != nil {
		return answer{}, err
	}
	defer leave()
	return c.callNow(ctx, method, path, query, contentType, body, accept)
}

// enter waits until a request may begin, for as long as ctx lasts: its time runs from then on. The request is over when
// leave is called.
func (c *Cluster) enter(ctx context.Context) (leave func(), err error) {
	select {
	case c.places <- struct{}{}:
		return func() { <-c.places }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for %d other requests: %w", maxRequests, ctx.Err())
	}
}

// callNow makes one request, however many are under way.
func (c *Cluster) callNow(ctx context.Context, method, path string, query url.Values, contentType string, body []byte, accept string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	response, err := c.send(ctx, method, path, query, contentType, body, accept)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }() // read to its end, or of no more interest
	return c.readAll(response)
}

// send makes one request and returns the beginning of its answer.
func (c *Cluster) send(ctx context.Context, method, path string, query url.Values, contentType string, body []byte, accept string) (*http.Response, error) {
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	return c.client.Do(request)
}

// readAll reads an answer to its end.
func (c *Cluster) readAll(response *http.Response) (a answer, err error) {
	a.contentType = response.Header.Get("Content-Type")
	if a.body, err = io.ReadAll(response.Body); err != nil {
		return answer{}, fmt.Errorf("%s %s: %w", response.Request.Method, response.Request.URL.Path, err)
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		a.date = date
		c.ahead.Store(int64(time.Since(date)))
	}
	if response.StatusCode/100 != 2 {
		return a, a.refusal(response)
	}
	return a, nil
}

// refusal returns what an answer that is no success says. Only the API server's own Status proves anything; a page of
// a proxy does not (RELIABILITY G5). The body of anything else stays out of the error: it may be large, or secret.
func (a answer) refusal(response *http.Response) error {
	var status metav1.Status
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "Status"}
	if a.object(gvk, &status) != nil || status.Status != metav1.StatusFailure {
		return &pageError{code: response.StatusCode, url: response.Request.URL.Path}
	}
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	if seconds, err := strconv.ParseInt(response.Header.Get("Retry-After"), 10, 32); err == nil {
		status.Details.RetryAfterSeconds = int32(seconds)
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// pageError is an HTTP error without an API Status: of a proxy, or of an API server that does not serve the path.
type pageError struct {
	code int
	url  string
}

func (e *pageError) Error() string {
	return fmt.Sprintf("%s: %d %s without an API status", e.url, e.code, http.StatusText(e.code))
}
