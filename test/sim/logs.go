// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"time"
)

// logs holds R-S13 for the lines that are logged, at any level, as whoever reads the log of a function gets them. Most lines are of texts
// and numbers alone: of such a line only the texts are looked at, and it is written only if one of them tells the canary.
type logs struct {
	writes func() slog.Handler
	silent bool // what all lines have tells nothing
}

// logger returns what logs as functions do.
func (p *Play) logger() *slog.Logger {
	return slog.New(logs{func() slog.Handler {
		return slog.NewJSONHandler(reader{p}, &slog.HandlerOptions{Level: slog.Level(math.MinInt)})
	}, true})
}

// Enabled implements [slog.Handler].
func (l logs) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler]. The line does not say when it was written: a schedule ends with the same violation each time.
func (l logs) Handle(ctx context.Context, r slog.Record) error {
	silent := l.silent && !hasCanary(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		silent = silent && isSilent(a)
		return silent
	})
	if silent {
		return nil
	}
	r.Time = time.Time{}
	return l.writes().Handle(ctx, r)
}

// isSilent reports whether a is a number, or a text that does not tell the canary. Of anything else only the line shows it.
func isSilent(a slog.Attr) bool {
	if hasCanary(a.Key) {
		return false
	}
	switch a.Value.Kind() {
	case slog.KindBool, slog.KindInt64, slog.KindUint64, slog.KindFloat64, slog.KindDuration, slog.KindTime:
		return true
	case slog.KindString:
		return !hasCanary(a.Value.String())
	case slog.KindAny:
		texts, are := a.Value.Any().([]string)
		return are && !slices.ContainsFunc(texts, hasCanary)
	case slog.KindGroup, slog.KindLogValuer:
	}
	return false
}

// WithAttrs implements [slog.Handler].
func (l logs) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logs{
		func() slog.Handler { return l.writes().WithAttrs(attrs) },
		l.silent && !slices.ContainsFunc(attrs, func(a slog.Attr) bool { return !isSilent(a) }),
	}
}

// WithGroup implements [slog.Handler].
func (l logs) WithGroup(name string) slog.Handler {
	return logs{func() slog.Handler { return l.writes().WithGroup(name) }, l.silent && !hasCanary(name)}
}

// reader reads a log.
type reader struct{ play *Play }

// Write implements [io.Writer]. It gets one line at a time.
func (r reader) Write(line []byte) (int, error) {
	r.play.told(string(line))
	return len(line), nil
}
