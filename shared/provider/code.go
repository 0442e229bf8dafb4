// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Code classifies an error by what the caller does about it.
type Code int

// Codes. The zero Code is a failure that nobody has classified.
const (
	Unknown   Code = iota // retried with backoff; proves nothing, neither absence nor refusal
	NotFound              // what was asked for does not exist
	Invalid               // the spec can never work: the Machine fails
	Exhausted             // no capacity, no quota, or a prerequisite is missing: retried later, elsewhere first
	Throttled             // asked too often: RetryAfter says when again
	Denied                // credentials are missing or lack permission: retried slowly, a person must act
)

var codeNames = [...]string{"Unknown", "NotFound", "Invalid", "Exhausted", "Throttled", "Denied"}

// String returns the code's name.
func (c Code) String() string {
	if c < 0 || int(c) >= len(codeNames) {
		return fmt.Sprintf("Code(%d)", int(c))
	}
	return codeNames[c]
}

// MarshalText writes the name.
func (c Code) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a code's name.
func (c *Code) UnmarshalText(text []byte) error {
	i := slices.Index(codeNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("code %q is none of %v", text, codeNames)
	}
	*c = Code(i)
	return nil
}

// Definite reports whether an error with this code on Create proves that the call made nothing.
func (c Code) Definite() bool {
	return c == Invalid || c == Exhausted || c == Throttled || c == Denied || c == NotFound
}

// Error is a classified error. RetryAfter is the cloud's own advice, or 0.
type Error struct {
	Code       Code
	RetryAfter time.Duration
	err        error
}

// Error returns the text without the code.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// Errorf returns a classified error; format may wrap with %w.
func Errorf(c Code, format string, args ...any) error {
	return &Error{Code: c, err: fmt.Errorf(format, args...)}
}

// ErrorAfter is Errorf with the cloud's advice when to try again.
func ErrorAfter(c Code, after time.Duration, format string, args ...any) error {
	return &Error{Code: c, RetryAfter: after, err: fmt.Errorf(format, args...)}
}

// Coded returns err with the code Unknown, unless it carries a code, or is nil.
func Coded(err error) error {
	if _, coded := errors.AsType[*Error](err); err == nil || coded {
		return err
	}
	return Errorf(Unknown, "%w", err)
}

// Refused returns err with a code, unless it is nil.
func Refused(c Code, err error) error {
	if err == nil {
		return nil
	}
	return Errorf(c, "%w", err)
}

// CodeOf returns the code of err, or Unknown.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Unknown
}
