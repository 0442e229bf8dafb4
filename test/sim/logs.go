// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"log/slog"
	"math"
	"time"
)

// logs holds R-S13 for the lines that are logged, at any level, as whoever reads the log of a function gets them.
type logs struct{ slog.Handler }

// logger returns what logs as functions do.
func (p *Play) logger() *slog.Logger {
	return slog.New(logs{slog.NewJSONHandler(reader{p}, &slog.HandlerOptions{Level: slog.Level(math.MinInt)})})
}

// Handle implements [slog.Handler]. The line does not say when it was written: a schedule ends with the same violation each time.
func (l logs) Handle(ctx context.Context, r slog.Record) error {
	r.Time = time.Time{}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (l logs) WithAttrs(attrs []slog.Attr) slog.Handler { return logs{l.Handler.WithAttrs(attrs)} }

// WithGroup implements [slog.Handler].
func (l logs) WithGroup(name string) slog.Handler { return logs{l.Handler.WithGroup(name)} }

// reader reads a log.
type reader struct{ play *Play }

// Write implements [io.Writer]. It gets one line at a time.
func (r reader) Write(line []byte) (int, error) {
	r.play.told(string(line))
	return len(line), nil
}
