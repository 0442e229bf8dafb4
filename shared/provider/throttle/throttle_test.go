// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

func TestOneCredentialHasOneLimiter(t *testing.T) {
	t.Parallel()
	a, b, c := Of("test/one", 5, 1), Of("test/one", 9, 9), Of("test/two", 5, 1)
	if a != b || a != Of("test/one", 5, 1) {
		t.Error("one credential has two limiters")
	}
	if a == c {
		t.Error("two credentials share a limiter")
	}
	for i := range most + 1 {
		Of("test/"+strconv.Itoa(i), 5, 1)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(limiters) > most {
		t.Errorf("%d credentials are remembered, at most %d shall be", len(limiters), most)
	}
}

func TestCallsAreSpread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, begin := New(10, 5), time.Now()
		for range 25 {
			if err := l.Turn(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("25 calls, 5 at once and 10 a second, took %v", took)
		}
	})
}

func TestTurnThatComesTooLateIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, begin := New(10, 1), time.Now()
		l.Pause(30 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := l.Turn(ctx)
		if e, ok := errors.AsType[*provider.Error](err); !ok || e.Code != provider.Throttled || e.RetryAfter != 30*time.Second {
			t.Errorf("Turn = %v, want Throttled for 30 s", err)
		}
		if time.Since(begin) != 0 {
			t.Errorf("it was waited for %v", time.Since(begin))
		}
		l.Pause(time.Second) // the longer pause stands
		if err := l.Turn(t.Context()); err != nil || time.Since(begin) != 30*time.Second {
			t.Errorf("Turn = %v after %v, want the end of the pause", err, time.Since(begin))
		}
	})
}

// overdue is a context whose time was over a moment before it says so.
type overdue struct{ context.Context } //nolint:containedctx // it is one

func (c overdue) Deadline() (time.Time, bool) {
	end, ok := c.Context.Deadline()
	return end.Add(-5 * time.Millisecond), ok
}

// Where much is going on, a context ends a little after its deadline. Who asks in between has no time left, and is not told that
// the cloud is asked too often: that would pass for an answer (G6).
func TestTurnOfWhoHasNoTimeLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.Sleep(time.Second - time.Millisecond)
		if err := New(10, 1).Turn(overdue{ctx}); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
			t.Errorf("Turn = %v, %v", err, ctx.Err())
		}
	})
}

func TestTurnAtTheDeadlineItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(10, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.Sleep(time.Second - 5*time.Millisecond)
		if err := l.Turn(ctx); err != nil { // nobody has another for a while
			t.Fatal(err)
		}
		if err := l.Turn(overdue{ctx}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Turn = %v", err)
		}
	})
}

func TestCallThatEndsMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(10, 1)
		l.Pause(time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := l.Turn(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Turn = %v", err)
		}
		if err := l.Turn(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Turn with a context that has ended = %v", err)
		}
	})
}

// Who waits for a turn among others, and not for a pause, ends with its context as well.
func TestCallThatEndsInItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(0.1, 1)
		ctx, cancel := context.WithCancel(t.Context())
		if err := l.Turn(ctx); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, cancel)
		if err := l.Turn(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Turn = %v", err)
		}
	})
}

// closed tells whether a request's body was closed.
type closed struct {
	io.Reader
	yes *bool
}

func (c closed) Close() error {
	*c.yes = true
	return nil
}

// What has no turn in time is not sent: a cloud that wants a pause would get all calls nevertheless. A change that was not sent is one
// that did not happen.
func TestCallWithoutATurnIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent, l, done := 0, New(100, 10), false
		l.Pause(30 * time.Second)
		base := answers(func(*http.Request) *http.Response {
			sent++
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for _, body := range []io.ReadCloser{nil, closed{strings.NewReader("{}"), &done}} {
			r := (&http.Request{Method: http.MethodPost, Header: http.Header{}, Body: body}).WithContext(ctx)
			answer, err := Transport{base, l}.RoundTrip(r)
			if answer != nil {
				_ = answer.Body.Close()
			}
			if provider.CodeOf(err) != provider.Throttled || sent > 0 {
				t.Errorf("RoundTrip = %v, %d were sent", err, sent)
			}
		}
		if !done {
			t.Error("the body of a request that was not sent is open still")
		}
	})
}

// silence is a cloud that does not answer.
type silence struct{}

func (silence) RoundTrip(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }

func TestCallWithoutAnAnswerIsToldAsOne(t *testing.T) {
	t.Parallel()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://cloud.test", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := Transport{silence{}, New(100, 10)}.RoundTrip(r)
	if answer != nil {
		_ = answer.Body.Close()
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("RoundTrip = %v", err)
	}
}

type answers func(*http.Request) *http.Response

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }

func TestAdviceOfOneAnswerHoldsForAll(t *testing.T) {
	t.Parallel()
	seconds := func() string { return "20" }
	for name, advice := range map[string]struct {
		status int
		header func() string
		pause  time.Duration
	}{
		"seconds":     {http.StatusTooManyRequests, seconds, 20 * time.Second},
		"a date":      {http.StatusTooManyRequests, func() string { return time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat) }, 20 * time.Second},
		"overloaded":  {http.StatusServiceUnavailable, seconds, 20 * time.Second},
		"one refused": {http.StatusConflict, seconds, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				l := New(100, 10)
				base := answers(func(*http.Request) *http.Response {
					sent++
					return &http.Response{StatusCode: advice.status, Header: http.Header{"Retry-After": {advice.header()}}, Body: http.NoBody}
				})
				begin := time.Now()
				for range 2 { // two drivers, one credential
					r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://cloud.test", nil)
					if err != nil {
						t.Fatal(err)
					}
					answer, err := Transport{base, l}.RoundTrip(r)
					if err != nil {
						t.Fatal(err)
					}
					_ = answer.Body.Close()
				}
				if sent != 2 || time.Since(begin) != advice.pause {
					t.Errorf("%d calls in %v, want the second after %v", sent, time.Since(begin), advice.pause)
				}
			})
		})
	}
}

func TestAdviceIsBounded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-5": 0, "0": 0, "7": 7 * time.Second, "100000000": longest, "5000000000": longest, "99999999999999999999": longest, "-99999999999999999999": 0, "Fri, 31 Dec 2999 23:59:59 GMT": longest, "Fri, 31 Dec 1999 23:59:59 GMT": 0,
	} {
		if got := After(http.Header{"Retry-After": {text}}); got != want {
			t.Errorf("After(%q) = %v, want %v", text, got, want)
		}
	}
}
