// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/events"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Whoever asks a question is told what is wrong with it, and with the answer not what else went wrong.
func TestWrongQuestionIsToldWhatIsWrong(t *testing.T) {
	t.Parallel()
	f := label(wantLabel)
	f.Answer = func(snapshot.Snapshot, json.RawMessage) (json.RawMessage, error) {
		return nil, errors.New(`pods[1]: spec.priorityClassName "batch" is not looked up: say priority`)
	}
	api := world(t, 1)
	for _, c := range []struct {
		reads cluster.Cluster
		code  int
		body  string
	}{
		{api.As("label"), http.StatusBadRequest, `pods[1]: spec.priorityClassName "batch"`},
		{failing{api.As("label")}, http.StatusServiceUnavailable, http.StatusText(http.StatusServiceUnavailable)},
	} {
		w := post(NewServer(testRunner(f, c.reads), nil), events.TypeSimulate)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.body) || strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("%d %q, want %d %q", w.Code, w.Body, c.code, c.body)
		}
	}
}

// failing is an API server of which nothing can be read.
type failing struct{ cluster.Cluster }

// Observe fails in words that are not for everybody.
func (failing) Observe(_ context.Context, s snapshot.Snapshot, _ []snapshot.Query) (snapshot.Snapshot, error) {
	return s, errors.New("proxy password hunter2 refused")
}

// However many ask, one question is computed at a time, and in no place of the invocations: whoever else asks is sent away at once,
// and events are handled meanwhile. An asker who leaves makes no room: what he asked for is still computed.
func TestQuestionsKeepNobodyWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const takes = 40 * time.Second
		asked := 0
		f := label(func(snapshot.Snapshot) plan.Plan { return plan.Plan{} })
		f.Answer = func(snapshot.Snapshot, json.RawMessage) (json.RawMessage, error) {
			asked++
			time.Sleep(takes)
			return json.RawMessage("{}"), nil
		}
		s := NewServer(testRunner(f, world(t, 1).As("label")), nil)
		for range maxBusy - 1 { // with the question, one more would be too many
			s.Runner.busy <- struct{}{}
		}
		first := make(chan int)
		go func() { first <- post(s, events.TypeSimulate).Code }()
		synctest.Wait()
		began := time.Now()
		for range 2 * maxInvocations {
			if w := post(s, events.TypeSimulate); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
				t.Errorf("a second question: %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
			}
		}
		if w := post(s, events.TypePing); w.Code != http.StatusAccepted || time.Since(began) > 0 {
			t.Errorf("a scan beside questions: %d after %v", w.Code, time.Since(began))
		}
		if code := <-first; code != http.StatusTooManyRequests || time.Since(began) != patience {
			t.Errorf("%d after %v, want to be sent away after %v", code, time.Since(began), patience)
		}
		if w := post(s, events.TypeSimulate); w.Code != http.StatusTooManyRequests || asked != 1 {
			t.Errorf("%d while the first is computed, %d were computed", w.Code, asked)
		}
		time.Sleep(takes - patience)
		synctest.Wait()
		go func() { first <- post(s, events.TypeSimulate).Code }()
		synctest.Wait()
		if asked != 2 {
			t.Error("there is no place after the first")
		}
		<-first
		time.Sleep(takes)
	})
}

// Who left before all was read needs no answer.
func TestNobodyComputesForWhoLeft(t *testing.T) {
	t.Parallel()
	f := label(wantLabel)
	f.Answer = func(snapshot.Snapshot, json.RawMessage) (json.RawMessage, error) {
		t.Error("computed")
		return nil, nil
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	r := testRunner(f, world(t, 1).As("label"))
	if _, err := r.Answer(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Only who answers questions reads more than an event can have, one body at a time: a hundred of 1 MiB are more than a process has
// memory for.
func TestLargeBodiesAreForQuestions(t *testing.T) {
	t.Parallel()
	f := label(func(snapshot.Snapshot) plan.Plan { return plan.Plan{} })
	plain := NewServer(testRunner(f, world(t, 1).As("label")), nil)
	f.Answer = func(snapshot.Snapshot, json.RawMessage) (json.RawMessage, error) { return json.RawMessage("{}"), nil }
	questions := NewServer(testRunner(f, world(t, 1).As("label")), nil)
	large := func(s *Server) int {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"specversion":"1.0","id":"1","source":"x","type":"dev.knative.sources.ping","data":"`+strings.Repeat("x", 1<<19)+`"}`))
		r.Header.Set("Content-Type", "application/cloudevents+json")
		w := httptest.NewRecorder()
		s.Handle(w, r)
		return w.Code
	}
	if a, b := large(plain), large(questions); a != http.StatusBadRequest || b != http.StatusAccepted {
		t.Errorf("%d without questions, %d with", a, b)
	}
	questions.large <- struct{}{}
	if code := large(questions); code != http.StatusTooManyRequests {
		t.Errorf("%d while another is read", code)
	}
}

// Of what a stranger sends, no more is logged than tells what is wrong with it.
func TestRefusalsAreLoggedInShort(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := label(wantLabel)
	f.Answer = func(snapshot.Snapshot, json.RawMessage) (json.RawMessage, error) {
		return nil, errors.New("prices: " + strings.Repeat("x", 1<<20) + " has none")
	}
	s := NewServer(&Runner{Function: f, Cluster: world(t, 1).As("label"), Log: slog.New(slog.NewJSONHandler(&log, nil))}, nil)
	if w := post(s, events.TypeSimulate); w.Code != http.StatusBadRequest || log.Len() > 1024 || !strings.Contains(log.String(), "prices: xxx") {
		t.Errorf("%d, %d bytes are logged: %.300s", w.Code, log.Len(), log.String())
	}
	log.Reset()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"specversion":"`+strings.Repeat("x", 1<<15)+`"}`))
	r.Header.Set("Content-Type", "application/cloudevents+json")
	if s.Handle(httptest.NewRecorder(), r); log.Len() == 0 || log.Len() > 1024 {
		t.Errorf("%d bytes are logged: %.300s", log.Len(), log.String())
	}
}
