// SPDX-License-Identifier: Apache-2.0

// Package throttle keeps the calls with one credential within what its cloud stands, at addresses where clouds are.
package throttle

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// longest is how long a cloud's advice to wait is believed: a wrong date in a header must not end all calls for ever.
const longest = 10 * time.Minute

// Limiter spreads the calls of everybody who uses one credential. It is safe for concurrent use.
type Limiter struct {
	calls *rate.Limiter

	mu    sync.Mutex
	until time.Time // the cloud wants no call before
}

var (
	mu       sync.Mutex
	limiters = map[[sha256.Size]byte]*Limiter{}
)

// most bounds how many credentials are remembered.
const most = 1000

// Of returns the limiter of a credential, the same for all drivers and accounts of this process that use it. The
// credential is whatever identifies who is limited: an endpoint with a user, or an access key's id; only its hash is
// kept. The rate, in calls per second, and how many may come at once are those of who asks first.
func Of(credential string, perSecond float64, atOnce int) *Limiter {
	key := sha256.Sum256([]byte(credential))
	mu.Lock()
	defer mu.Unlock()
	l, ok := limiters[key]
	if !ok {
		if len(limiters) >= most { // who still has a limiter keeps it; a new driver gets a new one
			clear(limiters)
		}
		l = New(perSecond, atOnce)
		limiters[key] = l
	}
	return l
}

// New returns a limiter that nobody else has.
func New(perSecond float64, atOnce int) *Limiter {
	return &Limiter{calls: rate.NewLimiter(rate.Limit(perSecond), atOnce)}
}

// Turn waits for the turn of one call, and where the cloud wants a pause meanwhile for another after that. If it cannot come
// before ctx ends, nothing is waited for: the error has the code Throttled and says after which time to try again, and no turn
// is used. If ctx has ended, that is the error.
func (l *Limiter) Turn(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		now := time.Now()
		from := now.Add(max(l.paused(now), 0)) // no turn is of a time when nobody has one: those would come all at once
		turn := l.calls.ReserveN(from, 1)
		wait := turn.DelayFrom(now)
		if deadline, ok := ctx.Deadline(); ok && now.Add(wait).After(deadline) {
			turn.CancelAt(from)
			if !now.Before(deadline) { // where much is going on, ctx ends a little later
				<-ctx.Done()
				return ctx.Err()
			}
			return provider.ErrorAfter(provider.Throttled, wait, "the cloud is asked too often with this credential: next call in %v", wait.Round(time.Millisecond))
		}
		if wait > 0 {
			if err := sleep(ctx, wait); err != nil {
				return err
			}
		}
		if l.paused(time.Now()) <= 0 {
			return nil
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Pause lets no further call begin before d has passed. A pause that lasts longer already stands.
func (l *Limiter) Pause(d time.Duration) {
	until := time.Now().Add(min(d, longest))
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.until) {
		l.until = until
	}
}

func (l *Limiter) paused(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until.Sub(now)
}

// After returns what the header Retry-After of an answer says, in seconds or as a date, or 0.
func After(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 64); (err == nil || errors.Is(err, strconv.ErrRange)) && seconds > 0 {
		return time.Duration(min(seconds, int64(longest/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(time.Until(at), 0), longest)
	}
	return 0
}

// Transport sends requests when it is their turn. An answer that asks to come later makes all wait; of one that is too long, what
// is read ends with an error.
type Transport struct {
	Base    http.RoundTripper
	Limiter *Limiter
}

// RoundTrip implements [http.RoundTripper]. Its error is Throttled, and nothing was sent, if the turn would come too
// late for the request.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.Limiter.Turn(r.Context()); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	answer, err := t.Base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = bounded(answer)
	if answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusServiceUnavailable {
		if after := After(answer.Header); after > 0 {
			t.Limiter.Pause(after)
		}
	}
	return answer, nil
}
