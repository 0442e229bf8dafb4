// SPDX-License-Identifier: Apache-2.0

package deadletter

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/machine-functions/machine-functions/test/trickle"
)

// A dead letter whose body comes slowly is answered: where all of it stands in headers it is taken, else it may come again and is not
// counted yet.
func TestSlowDeadLettersAreAnswered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		headers string
		want    int
		count   uint64
	}{
		{"Ce-Id: 1\r\nCe-Specversion: 1.0\r\nCe-Source: s\r\nCe-Type: t", http.StatusAccepted, 1},
		{"Content-Type: application/cloudevents+json", http.StatusRequestTimeout, 0},
	} {
		sink := New(slog.New(slog.DiscardHandler))
		lines := "POST / HTTP/1.1\r\nHost: x\r\n" + c.headers
		if got := trickle.Ask(t, sink.Handle, lines, "{"); got != c.want || sink.Count() != c.count {
			t.Errorf("%s: %d, counted %d", c.headers, got, sink.Count())
		}
	}
}
