// SPDX-License-Identifier: Apache-2.0

package events

import "net/http"

// Scraped answers a GET of /metrics, and reports whether r is one. Whoever asks through Knative's queue-proxy is told that there are none:
// by Serving's gateway that is anybody in the cluster, and metrics have names of objects in them.
func Scraped(w http.ResponseWriter, r *http.Request, metrics http.Handler) bool {
	if r.Method != http.MethodGet || r.URL.Path != "/metrics" {
		return false
	}
	if forwarded(r) {
		http.NotFound(w, r)
		return true
	}
	metrics.ServeHTTP(w, r)
	return true
}

// forwarded reports whether a proxy says for whom it asks, as the queue-proxy does of every request: no sender can have it leave that out.
func forwarded(r *http.Request) bool {
	_, usual := r.Header["X-Forwarded-For"]
	_, standard := r.Header["Forwarded"]
	return usual || standard
}
