// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	startLimit = 3 * time.Minute // generous: a machine may be busy compiling
	stopLimit  = 3 * time.Second // per component; what has not ended by then ends with the process
)

// plane is a set of components running in this process.
type plane struct {
	broken chan error // why a component ended by itself
	stops  []func()
}

func (p *plane) breaks(err error) {
	select {
	case p.broken <- err:
	default: // the first cause is the one that matters
	}
}

// start runs a component until ctx ends or the plane stops.
func (p *plane) start(ctx context.Context, name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := run(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("ended")
		}
		p.breaks(fmt.Errorf("%s: %w", name, err))
	}()
	p.onStop(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(stopLimit):
		}
	})
}

func (p *plane) onStop(stop func()) { p.stops = append(p.stops, stop) }

// stop ends the components in the reverse order of their start.
func (p *plane) stop() {
	for _, stop := range slices.Backward(p.stops) {
		stop()
	}
}

// await asks until ready answers nil, a component breaks, ctx ends or the time is up.
func (p *plane) await(ctx context.Context, what string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not ready after %v", startLimit))
	defer cancel()
	for {
		try, done := context.WithTimeout(ctx, 2*time.Second) // before the API server accepts, a request hangs
		err := ready(try)
		done()
		if err == nil {
			return nil
		}
		select {
		case broken := <-p.broken:
			return broken
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, context.Cause(ctx), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
