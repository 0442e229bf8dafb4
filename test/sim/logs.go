// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"log/slog"
)

// logs holds R-S13 for what is logged, at any level.
type logs struct{ *Play }

// Enabled implements [slog.Handler].
func (l logs) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler].
func (l logs) Handle(_ context.Context, r slog.Record) error {
	l.told(r.Message)
	r.Attrs(l.attr)
	return nil
}

// WithAttrs implements [slog.Handler].
func (l logs) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		l.attr(a)
	}
	return l
}

// WithGroup implements [slog.Handler].
func (l logs) WithGroup(string) slog.Handler { return l }

func (l logs) attr(a slog.Attr) bool {
	switch a.Value.Kind() {
	case slog.KindBool, slog.KindDuration, slog.KindFloat64, slog.KindInt64, slog.KindTime, slog.KindUint64: // no words
	case slog.KindAny, slog.KindGroup, slog.KindLogValuer, slog.KindString:
		l.told(a.Value.String())
	}
	return true
}
