// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/throttle"
)

// refusal is an error in the engine's own form.
type refusal struct {
	status         int
	reason, detail string
}

// Error tells what the engine said.
func (r *refusal) Error() string {
	text := r.sentence()
	if text == "" {
		text = r.reason
	}
	return fmt.Sprintf("%s (%d)", text, r.status)
}

// sentence returns what the engine said, which may be nothing.
func (r *refusal) sentence() string { return strings.Trim(r.detail, "[]") }

// silent reports whether the engine refused, and not in words.
func silent(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.sentence() == ""
}

// refusedWith reports whether the engine refused with this status.
func refusedWith(err error, status int) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status == status
}

// says reports whether the engine refused in a sentence with one of these words.
func says(err error, some ...string) bool {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return false
	}
	text := strings.ToLower(r.detail)
	for _, s := range some {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// busy reports whether the engine refused because something else is at the same thing: the step waits, and is no failure. Each of these is a
// sentence of the engine's, as names may stand in others.
func busy(err error) bool {
	return refusedWith(err, http.StatusConflict) && says(err, "operation is currently in progress.", " is locked.", " are locked: ", "please try again later",
		"please try again in a few minutes", "vm is being ", "is currently being created", "please wait for the operation to finish", "during a backup operation.", "in saving/restoring state.")
}

// refuses reports whether the engine said that it does not do it, and nothing else is at the same thing.
func refuses(err error) bool {
	_, said := errors.AsType[*refusal](err)
	code := provider.CodeOf(err)
	return said && !busy(err) && (code == provider.Exhausted || code == provider.Denied || code == provider.Invalid)
}

// engineOnly makes what no engine answers an error that says so.
type engineOnly struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (e engineOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := e.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch wait := throttle.After(res.Header); {
	case res.StatusCode == http.StatusTooManyRequests:
		err = provider.ErrorAfter(provider.Throttled, wait, "HTTP status %s: too many requests", res.Status)
	case res.StatusCode == http.StatusServiceUnavailable:
		err = provider.ErrorAfter(provider.Unknown, wait, "HTTP status %s: the engine is starting or overloaded", res.Status)
	case res.StatusCode >= http.StatusMultipleChoices && res.StatusCode < http.StatusBadRequest:
		err = provider.Errorf(provider.Unknown, "HTTP status %s: no redirect is followed: see whether key %s of the credentials secret is the engine's own address", res.Status, keyURL)
	case kind == "text/html" && res.StatusCode != http.StatusUnauthorized: // which the engine's own web server writes for people
		err = provider.Errorf(provider.Unknown, "HTTP status %s with a page for people: is a proxy between, or another service behind this name", res.Status)
	default:
		return res, nil
	}
	_ = res.Body.Close() // nobody reads it
	return nil, err
}

// judge returns the error of an answer, or nil.
func (s *session) judge(doing string, res *http.Response, body []byte) error {
	var action struct { // which comes back with its fault in it
		Status string     `json:"status"`
		Fault  *faultBody `json:"fault"`
	}
	failed := json.Unmarshal(body, &action) == nil && action.Fault != nil
	if res.StatusCode >= http.StatusOK && res.StatusCode < http.StatusMultipleChoices {
		if failed && action.Status != "complete" { // of an action that was taken and failed
			return s.refused(doing, http.StatusConflict, *action.Fault)
		}
		return nil
	}
	if res.StatusCode == http.StatusUnauthorized {
		return &refusal{status: res.StatusCode, reason: http.StatusText(res.StatusCode)}
	}
	if res.StatusCode == http.StatusNotFound && len(bytes.TrimSpace(body)) == 0 { // as the engine says it of one thing
		return s.refused(doing, res.StatusCode, faultBody{Reason: http.StatusText(res.StatusCode)})
	}
	var f faultBody
	if failed {
		f = *action.Fault
	} else if json.Unmarshal(body, &f) != nil {
		f = faultBody{}
	}
	if f == (faultBody{}) {
		return provider.ErrorAfter(provider.Unknown, throttle.After(res.Header), "%s: %d %s, and no fault of an engine's: see what answers in its place, such as a proxy",
			doing, res.StatusCode, http.StatusText(res.StatusCode))
	}
	return s.refused(doing, res.StatusCode, f)
}

// faultBody is a refusal as the engine writes it.
type faultBody struct {
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}

func (s *session) refused(doing string, status int, f faultBody) error {
	r := &refusal{status, s.plain(f.Reason), s.plain(f.Detail)}
	code := codeOf(r)
	if code == provider.Denied {
		return provider.Errorf(code, "%s: %w; the user of the credentials lacks a permission", doing, r)
	}
	return provider.Errorf(code, "%s: %w", doing, r)
}

// codeOf returns what a refusal means. "Operation Failed" is what the engine says where its own state stands against it, be it with 400 or
// with 409: that may be mended there, and nobody's Machine fails for it. A request that it cannot read will never be another.
func codeOf(r *refusal) provider.Code {
	switch {
	case r.status >= http.StatusInternalServerError || r.status < http.StatusBadRequest:
		return provider.Unknown
	case r.status == http.StatusUnauthorized, r.status == http.StatusForbidden, denies(r.detail):
		return provider.Denied
	case r.status == http.StatusNotFound:
		return provider.NotFound
	case r.status == http.StatusTooManyRequests:
		return provider.Throttled
	case r.status == http.StatusBadRequest && !strings.EqualFold(r.reason, "Operation Failed"), r.status == http.StatusUnprocessableEntity:
		return provider.Invalid
	}
	return provider.Exhausted
}

// denies reports whether a sentence is about what a user may do.
func denies(detail string) bool {
	detail = strings.ToLower(detail)
	return strings.Contains(detail, "not authorized") || strings.Contains(detail, "insufficient permissions")
}

// coded gives an error of the wire its code. Only a fault of the engine's proves anything: silence may hide a request that worked.
func (s *session) coded(doing string, err error) error {
	if e, ok := errors.AsType[*provider.Error](err); ok {
		return provider.ErrorAfter(e.Code, e.RetryAfter, "%s: %w", doing, e)
	}
	if provider.Untrusted(err) {
		return provider.Errorf(provider.Denied, "%s: %w; see to key %s in credentials secret %s/%s", doing, inner(err), keyBundle, s.account.Namespace, s.account.Secret)
	}
	return provider.Errorf(provider.Unknown, "%s: %s%w", doing, lost(err), inner(err))
}

// inner returns err without the address, which tells all that was asked for and helps nobody.
func inner(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// lost begins the message about an answer that did not come, or not whole.
func lost(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time, see whether the engine works: "
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the answer is cut off, see what answers in the engine's place, such as a proxy: "
	}
	return ""
}

// after returns how long a refusal that is remembered still stands.
func after(err error) time.Duration {
	if e, ok := errors.AsType[*provider.Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// shorten keeps messages fit for an Event.
func shorten(text string) string {
	const most = 400
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
