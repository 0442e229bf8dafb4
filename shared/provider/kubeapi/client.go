// SPDX-License-Identifier: Apache-2.0

// Package kubeapi reaches the API server for the drivers whose cloud is one: hosts of bare metal, simulated instances.
// It knows no kinds; the product's own objects go through cluster.
package kubeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/webhook"
)

// maxAnswer bounds what is read of one answer: some 50,000 small objects.
const maxAnswer = 128 << 20

// What the API server answers about an object.
var (
	ErrExists   = errors.New("object exists")
	ErrGone     = errors.New("object is gone")
	ErrConflict = errors.New("object changed since it was read")
)

// ErrUnserved is a path that nothing is served under: the API server knows no such kind, or does not get the request.
var ErrUnserved = errors.New("nothing is served there")

// Client makes requests to one API server. It is safe for concurrent use.
type Client struct {
	client *http.Client
	base   *url.URL
}

// New returns a client of the API server that config describes, without asking it anything.
func New(config *rest.Config) (*Client, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	here := *client // that one may be everybody's; a write that is sent elsewhere becomes a GET there
	here.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{&here, base}, nil
}

// Request is one request: a path below the server's root, each part of which is one segment unless it is empty, and a body that is
// written as JSON unless it is nil.
type Request struct {
	Method string
	Path   []string
	Query  url.Values
	Body   any
}

// Do makes a request and decodes the answer into out. What the API server refuses is ErrExists, ErrGone, ErrConflict, an
// error with a code where it speaks of rights or of haste, or an [apierrors.APIStatus]; an answer that something else gave
// proves nothing and is none of these.
func (c *Client) Do(ctx context.Context, r Request, out any) error {
	for _, part := range r.Path {
		if wrong := content.IsPathSegmentName(part); part != "" && len(wrong) > 0 { // it would lead elsewhere
			return fmt.Errorf("name %q %s", part, wrong[0])
		}
	}
	target := c.base.JoinPath(r.Path...)
	target.RawQuery = r.Query.Encode()
	var body io.Reader = http.NoBody
	if r.Body != nil {
		b, err := json.Marshal(r.Body)
		if err != nil {
			return fmt.Errorf("write request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, target.String(), body)
	if err != nil {
		return fmt.Errorf("write request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if r.Method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.client.Do(req)
	if err != nil {
		return fmt.Errorf("reach the API server: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // everything was read, or the error says why not
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the API server's answer: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return classify(r.Method, refusal(resp.StatusCode, answer))
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("read the API server's answer: %w", err)
	}
	return asked(answer, out)
}

// asked reports an error unless an answer is of the kind that it was read as, with items if that is a list: the API server
// always tells both, and an answer without them proves no absence. Of what is no API type it is asked only that it is of
// some kind.
func asked(answer []byte, out any) error {
	o, typed := out.(runtime.Object)
	if !typed {
		var some metav1.TypeMeta
		if err := json.Unmarshal(answer, &some); err != nil || some.Kind == "" {
			return fmt.Errorf("read the API server's answer: it is of no kind: %.200s", answer)
		}
		return nil
	}
	want, got := reflect.TypeOf(o).Elem().Name(), o.GetObjectKind().GroupVersionKind().Kind
	if got != want {
		return fmt.Errorf("read the API server's answer: it is of kind %q, not %s: %.200s", got, want, answer)
	}
	if items, err := meta.GetItemsPtr(o); err == nil && reflect.ValueOf(items).Elem().IsNil() {
		return fmt.Errorf("read the API server's answer: %s without items: %.200s", want, answer)
	}
	return nil
}

// Lacks reports whether the API server says that it serves nothing of a group. It says so of a path by a page that a proxy
// might have written as well (ErrUnserved); the list of its groups nobody else writes.
func (c *Client) Lacks(ctx context.Context, group string) bool {
	var served metav1.APIGroupList
	err := c.Do(ctx, Request{Method: http.MethodGet, Path: []string{"apis"}}, &served)
	return err == nil && !slices.ContainsFunc(served.Groups, func(g metav1.APIGroup) bool { return g.Name == group })
}

func refusal(code int, answer []byte) error {
	var s metav1.Status
	if err := json.Unmarshal(answer, &s); err != nil || s.Kind != "Status" || int(s.Code) != code { // it always says its own status
		if code == http.StatusNotFound {
			return fmt.Errorf("reach the API server: HTTP status %d: %.200s: %w", code, answer, ErrUnserved)
		}
		return fmt.Errorf("reach the API server: HTTP status %d: %.200s", code, answer)
	}
	return &apierrors.StatusError{ErrStatus: s}
}

// classify turns a refusal into what a driver does about it. That there is nothing to create something in is no absence of
// that.
func classify(method string, err error) error {
	switch {
	case denied(err):
		return provider.Errorf(provider.Denied, "%w", err)
	case apierrors.IsNotFound(err) && method != http.MethodPost:
		return ErrGone
	case apierrors.IsAlreadyExists(err):
		return ErrExists
	case apierrors.IsConflict(err):
		return ErrConflict
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return provider.Errorf(provider.Denied, "%w", err)
	case apierrors.IsTooManyRequests(err):
		after, _ := apierrors.SuggestsClientDelay(err)
		return provider.ErrorAfter(provider.Throttled, time.Duration(after)*time.Second, "%w", err)
	}
	return err
}

// denied reports whether an admission webhook said no with a refusal's code, whichever: the object is as it was. Many say 400.
func denied(err error) bool {
	s, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && s.ErrStatus.Code/100 == 4 && webhook.Denied(err)
}

// Again repeats f as long as others are faster: as long as its error is one of those.
func Again(ctx context.Context, f func() error, faster ...error) error {
	for {
		err := f()
		if !slices.ContainsFunc(faster, func(e error) bool { return errors.Is(err, e) }) {
			return err
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
}
