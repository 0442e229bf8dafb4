// SPDX-License-Identifier: Apache-2.0

// Package deadletter counts and names the events that no function could take, and keeps nothing of what is in them.
//
//	wakes on  dead letters
//	reads     nothing
//	writes    a log line for each, and a metric
//
// It decides nothing: what a lost event would have told, the next scan finds. Every line is an error, because a person
// should look (RELIABILITY 2g).
package deadletter

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"unicode"

	"github.com/machine-functions/machine-functions/shared/events"
)

// Name is the folder, the Knative service and the value of FUNCTION.
const Name = "dead-letter"

// maxValue bounds a logged value: nine of them, with their keys, stay under 1 kB.
const maxValue = 80

// extensions are what is told of an event besides its id, source and type: who it was about, and who could not take it.
var extensions = []string{"kind", "namespace", "name", "scan", "knativeerrordest", "knativeerrorcode"}

// Sink is the dead-letter sink. It is safe for concurrent use.
type Sink struct {
	log   *slog.Logger
	count tally
}

// New returns a Sink that writes to log.
func New(log *slog.Logger) *Sink { return &Sink{log: log.With("function", Name)} }

// Count returns how many dead letters came since the process started.
func (s *Sink) Count() uint64 { return s.count.total() }

// Handle takes every request for a dead letter and accepts it: sending it again could not help. Only where the body of a structured one
// does not come in time, the answer is 408. A GET of /metrics is answered with
// the counts.
func (s *Sink) Handle(w http.ResponseWriter, r *http.Request) {
	events.Hurry(w, r)
	if events.Scraped(w, r, &s.count) {
		return
	}
	defer s.recovered(w)
	ev, err := events.Letter(w, r)
	if errors.Is(err, events.ErrSlow) { // the one that can come again
		s.log.Error("dead letter comes too slowly")
		_ = events.Reply(r.Context(), w, "", nil, err) // who left needs none
		return
	}
	if err != nil {
		s.log.Error("dead letter is not a cloudevent", "count", s.count.add(series{}))
		w.WriteHeader(http.StatusAccepted)
		return
	}
	line := []any{"count", s.count.add(seriesOf(ev.Extensions())), "event_id", cut(ev.ID()), "event_source", cut(ev.Source()), "event_type", cut(ev.Type())}
	for _, name := range extensions {
		if value, ok := ev.Extensions()[name].(string); ok && value != "" {
			line = append(line, name, cut(value))
		}
	}
	s.log.Error("dead letter", line...)
	w.WriteHeader(http.StatusAccepted)
}

// recovered accepts what a decoder panicked about: it would do so again.
func (s *Sink) recovered(w http.ResponseWriter) {
	if v := recover(); v != nil {
		s.log.Error("panic", "count", s.count.add(series{}), "error", cut(fmt.Sprint(v)))
		w.WriteHeader(http.StatusAccepted)
	}
}

func cut(s string) string {
	if len(s) > maxValue {
		s = s[:maxValue]
	}
	return strings.Map(func(r rune) rune {
		if r == '"' || r == '\\' || !unicode.IsPrint(r) {
			return '?' // JSON would make up to six bytes of it
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}
