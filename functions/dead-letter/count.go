// SPDX-License-Identifier: Apache-2.0

package deadletter

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// metric counts dead letters by who could not take them, what they were about, and the answer's code.
const metric = "machines_dead_letter_received_total"

// maxSeries bounds the series of the metric: what is beyond shares one. Nine functions with six kinds and a few codes stay far below.
const maxSeries = 500

// series is what one count is of. Whoever reaches the sink may post anything: a value that looks like none of ours is "other".
type series struct{ function, kind, code string }

var (
	functionName = regexp.MustCompile(`^[a-z][-a-z0-9]{0,62}$`)
	kindName     = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)
	codeName     = regexp.MustCompile(`^[1-5][0-9]{2}$`)
)

// seriesOf reads the attributes of an event: where it was to be delivered, whom it is about, what was answered.
func seriesOf(attributes map[string]any) series {
	word := func(name string) string { s, _ := attributes[name].(string); return s }
	function := ""
	if to, err := url.Parse(word("knativeerrordest")); err == nil {
		function, _, _ = strings.Cut(to.Hostname(), ".")
	}
	kind := word("kind")
	if scan := word("scan"); kind == "" && scan != "" {
		kind = "Scan"
	}
	return series{known(functionName, function), known(kindName, kind), known(codeName, word("knativeerrorcode"))}
}

func known(form *regexp.Regexp, value string) string {
	if value == "" || form.MatchString(value) {
		return value
	}
	return "other"
}

// tally counts by series. It is safe for concurrent use; its zero value has counted nothing.
type tally struct {
	mu  sync.Mutex
	all uint64
	by  map[series]uint64
}

// add counts one more and returns how many there are of all.
func (t *tally) add(s series) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[series]uint64{}
	}
	if _, ok := t.by[s]; !ok && len(t.by) >= maxSeries-1 {
		s = series{"other", "other", "other"}
	}
	t.by[s]++
	t.all++
	return t.all
}

// total returns how many were counted.
func (t *tally) total() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all
}

// ServeHTTP answers a scrape in Prometheus' text format.
func (t *tally) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	t.mu.Lock()
	lines := make([]string, 0, len(t.by))
	for s, n := range t.by {
		lines = append(lines, fmt.Sprintf("%s{code=%q,function=%q,kind=%q} %d\n", metric, s.code, s.function, s.kind, n))
	}
	t.mu.Unlock()
	slices.Sort(lines)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = fmt.Fprintf(w, "# HELP %s Events that no function could take.\n# TYPE %s counter\n%s", metric, metric, strings.Join(lines, "")) // who left needs none
}
