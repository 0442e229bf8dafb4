// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // images have none
)

// ScheduleAnnotation on a MachineAutoscaler gives its bounds other values at certain times (SPEC W9, D48). One window
// after the other, separated by semicolons or new lines:
//
//	0 8 * * mon-fri for 10h min=4 max=12; 0 0 * * sat,sun for 24h max=2
//
// The five fields are those of cron: minute, hour, day of the month, month, day of the week. A window opens at every
// time that they match, in UTC unless CRON_TZ=Europe/Berlin stands before them, and is open for as long as it says, at most 31
// days, both by the clock on the wall there: office hours stay office hours when the clocks change. While several are open, the last
// one listed decides. What a window does not say stays as in the spec; a bound that would cross the other one takes it along.
const ScheduleAnnotation = "machine.openshift.io/schedule"

// longestSchedule bounds the text of one, in bytes: some three hundred windows.
const longestSchedule = 8 << 10

// longestWindow bounds how far back the beginning of a window is looked for.
const longestWindow = 31 * 24 * time.Hour

// Window is a time at which bounds differ.
type Window struct {
	zone     *time.Location // nil: UTC
	start    [5]field5
	For      time.Duration
	Min, Max *int32
}

// field5 is one of cron's fields: the values that it admits, and whether that is all of them.
type field5 struct {
	values map[int]bool
	any    bool
}

var fields = [5]struct {
	name      string
	low, high int
	words     []string
}{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of the month", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day of the week", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// ParseSchedule reads the value of a ScheduleAnnotation. Its error names the window and the part.
func ParseSchedule(text string) (all []Window, err error) {
	if len(text) > longestSchedule {
		return nil, fmt.Errorf("it has %d bytes, of which there may be %d", len(text), longestSchedule)
	}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		if strings.TrimSpace(part) == "" {
			continue
		}
		zone, words, err := zoned(strings.Fields(part))
		if err != nil {
			return nil, fmt.Errorf("window %q: %w", strings.TrimSpace(part), err)
		}
		w, err := parseWindow(words)
		if w.zone = zone; err != nil {
			return nil, fmt.Errorf("window %q: %w", strings.TrimSpace(part), err)
		}
		all = append(all, w)
	}
	return all, nil
}

func parseWindow(words []string) (w Window, err error) {
	if len(words) < 8 || words[5] != "for" {
		return w, errors.New(`must read "minute hour day month weekday for 10h min=N max=N"`)
	}
	for i := range fields {
		if w.start[i], err = parseField(i, words[i]); err != nil {
			return w, fmt.Errorf("%s: %w", fields[i].name, err)
		}
	}
	if w.For, err = time.ParseDuration(words[6]); err != nil || w.For < time.Minute || w.For > longestWindow {
		return w, fmt.Errorf("%q is no duration between 1m and %s", words[6], longestWindow)
	}
	if err := pairs(strings.Join(words[7:], " "), w.bound); err != nil {
		return w, err
	}
	if w.Min != nil && w.Max != nil && *w.Min > *w.Max {
		return w, fmt.Errorf("max=%d is less than min=%d", *w.Max, *w.Min)
	}
	return w, nil
}

// zoned takes the time zone off the words of a window, if it begins with one, and returns the others in small letters. The zone
// of the process is none: it would differ from place to place.
func zoned(words []string) (zone *time.Location, rest []string, err error) {
	if name, given := strings.CutPrefix(words[0], "CRON_TZ="); given {
		if zone, err = time.LoadLocation(name); err != nil || name == "" || name == "Local" {
			return nil, nil, fmt.Errorf("%q is no time zone, such as Europe/Berlin", name)
		}
		words = words[1:]
	}
	return zone, strings.Fields(strings.ToLower(strings.Join(words, " "))), nil
}

// bound reads min=N or max=N.
func (w *Window) bound(key, value string) error {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 0 || key == "max" && n < 1 {
		return fmt.Errorf("%q is neither min=N nor max=N", key+"="+value)
	}
	bound := int32(n)
	switch {
	case key == "min" && w.Min == nil:
		w.Min = &bound
	case key == "max" && w.Max == nil:
		w.Max = &bound
	default:
		return fmt.Errorf("%q is neither min=N nor max=N, or said twice", key+"="+value)
	}
	return nil
}

// parseField reads lists of values, ranges and steps.
func parseField(i int, text string) (field5, error) {
	f := field5{values: map[int]bool{}, any: strings.HasPrefix(text, "*")}
	for part := range strings.SplitSeq(text, ",") {
		low, high, step, err := parseSpan(i, part)
		if err != nil {
			return f, err
		}
		for v := low; v <= high; v += step {
			f.values[v] = true
		}
	}
	if i == 4 && f.values[7] { // Sunday has two numbers
		f.values[0] = true
	}
	return f, nil
}

// parseSpan reads *, a, a-b, each with /step behind it where wanted.
func parseSpan(i int, part string) (low, high, step int, err error) {
	span, every, stepped := strings.Cut(part, "/")
	low, high, step = fields[i].low, fields[i].high, 1
	if stepped {
		if step, err = strconv.Atoi(every); err != nil || step < 1 {
			return low, high, step, fmt.Errorf("step %q", every)
		}
	}
	if span == "*" {
		return low, high, step, nil
	}
	from, to, ranged := strings.Cut(span, "-")
	if low, err = value(i, from); err == nil && ranged {
		high, err = value(i, to)
	}
	if !ranged && !stepped {
		high = low
	}
	if err == nil && low > high {
		err = fmt.Errorf("%q goes backwards", span)
	}
	return low, high, step, err
}

func value(i int, text string) (int, error) {
	if k := slices.Index(fields[i].words, text); k >= 0 {
		return k + fields[i].low, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < fields[i].low || n > fields[i].high {
		return 0, fmt.Errorf("%q is not between %d and %d", text, fields[i].low, fields[i].high)
	}
	return n, nil
}

// Open reports whether the window is open at a time.
func (w Window) Open(now time.Time) bool {
	if w.zone != nil { // the clock on the wall, in which days are as long as in UTC
		l := now.In(w.zone)
		now = time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, time.UTC)
	}
	now = now.UTC().Truncate(time.Minute)
	for t := now; now.Sub(t) < w.For; {
		switch {
		case !w.day(t): // to the last minute of the day before
			t = time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC).Add(-time.Minute)
		case !w.start[1].values[t.Hour()]:
			t = t.Truncate(time.Hour).Add(-time.Minute)
		case !w.start[0].values[t.Minute()]:
			t = t.Add(-time.Minute)
		default:
			return true
		}
	}
	return false
}

// day is cron's rule: if both days are restricted, either will do.
func (w Window) day(t time.Time) bool {
	month, week := w.start[2].values[t.Day()], w.start[4].values[int(t.Weekday())]
	if !w.start[2].any && !w.start[4].any {
		return w.start[3].values[int(t.Month())] && (month || week)
	}
	return w.start[3].values[int(t.Month())] && month && week
}

// BoundsAt returns the bounds that hold at a time: those of the spec, unless a window of the schedule is open. A
// schedule that cannot be read is an error.
func (a *MachineAutoscaler) BoundsAt(now time.Time) (least, most int32, err error) {
	least, most = a.Spec.MinReplicas, a.Spec.MaxReplicas
	text := a.Annotations[ScheduleAnnotation]
	if text == "" {
		return least, most, nil
	}
	windows, err := ParseSchedule(text)
	if err != nil {
		return least, most, err
	}
	for _, w := range slices.Backward(windows) {
		if !w.Open(now) {
			continue
		}
		switch {
		case w.Min != nil && w.Max != nil:
			return *w.Min, *w.Max, nil
		case w.Min != nil:
			return *w.Min, max(most, *w.Min), nil
		case w.Max != nil:
			return min(least, *w.Max), *w.Max, nil
		}
		return least, most, nil
	}
	return least, most, nil
}
