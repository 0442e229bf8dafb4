// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/test/local/stack"
)

// Dead letters are told by who could not take them, and how often.
func TestLetters(t *testing.T) {
	t.Parallel()
	all := newAccount()
	if got := all.letters(); got != "none" {
		t.Error(got)
	}
	said := newAccount()
	said.read(t, []byte(`# TYPE machines_dead_letter_received_total counter
machines_dead_letter_received_total{code="429",function="link-node",kind="Node"} 2
machines_dead_letter_received_total{code="429",function="link-node",kind="Machine"} 3
machines_dead_letter_received_total{code="",function="",kind="Node"} 4
machines_link_node_invocations_total{result="panicked"} 1
`))
	all.add(said)
	all.add(said)
	if got, want := all.letters(), "8 that the filter did not answer, 10 with 429 of link-node"; got != want || all.panicked != 2 {
		t.Errorf("%s; %d panics; want %s", got, all.panicked, want)
	}
}

// histogram is how many invocations took at most so long, by the upper bound as it is written.
type histogram map[string]int

var bucket = regexp.MustCompile(`(?m)^machines_[a-z_]+_invocation_duration_seconds_bucket\{.*le="([^"]+)".*\} (\d+)$`)

// account is what processes say of what they handled: how long it took, how often they panicked, the dead letters by who could
// not take them, and by reason what remediate and evaluate-autoscale told.
type account struct {
	took     histogram
	panicked int
	dead     map[string]int
	decided  map[string]int
}

func newAccount() account {
	return account{took: histogram{}, dead: map[string]int{}, decided: map[string]int{}}
}

var panicked = regexp.MustCompile(`(?m)^machines_[a-z_]+_invocations_total\{.*result="panicked".*\} (\d+)$`)

var deadLetter = regexp.MustCompile(`(?m)^machines_dead_letter_received_total\{code="(.*)",function="(.*)",kind=".*"\} (\d+)$`)

// letters tells of the dead letters.
func (a *account) letters() string {
	var all []string
	for _, who := range slices.Sorted(maps.Keys(a.dead)) {
		all = append(all, fmt.Sprintf("%d %s", a.dead[who], who))
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}

func (a *account) add(b account) {
	a.panicked += b.panicked
	for who, n := range b.dead {
		a.dead[who] += n
	}
	for what, n := range b.decided {
		a.decided[what] += n
	}
	for le, n := range b.took {
		a.took[le] += n
	}
}

// remember adds what a process says to what those said that are gone.
func (f *flood) remember(t *testing.T, p *stack.Process) {
	t.Helper()
	said := f.scrape(t, p)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handled.add(said)
}

// account returns what all processes said together so far.
func (f *flood) account(t *testing.T) account {
	t.Helper()
	all := newAccount()
	f.mu.Lock()
	all.add(f.handled)
	f.mu.Unlock()
	for _, p := range f.Processes {
		if slices.Contains(mortal, p.Name) || p.Name == "dead-letter" {
			all.add(f.scrape(t, p))
		}
	}
	return all
}

func (f *flood) scrape(t *testing.T, p *stack.Process) account {
	t.Helper()
	said := newAccount()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.Address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := f.client.Do(req)
	if err != nil {
		t.Error(err)
		return said
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	said.read(t, text)
	return said
}

// read adds what the metrics of a process say.
func (a *account) read(t *testing.T, text []byte) {
	t.Helper()
	number := func(text []byte) int {
		n, err := strconv.Atoi(string(text))
		if err != nil {
			t.Error(err)
		}
		return n
	}
	for _, m := range bucket.FindAllSubmatch(text, -1) {
		a.took[string(m[1])] += number(m[2])
	}
	for _, m := range panicked.FindAllSubmatch(text, -1) {
		a.panicked += number(m[1])
	}
	for _, m := range eventsTold.FindAllSubmatch(text, -1) {
		a.decided[strings.ReplaceAll(string(m[1]), "_", "-")+" "+string(m[2])] += number(m[3])
	}
	for _, m := range deadLetter.FindAllSubmatch(text, -1) {
		who := "that the filter did not answer"
		if len(m[2]) > 0 {
			who = fmt.Sprintf("with %s of %s", m[1], m[2])
		}
		a.dead[who] += number(m[3])
	}
}

func (h histogram) since(before histogram) histogram {
	more := histogram{}
	for le, n := range h {
		more[le] = n - before[le]
	}
	return more
}

func (h histogram) count() int { return h["+Inf"] }

// at returns the upper bound of the bucket that a share of the invocations lies in.
func (h histogram) at(p float64) string {
	bounds := slices.SortedFunc(maps.Keys(h), func(a, b string) int {
		x, _ := strconv.ParseFloat(a, 64) // +Inf is one
		y, _ := strconv.ParseFloat(b, 64)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	for _, le := range bounds {
		if float64(h[le]) >= p*float64(h.count()) {
			return "≤ " + le + " s"
		}
	}
	return "unknown"
}
