// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var claimNote = regexp.MustCompile(` ?\[launching ([^\[\]@]+)@([0-9]+)\]$`)

// claim is the right to ask for a thing, since when.
type claim struct {
	what string
	at   time.Time
}

// String returns the claim as it is recorded.
func (c claim) String() string { return fmt.Sprintf("%s@%d", c.what, c.at.Unix()) }

// writeClaim appends a claim to a description.
func writeClaim(text string, c claim) string {
	return strings.TrimSpace(fmt.Sprintf("%s [launching %s]", text, c))
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
