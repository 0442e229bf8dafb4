// SPDX-License-Identifier: Apache-2.0

package deadletter

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const (
	secret  = "canary"
	maxBody = 64 << 10 // that is read
)

func TestSinkLogsMetadataOnly(t *testing.T) {
	t.Parallel()
	long, quotes := strings.Repeat("x", 500)+secret, strings.Repeat(`"`, 500)
	for _, tt := range []struct {
		name    string
		header  http.Header
		body    string
		message string
		want    []string
	}{
		{
			name: "binary event",
			header: http.Header{
				"Ce-Id": {"1"}, "Ce-Specversion": {"1.0"}, "Ce-Source": {"s"}, "Ce-Type": {"dev.knative.apiserver.ref.update"},
				"Ce-Kind": {"Machine"}, "Ce-Name": {"worker-a"}, "Ce-Knativeerrorcode": {"503"}, "Ce-Knativeerrordest": {"http://link-node/"},
				"Ce-Knativeerrordata": {secret}, "Content-Type": {"application/json"},
			},
			body:    `{"password":"` + secret + `"}`,
			message: `"msg":"dead letter"`,
			want:    []string{`"event_id":"1"`, `"event_source":"s"`, `"kind":"Machine"`, `"name":"worker-a"`, `"knativeerrorcode":"503"`, `"count":1`},
		},
		{
			name:    "structured event",
			header:  http.Header{"Content-Type": {"application/cloudevents+json"}},
			body:    `{"specversion":"1.0","id":"2","source":"s","type":"t","kind":"Node","data":{"password":"` + secret + `"}}`,
			message: `"msg":"dead letter"`,
			want:    []string{`"event_id":"2"`, `"kind":"Node"`},
		},
		{
			name: "long values are cut",
			header: http.Header{
				"Ce-Id": {long}, "Ce-Specversion": {"1.0"}, "Ce-Source": {long}, "Ce-Type": {long},
				"Ce-Kind": {long}, "Ce-Namespace": {long}, "Ce-Name": {long}, "Ce-Scan": {long}, "Ce-Knativeerrordest": {long}, "Ce-Knativeerrorcode": {long},
			},
			message: `"msg":"dead letter"`,
		},
		{
			name: "values that JSON escapes",
			header: http.Header{
				"Ce-Id": {quotes}, "Ce-Specversion": {"1.0"}, "Ce-Source": {"s"}, "Ce-Type": {quotes},
				"Ce-Kind": {quotes}, "Ce-Namespace": {quotes}, "Ce-Name": {quotes}, "Ce-Scan": {quotes}, "Ce-Knativeerrordest": {quotes}, "Ce-Knativeerrorcode": {quotes},
			},
			message: `"msg":"dead letter"`,
			want:    []string{`"kind":"??`},
		},
		{
			name: "binary event with a large body", // as of a question: all that is told stands in headers
			header: http.Header{
				"Ce-Id": {"3"}, "Ce-Specversion": {"1.0"}, "Ce-Source": {"s"}, "Ce-Type": {"machine.autoscale.simulate"},
				"Ce-Knativeerrorcode": {"429"}, "Content-Type": {"application/json"},
			},
			body:    strings.Repeat(secret, 2*maxBody),
			message: `"msg":"dead letter"`,
			want:    []string{`"event_id":"3"`, `"knativeerrorcode":"429"`},
		},
		{
			name:    "no event at all",
			body:    secret,
			message: `"msg":"dead letter is not a cloudevent"`,
		},
		{
			name:    "too much of it",
			header:  http.Header{"Content-Type": {"application/cloudevents+json"}},
			body:    strings.Repeat(" ", maxBody) + secret,
			message: `"msg":"dead letter is not a cloudevent"`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			sink := New(slog.New(slog.NewJSONHandler(&log, nil)))
			body := strings.NewReader(tt.body)
			r := httptest.NewRequest(http.MethodPost, "/", body)
			r.Header = tt.header
			w := httptest.NewRecorder()

			sink.Handle(w, r)

			line := log.String()
			if w.Code != http.StatusAccepted || w.Body.Len() > 0 {
				t.Errorf("answered %d %q", w.Code, w.Body)
			}
			for _, want := range append(tt.want, tt.message, `"level":"ERROR"`) {
				if !strings.Contains(line, want) {
					t.Errorf("log %s does not contain %s", line, want)
				}
			}
			if strings.Contains(line, secret) || strings.Count(line, "\n") != 1 || len(line) > 1024 {
				t.Errorf("log has %d bytes: %s", len(line), line)
			}
			if read := len(tt.body) - body.Len(); read > 65<<10 {
				t.Errorf("%d bytes were read", read)
			}
			if sink.Count() != 1 {
				t.Errorf("counted %d", sink.Count())
			}
		})
	}
}

// What is told survives its process in whoever reads it: by function, kind and code, and by nothing that a stranger may choose.
func TestSinkTellsItsCounts(t *testing.T) {
	t.Parallel()
	sink := New(slog.New(slog.DiscardHandler))
	post := func(attributes map[string]string) {
		r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
		for name, value := range map[string]string{"id": "1", "specversion": "1.0", "source": "s", "type": "t"} {
			r.Header.Set("Ce-"+name, value)
		}
		for name, value := range attributes {
			r.Header.Set("Ce-"+name, value)
		}
		sink.Handle(httptest.NewRecorder(), r)
	}
	scrape := func() string {
		w := httptest.NewRecorder()
		sink.Handle(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		return w.Body.String()
	}
	if got := scrape(); strings.Contains(got, metric+"{") || !strings.Contains(got, "# TYPE "+metric+" counter\n") {
		t.Errorf("before any: %s", got)
	}
	refused := map[string]string{"kind": "Machine", "knativeerrordest": "http://link-node.openshift-machine-api.svc.cluster.local/", "knativeerrorcode": "401"}
	post(refused)
	post(refused)
	post(map[string]string{"scan": "fast", "knativeerrordest": "http://remediate.openshift-machine-api.svc.cluster.local"})
	post(map[string]string{"kind": "a\"b", "knativeerrordest": "http://A_" + secret + "/", "knativeerrorcode": secret})
	sink.Handle(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(secret)))
	got := scrape()
	for _, want := range []string{
		`{code="401",function="link-node",kind="Machine"} 2`, `{code="",function="remediate",kind="Scan"} 1`,
		`{code="other",function="other",kind="other"} 1`, `{code="",function="",kind=""} 1`,
	} {
		if !strings.Contains(got, metric+want+"\n") {
			t.Errorf("nowhere: %s in\n%s", want, got)
		}
	}
	for i := range 2 * maxSeries {
		post(map[string]string{"kind": fmt.Sprintf("Kind%d", i)})
	}
	if got = scrape(); strings.Count(got, metric+"{") != maxSeries-1 || strings.Contains(got, secret) { // "other" is there already
		t.Errorf("%d series, at most %d:\n%.300s", strings.Count(got, metric+"{"), maxSeries, got)
	}
	through := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
	through.Header.Set("X-Forwarded-For", "192.0.2.1")
	w := httptest.NewRecorder()
	if sink.Handle(w, through); w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), metric) {
		t.Errorf("through the queue-proxy: %d %.300s", w.Code, w.Body)
	}
	if sink.Count() != 5+2*maxSeries {
		t.Errorf("counted %d", sink.Count())
	}
}
