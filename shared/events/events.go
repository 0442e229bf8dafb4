// SPDX-License-Identifier: Apache-2.0

// Package events turns HTTP requests into CloudEvents, decisions into replies, errors into the status codes that
// Knative understands.
package events

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/machine-functions/machine-functions/shared/plan"
)

// maxHeader bounds the names and values of a request's headers. A Reference event with a token has 3 kB.
const maxHeader = 16 << 10

// Event types that wake functions.
const (
	TypeRefPrefix = "dev.knative.apiserver.ref."
	TypePing      = "dev.knative.sources.ping"
	// TypeSimulate asks what would be decided if. It is answered from its data and never applied.
	TypeSimulate = "machine.autoscale.simulate"
	// TypeSimulated is the answer.
	TypeSimulated = "machine.autoscale.simulated"
)

// Event says who woke a function. Nothing else of an event is ever used (RELIABILITY G1), but for questions: their data
// leads to an answer, never to a deed.
type Event struct {
	ID, Type                          string
	APIVersion, Kind, Namespace, Name string // all empty: a tick, or a question
	Question                          []byte // of a TypeSimulate
}

// Tick reports whether the clock sent the event.
func (e Event) Tick() bool { return e.Name == "" && e.Type != TypeSimulate }

// ErrMalformed is an event that no redelivery can mend; it goes to the dead-letter sink at once.
var ErrMalformed = errors.New("malformed event")

// ErrPanic is a fault of ours.
var ErrPanic = errors.New("panic")

// names are DNS subdomains of at most 253 characters, kinds and versions are shorter still: what an API server can
// have sent, so that nothing else gets into a path or a log.
var (
	nameForm    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
	kindForm    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)
	requestForm = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9._]{0,252}$`) // kubelets name their signing requests by a hash
	versionForm = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?v[a-z0-9]{1,30}$`)
)

// Parse reads the event of a request in binary or structured mode. Its error is ErrMalformed: no CloudEvent, one that can be read
// in two ways, an attribute of more than 1 kB or with control characters, an unknown type, more than 16 kB of headers or 64 kB of
// body, a name that no object can have, a version that a kind which functions know does not have, or a namespace that is not among the
// allowed ones; or ErrSlow. Cluster-scoped objects have no namespace. Where questions are asked, large has a place for each body
// of up to 1 MiB that may be read at a time, and the error where none is left is a RetryError; elsewhere it is nil.
func Parse(w http.ResponseWriter, r *http.Request, allowed []string, large chan struct{}) (Event, error) {
	if n := headerSize(r.Header); n > maxHeader {
		return Event{}, fmt.Errorf("%w: headers of %d bytes", ErrMalformed, n)
	}
	body, done, err := read(w, r, large)
	if err != nil {
		return Event{}, err
	}
	defer done()
	ev, err := eventOf(r, body)
	if err == nil {
		err = inBounds(ev)
	}
	if err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	e := Event{ID: ev.ID(), Type: ev.Type()}
	switch {
	case e.Type == TypePing:
		return e, nil
	case e.Type == TypeSimulate:
		e.Question = ev.Data()
		return e, nil
	case !strings.HasPrefix(e.Type, TypeRefPrefix):
		return Event{}, fmt.Errorf("%w: type %.80q", ErrMalformed, e.Type)
	}
	e.APIVersion, e.Kind = extension(ev, "apiversion"), extension(ev, "kind")
	e.Namespace, e.Name = extension(ev, "namespace"), extension(ev, "name")
	return e, e.check(allowed)
}

func headerSize(h http.Header) (n int) {
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(v)
		}
	}
	return n
}

func (e Event) check(allowed []string) error {
	names := nameForm
	if e.Kind == "CertificateSigningRequest" {
		names = requestForm
	}
	for _, f := range []struct {
		field, value string
		form         *regexp.Regexp
	}{{"name", e.Name, names}, {"kind", e.Kind, kindForm}, {"apiversion", e.APIVersion, versionForm}} {
		if !f.form.MatchString(f.value) {
			return fmt.Errorf("%w: %s %.80q", ErrMalformed, f.field, f.value)
		}
	}
	if want := versionsOf(e.Kind); len(want) > 0 && !slices.Contains(want, e.APIVersion) {
		return fmt.Errorf("%w: apiversion %.80q of kind %s, want %s", ErrMalformed, e.APIVersion, e.Kind, strings.Join(want, " or "))
	}
	if e.Namespace != "" && !slices.Contains(allowed, e.Namespace) {
		return fmt.Errorf("%w: namespace %.80q is not served", ErrMalformed, e.Namespace)
	}
	return nil
}

// versionsOf returns in which versions functions know a kind, by the word for it; none of one that they do not know.
func versionsOf(kind string) (all []string) {
	for _, r := range plan.Resources() {
		if r.GVK().Kind == kind {
			all = append(all, r.Group.String())
		}
	}
	return all
}

func extension(ev *event.Event, name string) string {
	s, _ := ev.Extensions()[name].(string)
	return s
}

// RetryError is work that is not finished and shall be delivered again: because it waits for somebody else
// (Busy: 429), or because something failed that may pass (503).
type RetryError struct {
	Busy  bool
	After time.Duration
	Err   error
}

// Error returns the cause.
func (e *RetryError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RetryError) Unwrap() error { return e.Err }

// Status maps the result of an invocation to an HTTP status (RELIABILITY 2g). Knative redelivers 5xx, 404, 408, 409
// and 429; any other 4xx goes to the dead-letter sink at once.
func Status(err error) int {
	retry, isRetry := errors.AsType[*RetryError](err)
	switch {
	case err == nil:
		return http.StatusAccepted
	case errors.Is(err, ErrMalformed):
		return http.StatusBadRequest
	case errors.Is(err, ErrSlow):
		return http.StatusRequestTimeout
	case errors.Is(err, ErrUnauthorized):
		return http.StatusUnauthorized
	case errors.Is(err, ErrPanic):
		return http.StatusInternalServerError
	case isRetry && retry.Busy:
		return http.StatusTooManyRequests
	}
	return http.StatusServiceUnavailable
}
