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

// writeClaim appends to a description what is being launched, and since when.
func writeClaim(text, what string, at time.Time) string {
	return strings.TrimSpace(fmt.Sprintf("%s [launching %s@%d]", text, what, at.Unix()))
}

// readClaim returns what a description says is being launched, and since when.
func readClaim(description string) (what string, at time.Time) {
	m := claimNote.FindStringSubmatch(description)
	if m == nil {
		return "", time.Time{}
	}
	seconds, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil {
		return "", time.Time{}
	}
	return m[1], time.Unix(seconds, 0)
}

// withoutClaim returns a description that says so no more.
func withoutClaim(description string) string { return claimNote.ReplaceAllString(description, "") }
