// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/digitalocean/go-libvirt"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/throttle"
)

const (
	// A daemon answers thousands of requests in a second, and carries out twenty at once (max_workers). A call of the driver makes some
	// ten of them, a list two for each domain.
	perSecond = 50
	atOnce    = 100
	// mostIdle is how many connections wait for the next call, of the twenty calls that a process makes at most.
	mostIdle = 4
	// idleFor is how long one waits: whoever is between forgets connections that nobody uses.
	idleFor = 30 * time.Second
	// farewell is how long a daemon is given to take leave.
	farewell = time.Second
)

// session is the connections to one daemon. Each is used by one call at a time, as the SDK knows no deadlines: a call that has no more
// time closes its own.
type session struct {
	account provider.Account
	at      endpoint
	limiter *throttle.Limiter

	mu     sync.Mutex
	idle   []*daemon
	closed bool
	host   identity // as it was told last
}

// daemon is one connection.
type daemon struct {
	*libvirt.Libvirt
	conn  *wire
	since time.Time // when it was used last
	host  identity  // who answers, once that is sure
}

// newSession reads the credentials; nothing is asked yet.
func newSession(a provider.Account) (*session, error) {
	e, err := newEndpoint(a)
	if err != nil {
		return nil, err
	}
	a.Credentials = nil // which nobody reads again
	return &session{account: a, at: e, limiter: throttle.Of(a.Kind+" "+a.Region, perSecond, atOnce)}, nil
}

// with does one step on a connection, no longer than ctx.
func (s *session) with(ctx context.Context, step func(context.Context, *daemon) error) error {
	if err := s.limiter.Turn(ctx); err != nil {
		return err
	}
	l, err := s.take(ctx)
	if err != nil {
		return s.within(ctx, err)
	}
	stop := context.AfterFunc(ctx, l.hangUp)
	err = l.conn.because(step(ctx, l))
	if !stop() || ctx.Err() != nil {
		l.hangUp()
		return s.within(ctx, err)
	}
	s.put(l)
	return err
}

// within returns an error as that of a context that has ended: what was cut off for it says anything.
func (s *session) within(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ctx.Err()) {
		return err
	}
	return provider.Errorf(provider.Unknown, "libvirt %s: %w: %w", s.account.Region, ctx.Err(), err)
}

// take returns a connection that nobody else has.
func (s *session) take(ctx context.Context) (*daemon, error) {
	for {
		l := s.waiting()
		if l == nil {
			return s.connect(ctx)
		}
		if time.Since(l.since) < idleFor && l.conn.alive() {
			return l, nil
		}
		l.hangUp()
	}
}

func (s *session) waiting() *daemon {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) == 0 {
		return nil
	}
	l := s.idle[len(s.idle)-1]
	s.idle = s.idle[:len(s.idle)-1]
	return l
}

// put gives a connection back.
func (s *session) put(l *daemon) {
	l.since = time.Now()
	s.mu.Lock()
	keep := !s.closed && len(s.idle) < mostIdle && l.conn.alive()
	if keep {
		s.idle = append(s.idle, l)
	}
	s.mu.Unlock()
	if !keep {
		l.leave()
	}
}

// close closes what waits. Who calls later connects anew.
func (s *session) close() {
	s.mu.Lock()
	idle := s.idle
	s.idle, s.closed = nil, true
	s.mu.Unlock()
	var leaving sync.WaitGroup
	for _, l := range idle {
		leaving.Go(l.leave)
	}
	leaving.Wait()
}

// leave says goodbye, as else the daemon takes the end for an error and logs it, and closes a connection.
func (l *daemon) leave() {
	stop := time.AfterFunc(farewell, l.hangUp)
	defer stop.Stop()
	_ = l.ConnectClose() // it ends either way
	l.hangUp()
}

// hangUp closes a connection; whatever waits for an answer on it has none.
func (l *daemon) hangUp() { _ = l.conn.Close() }

// connected hands a connection to the SDK.
type connected struct{ net.Conn }

// Dial implements the SDK's socket.Dialer.
func (c connected) Dial() (net.Conn, error) { return c.Conn, nil }

// connect makes a connection, and opens the hypervisor behind the daemon.
func (s *session) connect(ctx context.Context) (*daemon, error) {
	conn, err := s.at.dial(ctx)
	if err != nil {
		return nil, err
	}
	w := newWire(conn)
	stop := context.AfterFunc(ctx, func() { _ = w.Close() })
	defer stop()
	l := &daemon{Libvirt: libvirt.NewWithDialer(connected{w}), conn: w}
	if err := l.ConnectToURI(s.at.remote); err != nil {
		err = w.because(err)
		l.hangUp()
		return nil, err
	}
	return l, nil
}
