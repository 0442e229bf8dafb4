// SPDX-License-Identifier: Apache-2.0

package sim

// Kind is what a choice is about, so that a strategy knows.
type Kind uint8

// Kinds of choices.
const (
	KindWorld   Kind = iota // how the world is made
	KindCloud               // with tokens, without them, or bare metal
	KindLag                 // how old what its lists tell may be
	KindBefore              // how long a life is before anything fails
	KindWhat                // what happens next
	KindWho                 // to which invocation
	KindFault               // what becomes of a call
	KindUser                // what a person does
	KindWhich               // to which object, or event
	KindOrder               // which of several independent things is first
	KindTime                // how much of it passes
	KindVersion             // of the process that an event is delivered to
)

// Strategy chooses what a script leaves open: one of n ≥ 2.
type Strategy interface {
	// Pick returns the choice, from 0 to n-1, among n of that kind.
	Pick(p *Play, k Kind, n int) int
}

// Script is the choices of one schedule: everything that happens follows from them. Zero is always the choice in which
// nothing special happens, so that a shorter script, or one with more zeros, is a simpler schedule.
type Script struct {
	Given    []byte
	Strategy Strategy // nil: zeros
	Taken    []byte
	Widths   []byte // of how many each choice was one
	zeros    int    // at the end of Taken
}

// maxWidth bounds the alternatives of one choice.
const maxWidth = 250

func (s *Script) pick(p *Play, k Kind, n int) int {
	if n = min(n, maxWidth); n <= 1 {
		return 0
	}
	v := 0
	switch at := len(s.Taken); {
	case at < len(s.Given):
		v = int(s.Given[at]) % n
	case s.Strategy != nil:
		v = s.Strategy.Pick(p, k, n)
	}
	s.Taken, s.Widths = append(s.Taken, byte(v)), append(s.Widths, byte(n))
	if v == 0 {
		s.zeros++
	} else {
		s.zeros = 0
	}
	return v
}

// Vector returns the choices that were made, without the zeros at their end.
func (s *Script) Vector() []byte { return s.Taken[:len(s.Taken)-s.zeros] }

// Next makes s the next of all scripts of its shape, depth first, and reports whether there is one.
func (s *Script) Next() bool {
	for i := len(s.Taken) - 1; i >= 0; i-- {
		if s.Taken[i]+1 < s.Widths[i] {
			s.Given = append(s.Taken[:i:i], s.Taken[i]+1)
			s.Taken, s.Widths, s.zeros = nil, nil, 0
			return true
		}
	}
	return false
}

// Shrink returns a smaller vector for which fails still holds: shorter, and with more zeros.
func Shrink(vector []byte, fails func([]byte) bool) []byte {
	best := vector
	try := func(v []byte) bool {
		if !fails(v) {
			return false
		}
		best = v
		return true
	}
	for changed := true; changed; {
		changed = false
		for size := len(best) / 2; size >= 1; size /= 2 {
			for from := 0; from+size <= len(best); {
				switch {
				case try(append(append([]byte{}, best[:from]...), best[from+size:]...)), zeroed(best, from, size) != nil && try(zeroed(best, from, size)):
					changed = true
				default:
					from += size
				}
				if from+size > len(best) {
					break
				}
			}
		}
	}
	return best
}

// zeroed returns v with a part of it zero, or nil if it is already.
func zeroed(v []byte, from, size int) []byte {
	next, changed := append([]byte{}, v...), false
	for i := from; i < min(from+size, len(v)); i++ {
		changed = changed || next[i] != 0
		next[i] = 0
	}
	if !changed {
		return nil
	}
	return next
}
