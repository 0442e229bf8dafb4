// SPDX-License-Identifier: Apache-2.0

package events

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// Prometheus asks a process itself. What comes through Knative's queue-proxy anybody in the cluster may have asked, and it says so
// whatever headers the asker sends or has it leave out.
func TestScrapesComePastTheQueueProxy(t *testing.T) {
	t.Parallel()
	metrics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	process := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !Scraped(w, r, metrics) {
			w.WriteHeader(http.StatusBadRequest) // it is no event either
		}
	}))
	t.Cleanup(process.Close)
	at, err := url.Parse(process.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Director: func(r *http.Request) { r.URL.Scheme, r.URL.Host = "http", at.Host }}) // as knative.dev/serving/pkg/http has it
	t.Cleanup(proxy.Close)
	for name, c := range map[string]struct {
		to      string
		headers map[string]string
		want    int
	}{
		"a scrape":                      {process.URL + "/metrics", nil, http.StatusOK},
		"elsewhere":                     {process.URL + "/", nil, http.StatusBadRequest},
		"by the proxy":                  {proxy.URL + "/metrics", nil, http.StatusNotFound},
		"by the proxy, to be taken off": {proxy.URL + "/metrics", map[string]string{"Connection": "X-Forwarded-For"}, http.StatusNotFound},
		"by the proxy, with nothing":    {proxy.URL + "/metrics", map[string]string{"X-Forwarded-For": ""}, http.StatusNotFound},
		"by one with the other header":  {process.URL + "/metrics", map[string]string{"Forwarded": "for=192.0.2.1"}, http.StatusNotFound},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.to, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range c.headers {
			r.Header.Set(key, value)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != c.want {
			t.Errorf("%s: %d, want %d", name, answer.StatusCode, c.want)
		}
	}
}
