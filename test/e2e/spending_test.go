// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// spending counts what functions did, by their own metrics.
type spending map[item]int

// item is one series of a function's metrics.
type item struct{ function, metric, labels string }

var told = regexp.MustCompile(`(?m)^machines_([a-z_]+)_(actions|cloud_calls|events|invocations)_total\{(.*)\} (\d+)$`)

// spent asks every process of every function.
func (y yard) spent(t *testing.T) spending {
	t.Helper()
	s := spending{}
	for _, p := range y.Processes {
		if p.Name == "kubemark" || p.Name == "dead-letter" {
			continue // the simulated cloud, and what only logs
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.Address+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %v", p.Name, response.Status, err)
		}
		for _, m := range told.FindAllStringSubmatch(string(text), -1) {
			n, err := strconv.Atoi(m[4])
			if err != nil {
				t.Fatal(err)
			}
			s[item{strings.ReplaceAll(m[1], "_", "-"), m[2], strings.ReplaceAll(m[3], `"`, "")}] += n
		}
	}
	return s
}

func (s spending) since(before spending) spending {
	more := spending{}
	for what, n := range s {
		more[what] = n - before[what]
	}
	return more
}

func (s spending) sum(counts func(item) bool) (n int) {
	for what, times := range s {
		if counts(what) {
			n += times
		}
	}
	return n
}

// isRequest reports a request that would write an object. Evictions are as many as there are Pods.
func isRequest(i item) bool {
	return i.metric == "actions" && !strings.Contains(i.labels, "_instance,") && !strings.Contains(i.labels, "action=evict,") &&
		!strings.Contains(i.labels, "action=power_cycle,") && !strings.HasSuffix(i.labels, "result=untried")
}

// isWrite reports a request that had an effect; of the others somebody else was faster.
func isWrite(i item) bool { return isRequest(i) && strings.HasSuffix(i.labels, "result=done") }

func isCall(i item) bool { return i.metric == "cloud_calls" }

func isEvent(i item) bool { return i.metric == "events" }

// isOwnCall reports a call about one Machine; what many share does not grow with their number.
func isOwnCall(i item) bool {
	return isCall(i) && (strings.HasSuffix(i.labels, "op=find") || strings.HasSuffix(i.labels, "op=create") || strings.HasSuffix(i.labels, "op=delete"))
}

// isLook reports a call that only looks whether a Machine's instance is there.
func isLook(i item) bool { return isOwnCall(i) && strings.HasSuffix(i.labels, "op=find") }

// limits holds what n lives cost to what docs/calls.md promises, with a quarter to spare and more for what grows with time:
// a starved machine asks and writes again what it was not told in time. test/sim holds the exact figures.
func (s spending) limits(t *testing.T, n int) {
	t.Helper()
	// Once each (B68): test/sim holds that it is not less either. Here an API server that is starved may lose an Event.
	for _, reason := range []string{"Create", "Delete"} {
		if got := s[item{"provision-machine", "events", "reason=" + reason + ",type=Normal"}]; got > n {
			t.Errorf("%d Machines told the Event %s %d times", n, reason, got)
		}
	}
	for what, limit := range map[string]struct {
		counts func(item) bool
		most   float64
	}{
		"writes, Events included":    {func(i item) bool { return isWrite(i) || isEvent(i) }, 25}, // 18, the simulated providerStatus, and what fifty lives share, make 20
		"calls about one Machine":    {func(i item) bool { return isOwnCall(i) && !isLook(i) }, 5},
		"looks for one Machine":      {isLook, 4},                                                  // none but for a Machine that is not begun within a minute, or gets no clear answer
		"calls to the cloud, shared": {func(i item) bool { return isCall(i) && !isOwnCall(i) }, 4}, // a list for each scan
	} {
		if got := float64(s.sum(limit.counts)) / float64(n); got > limit.most {
			t.Errorf("%s: %.3f in each life, at most %.1f are wanted", what, got, limit.most)
		}
	}
}
