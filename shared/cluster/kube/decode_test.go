// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"
	"testing"
)

// Each field of an envelope and of a list is a message with its length: anything else is cut up wrongly, not read.
func TestOnlyMessagesAreCutOff(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"a number":              "\x08\x01x",
		"a number of eight":     "\x09\x01x",
		"without its length":    "\x0a",
		"shorter than it says":  "\x0a\x02x",
		"a tag beyond all tags": strings.Repeat("\xff", 11),
	} {
		if field, message, _, err := cut([]byte(raw)); err == nil {
			t.Errorf("%s: field %d, %q", name, field, message)
		}
	}
	if field, message, rest, err := cut([]byte("\x0a\x01xy")); err != nil || field != 1 || string(message) != "x" || string(rest) != "y" {
		t.Errorf("field %d, %q, then %q: %v", field, message, rest, err)
	}
}
