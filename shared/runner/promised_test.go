// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/events"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// refusing is an API server that takes its time to refuse a write.
type refusing struct{ cluster.Cluster }

func (c refusing) Apply(context.Context, plan.Action) error {
	time.Sleep(2 * time.Second)
	return errors.New("refused")
}

// Of all who tell of one object while it is decided about, one waits for the next invocation, which sees what all of them know, and is told
// how it ended: what fails is delivered again once. The others are answered at once: who is answered late takes a place in the Broker.
func TestOneWaitsForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := refusing{world(t, 1).As("label")}
		s := NewServer(testRunner(label(wantLabel), api), nil)
		began := time.Now()
		type answer struct {
			status int
			atOnce bool
		}
		answers := make([]answer, 5)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() {
				w := postAbout(s, events.TypeRefPrefix+"update", snapshot.Request{APIVersion: "v1", Kind: "Node", Name: "n0"})
				answers[i] = answer{w.Code, time.Since(began) < time.Second}
			})
			synctest.Wait()
		}
		all.Wait()
		for i, want := range []answer{
			{http.StatusServiceUnavailable, false}, // it is decided about
			{http.StatusServiceUnavailable, false}, // it waits
			{http.StatusAccepted, true}, {http.StatusAccepted, true}, {http.StatusAccepted, true},
		} {
			if answers[i] != want {
				t.Errorf("event %d: %+v, want %+v", i, answers[i], want)
			}
		}
	})
}

// A question is never told that somebody else waits for its answer: a tick, which names nothing either, waits for an invocation of its own.
func TestQuestionsArePromisedNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := label(wantLabel)
		f.Answer = func(snapshot.Snapshot, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"fits":[]}`), nil
		}
		s := NewServer(testRunner(f, refusing{world(t, 1).As("label")}), nil)
		var ticks sync.WaitGroup
		for range 2 {
			ticks.Go(func() { post(s, events.TypePing) })
			synctest.Wait()
		}
		if w := post(s, events.TypePing); w.Code != http.StatusAccepted {
			t.Errorf("a tick while another waits: %d", w.Code)
		}
		if w := post(s, events.TypeSimulate); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "fits") {
			t.Errorf("a question meanwhile: %d %s", w.Code, w.Body)
		}
		ticks.Wait()
	})
}

// What is promised when the process has to go begins as long as the one who waits for it has no answer. Where it does not any more, he is
// sent away, and comes back to another process with what all of them knew (RELIABILITY 2g).
func TestWhoWaitsIsToldThatNothingBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(testRunner(label(wantLabel), refusing{world(t, 1).As("label")}), nil)
		var codes [3]int
		var all sync.WaitGroup
		for i := range codes {
			all.Go(func() { codes[i] = post(s, events.TypePing).Code })
			synctest.Wait()
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if w := post(s, events.TypePing); w.Code != http.StatusTooManyRequests {
			t.Errorf("who comes later: %d", w.Code)
		}
		all.Wait()
		if want := [3]int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusAccepted}; codes != want {
			t.Errorf("answered %v, want %v", codes, want)
		}
	})
}
