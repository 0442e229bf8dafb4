// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// fleeting is what an answer may have of its own each time: an id or something encoded, a number of a port, a time of day, a
// long number such as a task's.
var fleeting = regexp.MustCompile(`[A-Za-z0-9+=_-]{32,}|\b[0-9a-fA-F]{8,}\b|:[0-9]{2,5}\b|[0-9]{4,}(?:\.[0-9]+)?`)

// Gist returns what a message says without what differs from one answer to the next though the same is said: local ports,
// ids of requests, encoded blobs, times. Two messages with the same gist tell of the same. A long name without a digit stays.
func Gist(message string) string {
	return fleeting.ReplaceAllStringFunc(message, func(word string) string {
		if !strings.ContainsAny(word, "0123456789") {
			return word
		}
		return "#"
	})
}

// Reworded returns what a condition is to say of something in somebody else's words; what it says, if there is one and that has the same
// gist: what stands on an object already is not written again for the sake of a port or an id in an answer.
func Reworded(was *machine.Condition, of, words string) string {
	if was != nil {
		if before, ok := strings.CutPrefix(was.Message, of); ok && Gist(before) == Gist(words) {
			return was.Message
		}
	}
	return of + words
}

// Cut returns the first bytes of a text that is longer than so many, without cutting a character.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}

// Few lists the first of some names, so many of them at most, with the number of the others.
func Few(names []string, most int) string {
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
