// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// What a cloud answers at length is kept in short: it comes to stand in conditions (RELIABILITY §4).
func TestWordsOfACloudAreCut(t *testing.T) {
	t.Parallel()
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

// Nor does an API server's refusal come to stand at length in objects: it repeats the value that it refuses, and webhooks say what they like.
func TestWordsOfAnAPIServerAreCut(t *testing.T) {
	t.Parallel()
	words := "metadata.labels: Invalid value: " + strings.Repeat("ü\xfc", 1<<20)
	for what, err := range map[string]error{
		"refused": &cluster.RefusedError{Err: errors.New(words)},
		"blocked": &cluster.BlockedError{Message: words},
	} {
		if o, _ := apiOutcome(err); len(o.Message) > mostSaid || !strings.HasPrefix(o.Message, "metadata.labels: ") || !utf8.ValidString(o.Message) {
			t.Errorf("%s: %d bytes are kept: %.60q", what, len(o.Message), o.Message)
		}
	}
}

// What is no UTF-8, as a proxy's page in another encoding, stands otherwise in an object than it was written: it would differ from what
// stands there in every scan, and be written again (G11).
func TestWordsOfACloudStandAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"Zugriff verweigert: gesch\xfctzt", strings.Repeat("\xfc", mostSaid)} {
		text := refusal(errors.New(words)).Message
		written, err := json.Marshal(text)
		var stands string
		if err = errors.Join(err, json.Unmarshal(written, &stands)); err != nil || stands != text || len(text) > mostSaid {
			t.Errorf("%.40q is written %.40q and stands as %.40q: %v", words, text, stands, err)
		}
	}
}

// A step that failed may have made something before that, which only its Progress names: it is kept whatever the answer proves (2b.8).
func TestProgressOfAFailedStepIsKept(t *testing.T) {
	t.Parallel()
	made := provider.Instance{Progress: []byte("port-1")}
	for what, err := range map[string]error{
		"refused": provider.Errorf(provider.Exhausted, "no room"),
		"unclear": errors.New("connection reset"),
	} {
		if o := cloudOutcome(made, err); string(o.Instance.Progress) != "port-1" {
			t.Errorf("%s: %q is kept", what, o.Instance.Progress)
		}
	}
}
