// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// What a cloud answers at length is kept in short: it comes to stand in conditions (RELIABILITY §4).
func TestWordsOfACloudAreCut(t *testing.T) {
	err := provider.Errorf(provider.Invalid, "No network was found: %s", strings.Repeat("ü", 1<<20))
	for what, text := range map[string]string{
		"of a call":  cloudOutcome(provider.Instance{}, err).Message,
		"of a look":  refusal(err).Message,
		"of a short": "No network was found: " + cloudOutcome(provider.Instance{}, provider.Errorf(provider.Invalid, "none")).Message,
	} {
		if len(text) > mostSaid || !strings.HasPrefix(text, "No network was found: ") || !utf8.ValidString(text) {
			t.Errorf("%s: %d bytes are kept: %.60q", what, len(text), text)
		}
	}
}
