// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// claimNote is the last note of a description: what it claims has any name.
var claimNote = regexp.MustCompile(`(?s)^(?:.* )?\[launching (.+)@([0-9]+)\]$`)

// longestDescription is what Neutron takes, in characters.
const longestDescription = 255

// claim is the right to ask for a thing, since when.
type claim struct {
	what string
	at   time.Time
}

// String returns the claim as it is recorded.
func (c claim) String() string { return fmt.Sprintf("%s@%d", c.what, c.at.Unix()) }

// writeClaim appends a claim to a description, of which that much is kept for which there is room.
func writeClaim(text string, c claim) string {
	note, kept := fmt.Sprintf(" [launching %s]", c), []rune(text)
	room := max(longestDescription-utf8.RuneCountInString(note), 0)
	return strings.TrimSpace(string(kept[:min(len(kept), room)]) + note)
}

// readClaim returns the claim in a description, if there is one.
func readClaim(description string) claim {
	m := claimNote.FindStringSubmatch(description)
	if m == nil {
		return claim{}
	}
	seconds, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil {
		return claim{}
	}
	return claim{m[1], time.Unix(seconds, 0)}
}
