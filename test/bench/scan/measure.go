// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	evaluateautoscale "github.com/machine-functions/machine-functions/functions/evaluate-autoscale"
	"github.com/machine-functions/machine-functions/shared/cluster/kube"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/bench"
)

// Result is the line about all scans. CPU is of the process that scans: user and system, garbage collection included.
type Result struct {
	Impl      string         `json:"impl"`
	Nodes     int            `json:"nodes"`
	Pods      int            `json:"pods"`
	Cold      One            `json:"cold"`    // the first scan of a new process
	Warm      One            `json:"warm"`    // the middle one of the others, by CPU
	Slowest   One            `json:"slowest"` // of the others, by CPU
	PeakRSSMB float64        `json:"peakRssMB"`
	Plan      map[string]int `json:"plan"` // actions by verb and kind
	LoadAvg   string         `json:"loadavg"`
}

// One is what one scan cost.
type One struct {
	WallMS  float64        `json:"wallMs"`
	CPUMS   float64        `json:"cpuMs"`
	Calls   int            `json:"calls"`
	ByKind  map[string]int `json:"callsByKind"`
	MB      float64        `json:"readMB"`
	RSSMB   float64        `json:"rssMB"` // after it
	Retries int            `json:"retries,omitempty"`
}

// measure scans as the function does, in the shadow: once cold, then each ten seconds.
func measure(ctx context.Context, server string, scans int) error {
	config := &rest.Config{Host: server}
	if !strings.HasPrefix(server, "http://") {
		var err error
		if config, err = clientcmd.BuildConfigFromFlags("", server); err != nil {
			return err
		}
	}
	counter := &counter{}
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { counter.next = next; return counter }
	f := evaluateautoscale.Function
	seen := &seeing{decide: f.Decide}
	f.Decide = seen.Decide
	api, err := kube.New(config, kube.Options{FieldManager: f.Name, Watched: f.Watches})
	if err != nil {
		return err
	}
	r := &runner.Runner{Function: f, Cluster: api, DryRun: true, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	var all []One
	for len(all) <= scans {
		if len(all) > 0 {
			time.Sleep(10 * time.Second)
		}
		one, err := scan(ctx, r, counter)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	result := Result{Impl: "machine-functions", Nodes: seen.nodes, Pods: seen.pods, Cold: all[0], PeakRSSMB: bench.PeakMB(), Plan: seen.plan, LoadAvg: loadAverage()}
	if warm := all[1:]; len(warm) > 0 {
		slices.SortFunc(warm, func(a, b One) int { return int(a.CPUMS - b.CPUMS) })
		result.Warm, result.Slowest = warm[len(warm)/2], warm[len(warm)-1]
	}
	return printed(result)
}

// scan makes one scan. One that has no time for its reading is repeated, as Knative would.
func scan(ctx context.Context, r *runner.Runner, c *counter) (o One, err error) {
	c.reset()
	began, used := time.Now(), cpuTime()
	for o.Retries = 0; ; o.Retries++ {
		if _, err = r.Handle(ctx, snapshot.Request{}); err == nil || o.Retries == 20 {
			break
		}
	}
	o.WallMS, o.CPUMS = milliseconds(time.Since(began)), milliseconds(cpuTime()-used)
	o.Calls, o.ByKind, o.MB = c.calls, c.byKind, float64(c.bytes)/1e6
	o.RSSMB = rss()
	return o, err
}

// seeing remembers what the function saw and planned last.
type seeing struct {
	decide      func(snapshot.Snapshot) plan.Plan
	nodes, pods int
	plan        map[string]int
}

func (s *seeing) Decide(seen snapshot.Snapshot) plan.Plan {
	p := s.decide(seen)
	s.nodes, s.pods, s.plan = len(seen.Nodes), len(seen.Pods), map[string]int{}
	for _, a := range p.Actions() {
		verb, kind, _ := strings.Cut(strings.SplitN(string(a.Key()), "/", 2)[0], " ")
		s.plan[verb+" "+kind]++
	}
	return p
}

// counter counts requests, and what their answers weigh.
type counter struct {
	next   http.RoundTripper
	mu     sync.Mutex
	calls  int
	byKind map[string]int
	bytes  int64
}

func (c *counter) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls, c.byKind, c.bytes = 0, map[string]int{}, 0
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	what := "list "
	if r.URL.Query().Get("watch") != "" {
		what = "watch "
	}
	at := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	kind := at[len(at)-1]
	if !r.URL.Query().Has("limit") && what == "list " {
		what, kind = "get ", at[max(0, len(at)-2)]
	}
	c.mu.Lock()
	c.calls++
	c.byKind[what+kind]++
	c.mu.Unlock()
	response, err := c.next.RoundTrip(r)
	if err == nil {
		response.Body = &weighed{response.Body, c}
	}
	return response, err
}

type weighed struct {
	io.ReadCloser
	on *counter
}

func (w *weighed) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.on.mu.Lock()
	defer w.on.mu.Unlock()
	w.on.bytes += int64(n)
	return n, err
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

func usage() (u syscall.Rusage) {
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return syscall.Rusage{}
	}
	return u
}

func cpuTime() time.Duration {
	u := usage()
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func rss() float64 {
	var size, resident float64
	text, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, _ = fmt.Sscan(string(text), &size, &resident)
	}
	return resident * float64(os.Getpagesize()) / 1e6
}

func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
