// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/throttle"
)

// coded classifies what a call came to. Only an answer in the form of OpenStack's own errors proves anything: a page of
// a proxy, a redirect, 5xx or silence may hide a request that worked (RELIABILITY 2b.4). No answer makes a Machine
// Failed: of what Nova objects to, most is mended on the cloud's side (SPEC E2, E18).
func coded(doing string, err error) error {
	if e, ok := errors.AsType[*provider.Error](err); ok { // the throttle's: nothing was sent
		return provider.ErrorAfter(e.Code, e.RetryAfter, "%s: %w", doing, e)
	}
	if e, ok := errors.AsType[*gophercloud.ErrUnableToReauthenticate](err); ok {
		return refusedLogin(coded(doing+": log in again", e.ErrReauth))
	}
	if e, ok := errors.AsType[*gophercloud.ErrErrorAfterReauthentication](err); ok {
		return coded(doing, e.ErrOriginal)
	}
	answer, ok := answerOf(err)
	if e, isURL := errors.AsType[*url.Error](err); isURL { // the address, with all that was asked for, helps nobody
		err = e.Err
	}
	if !ok {
		return unanswered(doing, err)
	}
	after := throttle.After(answer.ResponseHeader)
	said, understood := message(answer.Body)
	if !understood {
		return provider.ErrorAfter(provider.Unknown, after, "%s: %d %s, and no error of OpenStack's: see what answers in its place, such as a proxy", doing, answer.Actual, http.StatusText(answer.Actual))
	}
	code := codeOf(answer.Actual, said)
	if code == provider.Denied && answer.Actual == http.StatusForbidden {
		said += "; the user of the credentials lacks a role"
	}
	if code == provider.Exhausted && answer.Actual == http.StatusRequestEntityTooLarge && after > 0 { // of rate limits in older services
		code = provider.Throttled
	}
	return provider.ErrorAfter(code, after, "%s: %w", doing, &refusal{answer.Actual, said})
}

// refusedLogin returns the error of a login as a denial if it is an answer: whatever the identity service objects to, also what it
// does not find, a person must mend it, and it is no word of what the login was for.
func refusedLogin(err error) error {
	e, ok := errors.AsType[*provider.Error](err)
	if ok && (e.Code == provider.NotFound || e.Code == provider.Invalid || e.Code == provider.Exhausted) {
		return provider.Errorf(provider.Denied, "%w", err)
	}
	return err
}

// unanswered is a call that nothing of OpenStack's answered.
func unanswered(doing string, err error) error {
	if provider.Untrusted(err) {
		return provider.Errorf(provider.Denied, "%s: %w; see to key %s of the credentials secret", doing, err, caKey)
	}
	return provider.Errorf(provider.Unknown, "%s: %s%w", doing, lost(err), err)
}

// lost begins the message about an answer that did not come, or not whole.
func lost(err error) string {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time, see whether the service works: "
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.As(err, &syntax):
		return "the answer is cut off or not OpenStack's, see what answers in its place, such as a proxy: "
	}
	return ""
}

// errEmpty is an answer without what was asked for.
var errEmpty = errors.New("the answer is empty")

// refusal is an error in OpenStack's own form.
type refusal struct {
	status  int
	message string
}

// Error tells what the service said.
func (r *refusal) Error() string { return fmt.Sprintf("%s (%d)", r.message, r.status) }

// refusedWith reports whether a service refused with this status.
func refusedWith(err error, status int) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status == status
}

func answerOf(err error) (gophercloud.ErrUnexpectedResponseCode, bool) {
	if e, ok := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err); ok {
		return e, true
	}
	if e, ok := errors.AsType[*gophercloud.ErrUnexpectedResponseCode](err); ok {
		return *e, true
	}
	return gophercloud.ErrUnexpectedResponseCode{}, false
}

// codeOf returns what a service's own refusal means. Nova answers 403 where a quota is used up, as if it were a right
// that is missing; the other services have 409 and 413 for that.
func codeOf(status int, said string) provider.Code {
	switch {
	case status >= 500 || status < 400:
		return provider.Unknown
	case status == http.StatusUnauthorized:
		return provider.Denied
	case status == http.StatusForbidden && !strings.Contains(strings.ToLower(said), "quota"):
		return provider.Denied
	case status == http.StatusNotFound:
		return provider.NotFound
	case status == http.StatusTooManyRequests, status == 498:
		return provider.Throttled
	}
	return provider.Exhausted
}

// message returns what an error of OpenStack's says; the second result is false for anything else. Keystone, Nova and
// Cinder wrap one object in another that is named after the kind of error, Neutron does so or gives text, some give
// the object alone, with its title or code: gateways before a cloud give a message and neither.
func message(body []byte) (string, bool) {
	var outer map[string]json.RawMessage
	if json.Unmarshal(body, &outer) != nil {
		return "", false
	}
	var text string
	if json.Unmarshal(outer["message"], &text) == nil && text != "" && (outer["title"] != nil || outer["code"] != nil) {
		return shorten(text), true
	}
	for _, raw := range outer {
		var inner struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(raw, &inner) == nil && inner.Message != "" {
			return shorten(inner.Message), true
		}
	}
	if json.Unmarshal(outer["NeutronError"], &text) == nil && text != "" {
		return shorten(text), true
	}
	return "", false
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
