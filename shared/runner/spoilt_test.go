// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/events"
	"github.com/machine-functions/machine-functions/shared/metrics"
)

func measured(t *testing.T) *metrics.Metrics {
	t.Helper()
	m, err := metrics.New("label", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// spoilt is a body that other people's code panics about.
type spoilt struct{}

func (spoilt) Read([]byte) (int, error) { panic("spoilt") }

// What panics over a request before it wakes anybody is answered and counted as any other panic.
func TestPanicOfADecoderIsAnswered(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := NewServer(testRunner(label(wantLabel), world(t, 1).As("label")), nil)
	s.Runner.Log, s.Runner.Metrics = slog.New(slog.NewJSONHandler(&log, nil)), measured(t)
	w := httptest.NewRecorder()
	s.Handle(w, httptest.NewRequest(http.MethodPost, "/", io.NopCloser(spoilt{})))
	scrape := httptest.NewRecorder()
	s.Handle(scrape, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if w.Code != http.StatusInternalServerError || !strings.Contains(log.String(), `"msg":"panic"`) || !strings.Contains(scrape.Body.String(), `result="panicked"} 1`) {
		t.Errorf("%d, log %s, metrics\n%s", w.Code, &log, scrape.Body)
	}
}

// One header, "ce-: x", is no attribute and no panic: it is refused as whatever else is malformed is.
func TestHeaderWithoutANameIsRefused(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := NewServer(testRunner(label(wantLabel), world(t, 1).As("label")), nil)
	s.Runner.Log = slog.New(slog.NewJSONHandler(&log, nil))
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	for name, value := range map[string]string{"Specversion": "1.0", "Id": "7", "Source": "x", "Type": events.TypePing, "": "x"} {
		r.Header.Set("ce-"+name, value)
	}
	w := httptest.NewRecorder()
	s.Handle(w, r)
	if w.Code != http.StatusBadRequest || strings.Count(log.String(), "\n") != 1 || log.Len() > 1024 || !strings.Contains(log.String(), "event refused") {
		t.Errorf("%d, log %s", w.Code, &log)
	}
}
