// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/machine-functions/machine-functions/shared/beside"
	"github.com/machine-functions/machine-functions/shared/events"
	"github.com/machine-functions/machine-functions/shared/flights"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	// patience is how long a request waits for its answer. The runtime cuts it off at 30 s.
	patience = 18 * time.Second
	// maxInvocations bounds how many invocations of one process are under way at a time. Most of them wait for the API
	// server, many for the same answer: that takes little memory, and nobody is turned away for it. Knative lets as many in
	// (containerConcurrency).
	maxInvocations = 100
	// maxBusy bounds how many of those decide, ask clouds or write at a time. With more, Knative starts another process (target).
	maxBusy = 20
	// askAgain is when to ask a question again that had no place, or was not answered in time.
	askAgain = 10 * time.Second
	// stuck is how long an invocation is under way that will not end. Its budget is 24 s, which no decision looks at: one about thousands of
	// Nodes may take minutes where others need the processor.
	stuck = 15 * time.Minute
	// maxTold bounds what is logged of an error that quotes what a stranger sent.
	maxTold = 512
)

// Server answers events over HTTP. It is what the Knative Functions runtime calls.
type Server struct {
	Runner     *Runner
	Namespaces []string // that Machines may live in
	// Senders checks who sends; nil lets everybody.
	Senders *events.Verifier

	ready    readiness
	flights  *flights.Group[snapshot.Request, plan.Plan]
	question chan struct{} // the one that is being answered
	large    chan struct{} // the one that is being read; nil: none is asked here
}

// NewServer returns a server for r, whose work it bounds.
func NewServer(r *Runner, namespaces []string) *Server {
	s := &Server{Runner: r, Namespaces: namespaces, flights: flights.New[snapshot.Request, plan.Plan](maxInvocations), ready: newReadiness(), question: make(chan struct{}, 1)}
	if r.Function.Answer != nil {
		s.large = make(chan struct{}, 1)
	}
	s.flights.Joined = r.Metrics.Coalesced
	r.busy = make(chan struct{}, maxBusy)
	r.survives, r.scan = true, s.scan
	return s
}

// scan has a scan decide what woke an invocation. Those that come to it meanwhile share one with each other, and with the clock's: one
// of them waits for it, so that there are never more than two, however many objects fall ill together.
func (s *Server) scan(ctx context.Context) (plan.Plan, error) {
	var scan snapshot.Request
	if s.flights.Promised(scan) {
		return plan.Plan{}, nil
	}
	return s.join(ctx, scan, func(ctx context.Context) (plan.Plan, error) { return s.handle(ctx, scan) })
}

// Handle answers one request exactly once, within the patience of 18 s. Requests about the same object share an
// invocation that begins after they arrived. One of them waits for it, and is delivered again if it fails; the others are answered at
// once, because whoever waits takes a place in the Broker, which has few. A GET of /metrics is answered with the metrics,
// unless it comes through a proxy.
func (s *Server) Handle(w http.ResponseWriter, r *http.Request) {
	events.Hurry(w, r)
	if events.Scraped(w, r, s.Runner.Metrics) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	e, err := s.read(w, r)
	if err != nil {
		s.reply(r.Context(), w, e, plan.Plan{}, err)
		return
	}
	if e.Type == events.TypeSimulate {
		s.answer(ctx, w, r, e)
		return
	}
	req := snapshot.Request{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}
	if s.flights.Promised(req) {
		s.reply(r.Context(), w, e, plan.Plan{}, nil)
		return
	}
	p, err := s.join(ctx, req, func(ctx context.Context) (plan.Plan, error) { return s.handle(ctx, req) })
	if errors.Is(err, flights.ErrLeft) {
		s.Runner.Log.Warn("request gave up waiting", keyRequest, requestName(req), "waited", patience)
	}
	s.reply(r.Context(), w, e, p, err)
}

// read checks who sends, and reads what. What a stranger sends goes through other people's decoders: a panic of theirs is answered as
// one of ours is.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (e events.Event, err error) {
	defer s.recovered(&err, "unread")
	if s.Senders != nil {
		if err := s.Senders.Verify(r); err != nil {
			s.Runner.Log.Warn("sender refused", keyError, brief(err))
			return events.Event{}, err
		}
	}
	e, err = events.Parse(w, r, s.Namespaces, s.large)
	if err != nil {
		s.Runner.Log.Warn("event refused", keyError, brief(err))
	}
	return e, err
}

// answer answers a question before ctx ends. What it leads to is written nowhere but into the answer.
func (s *Server) answer(ctx context.Context, w http.ResponseWriter, r *http.Request, e events.Event) {
	text, err := s.ask(ctx, e)
	if err != nil {
		s.Runner.Log.Warn("question was not answered", keyError, brief(err))
		if err := events.Refuse(r.Context(), w, err); err != nil {
			s.Runner.Log.Debug("refusal was not delivered", keyError, err)
		}
		return
	}
	if err := events.Answer(r.Context(), w, e.ID+"."+s.Runner.Function.Name, s.Runner.Function.Name, text); err != nil {
		s.Runner.Log.Debug("answer was not delivered", keyError, err)
	}
}

// ask computes one question at a time, in a place of its own: whatever is asked, and by however many, takes none of those that
// scans and events need (RELIABILITY 2g). Nobody waits for the place, which is free again when the answer is there, not when its
// asker leaves: nothing ends a decision.
func (s *Server) ask(ctx context.Context, e events.Event) (json.RawMessage, error) {
	select {
	case s.question <- struct{}{}:
	default:
		return nil, &events.RetryError{Busy: true, After: askAgain, Err: errors.New("another question is being answered")}
	}
	type result struct {
		text json.RawMessage
		err  error
	}
	done := make(chan result, 1)
	go func() {
		var got result
		func() {
			defer s.recovered(&got.err, e.Type)
			got.text, got.err = s.Runner.Answer(ctx, e.Question)
		}()
		<-s.question
		done <- got
	}()
	select {
	case got := <-done:
		return got.text, got.err
	case <-ctx.Done():
		return nil, &events.RetryError{Busy: true, After: askAgain, Err: flights.ErrLeft}
	}
}

// brief returns the beginning of what err says.
func brief(err error) string {
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxTold)], "")
}

// join shares invocations. An answer that did not come in time is asked for again: the invocation goes on.
func (s *Server) join(ctx context.Context, req snapshot.Request, run func(context.Context) (plan.Plan, error)) (plan.Plan, error) {
	p, err := s.flights.Do(ctx, req, run)
	if errors.Is(err, flights.ErrLeft) || errors.Is(err, flights.ErrClosed) {
		err = &events.RetryError{Busy: true, After: time.Second, Err: err}
	}
	return p, err
}

// handle turns a panic, which is a fault of ours, into an error: one poison object must not stop the process.
func (s *Server) handle(ctx context.Context, req snapshot.Request) (p plan.Plan, err error) {
	defer s.recovered(&err, requestName(req))
	return s.Runner.Handle(ctx, req)
}

func (s *Server) recovered(err *error, request string) {
	if v := recover(); v != nil {
		p := beside.Caught(v)
		s.Runner.Log.Error("panic", keyRequest, request, keyError, p.Value, keyStack, p.Stack)
		s.Runner.Metrics.Panicked()
		*err = fmt.Errorf("%w: %v", events.ErrPanic, p.Value)
	}
}

func (s *Server) reply(ctx context.Context, w http.ResponseWriter, e events.Event, p plan.Plan, err error) {
	var d *events.Decision
	if err == nil && !p.Quiet() {
		d = &events.Decision{Function: s.Runner.Function.Name, DryRun: s.Runner.DryRun, Plan: p.String()}
		if !e.Tick() {
			d.Subject = plan.Name(plan.Kind(e.Kind), e.Namespace, e.Name)
		}
	}
	if err := events.Reply(ctx, w, e.ID+"."+s.Runner.Function.Name, d, err); err != nil && !errors.Is(err, context.Canceled) {
		s.Runner.Log.Debug("reply was not delivered", keyError, err)
	}
}

// Stop lets no further invocation begin, and waits for those under way as long as ctx does. The runtime calls it after
// SIGTERM, when it takes no more requests and the last has its answer: what goes on then is what requests gave up waiting for.
// At last it lets go of what the process has at clouds.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.flights.Close(ctx); err != nil || s.Runner.Clouds == nil {
		return err
	}
	return s.Runner.Clouds.Close(ctx)
}

// Alive reports whether every invocation of the process ends. One that does not holds up all that come about the same object, and ticks for
// ever: only another process ends that, which is safe at any time.
func (s *Server) Alive(context.Context) (bool, error) {
	if longest := s.flights.Longest(); longest >= stuck {
		return false, fmt.Errorf("an invocation has been under way for %v", longest.Round(time.Second))
	}
	return true, nil
}
