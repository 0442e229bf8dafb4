// SPDX-License-Identifier: Apache-2.0

package deadletter

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// spoilt is a body that other people's code panics about.
type spoilt struct{}

func (spoilt) Read([]byte) (int, error) { panic(strings.Repeat("spoilt", 1000)) }

// What the SDK panics about is answered, told in short, and counted: one header, "ce-: x", is refused before.
func TestNoDeadLetterGoesUnanswered(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]*http.Request{
		`"msg":"panic"`: httptest.NewRequest(http.MethodPost, "/", io.NopCloser(spoilt{})),
		`"msg":"dead letter is not a cloudevent"`: httptest.NewRequest(http.MethodPost, "/", http.NoBody),
	} {
		for _, name := range []string{"id", "source", "type", ""} {
			r.Header.Set("Ce-"+name, "x")
		}
		if r.Body == http.NoBody {
			r.Header.Set("Ce-Specversion", "1.0")
		}
		var log bytes.Buffer
		sink := New(slog.New(slog.NewJSONHandler(&log, nil)))
		w := httptest.NewRecorder()
		sink.Handle(w, r)
		if w.Code != http.StatusAccepted || sink.Count() != 1 || !strings.Contains(log.String(), want) || log.Len() > 1024 || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("%d, counted %d, log %s, want %s", w.Code, sink.Count(), &log, want)
		}
	}
}
