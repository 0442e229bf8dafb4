// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/test/local/stack"
)

// Of all events of a flood so many are sent twice, and so many are lost.
const (
	duplicated = 0.3
	dropped    = 0.1
	killEvery  = 20 * time.Second
	// answeredWithin is RELIABILITY R-L5.
	answeredWithin = 25 * time.Second
	// mostStandstill is how long the Broker may take nothing at all. What is too much for it it refuses; a place is free again when a
	// function answers, which it does within its patience of 18 s.
	mostStandstill = 20 * time.Second
	// leastSent is which part of the rate has to be sent, so that it was a flood.
	leastSent = 0.9
	// asking is how many events in a second go past the Broker meanwhile, to learn how long functions take to answer.
	asking = 5
	// mostUnderWay is how many requests may wait for an answer at a time: what 1,000 events a second leave in ten seconds in which
	// nobody answers. More would use up the machine that everything else runs on; then fewer are sent, and the report says so.
	mostUnderWay = 10_000
)

var floodSets = []string{"flood-a", "flood-b", "flood-c"}

// TestFlood sends events faster than any cluster makes them, first through the Broker, then straight at the functions, while
// people scale, Nodes fall ill, Pods wait, and one process of every function is killed every 20 s: every request is answered in
// time, no Machine ever has two instances, and in the end everything is as it is wanted and nobody writes any more (R-S1, R-S2,
// R-S14, R-L1, R-L5). The Broker may refuse events: each is 14 requests of its own, and what is too much for the machine is told
// apart in the report. It must answer every request in time too, and may at no time stand still. `make load` runs it,
// FLOOD_REPORT=<file> is written then.
func TestFlood(t *testing.T) {
	report := os.Getenv("FLOOD_REPORT")
	if report == "" {
		t.Skip("make load")
	}
	s, _ := startSystem(t, 40*time.Minute, stack.Options{Replicas: 2})
	f := &flood{yard: yard{kubectl{plane: s.ControlPlane}, s}, client: floodClient(), handled: newAccount(), down: map[string]*absence{}}
	for _, name := range floodSets {
		f.set(t, name, 5, "4c12g30d", "")
	}
	for _, name := range floodSets {
		f.running(t, name, 5)
	}
	f.decidesToo(t)
	text := f.phase(t, "through the Broker", 200, length(t, 3*time.Minute), s.Eventing.Broker)
	text += f.phase(t, "straight at the functions", 1000, length(t, time.Minute), "")
	calm := time.Now()
	for i, name := range floodSets {
		f.do(t, fmt.Sprintf("scale machineset %s%s --replicas=%d", name, inMachines, i+1))
	}
	for i, name := range floodSets {
		f.running(t, name, i+1)
	}
	f.decided(t, 1+2+3+1)
	text += fmt.Sprintf("converged %v after the last event\n", time.Since(calm).Round(time.Second))
	f.oneEach(t, 1+2+3+1)
	f.silent(t)
	f.do(t, "delete machineautoscaler "+jobsSet+inMachines)
	for _, name := range append(floodSets, jobsSet) {
		f.do(t, "scale machineset "+name+inMachines+" --replicas=0")
	}
	f.counts(t, "Machines that are left", 0, "get machines"+inMachines+" -o jsonpath={range.items[*]}.{end}")
	f.oneEach(t, 0)
	said := f.account(t)
	text += "decided: " + said.decisions() + "\n"
	for _, what := range mustHaveDecided {
		if said.decided[what] == 0 {
			t.Errorf("nobody told %s: the flood shows nothing of it", what)
		}
	}
	text += "dead letters: " + said.letters() + "\n"
	text += fmt.Sprintf("violations: %d; panics: %d; requests without an answer within %v: %d; cut off by nobody who was killed: %d\n",
		f.violations.Load(), said.panicked, answeredWithin, f.hung.Load(), f.broken.Load())
	if f.violations.Load()+int64(said.panicked)+f.hung.Load()+f.broken.Load() > 0 {
		t.Errorf("see the report:\n%s", text)
	}
	t.Log("\n" + text)
	text = strings.Replace(f.circumstances(t), "TestLoad", "TestFlood", 1) + text
	if err := os.WriteFile(report, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The sender sends on time while answers are late, and says so where it cannot.
func TestPour(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		most         int
		events       int
		behind, over time.Duration
	}{
		"there is room": {mostUnderWay, 10_000, 0, 15 * time.Second},
		"there is none": {1000, 2000, 8 * time.Second, 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				var sent sync.Map
				events, behind := pour(ctx, 1000, c.most, func(event int) {
					sent.Store(event, true)
					time.Sleep(5 * time.Second)
				})
				if near := max(events-c.events, c.events-events); near > 20 || (behind-c.behind).Abs() > 100*time.Millisecond {
					t.Errorf("%d events, %v behind; want %d, %v", events, behind, c.events, c.behind)
				}
				for event := range events {
					if _, is := sent.Load(event); !is {
						t.Fatalf("event %d was not sent", event)
					}
				}
				if took := time.Since(began); (took - c.over).Abs() > 100*time.Millisecond {
					t.Errorf("returned after %v, the last answer came after %v", took, c.over)
				}
			})
		})
	}
}

// Refusals and silence are no events that were taken.
func TestStandstill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers()
		for _, one := range []struct {
			after  time.Duration
			answer *http.Response
			want   time.Duration
		}{
			{2 * time.Second, &http.Response{StatusCode: http.StatusAccepted}, 2 * time.Second},
			{3 * time.Second, &http.Response{StatusCode: http.StatusInternalServerError}, 3 * time.Second},
			{3 * time.Second, nil, 6 * time.Second},
			{time.Second, &http.Response{StatusCode: http.StatusOK}, 7 * time.Second},
			{8 * time.Second, nil, 8 * time.Second},
		} {
			time.Sleep(one.after)
			a.add("", one.answer, 0)
			if got := a.standstill(time.Now()); got != one.want {
				t.Errorf("no event was taken for %v, want %v", got, one.want)
			}
		}
	})
}

// length returns how long a phase lasts: FLOOD_FOR where somebody tries things out.
func length(t *testing.T, d time.Duration) time.Duration {
	t.Helper()
	if text := os.Getenv("FLOOD_FOR"); text != "" {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// flood is a system under more events than it needs.
type flood struct {
	yard
	client     *http.Client
	hung       atomic.Int64
	broken     atomic.Int64
	violations atomic.Int64

	mu      sync.Mutex
	handled account             // what processes said that are gone now
	down    map[string]*absence // by address: when its process was last not there
}

// absence is until when a process was not there; without an end it is not there now.
type absence struct{ until time.Time }

// gone reports whether the process at an address was not there at some time from then on.
func (f *flood) gone(address string, since time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.down[address]
	return a != nil && (a.until.IsZero() || a.until.After(since))
}

func (f *flood) missing(address string, a *absence) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down[address] = a
}

// floodClient bounds nothing: a request that waits for a connection of its own sender would look like one that nobody answers. It
// leaves a connection that it has no use for before the Functions runtime does, which waits two seconds for the first request on a
// new one, and thirty for the next: a request on one that is just being closed has no answer.
func floodClient() *http.Client {
	return &http.Client{Timeout: 2 * answeredWithin, Transport: &http.Transport{MaxIdleConnsPerHost: 1000, IdleConnTimeout: time.Second}}
}

// pour calls send for so many events in each second until ctx ends, each in a goroutine of its own, of which so many may be under
// way. It returns how many events there were, once all of them were sent, and for how long it could not keep up.
func pour(ctx context.Context, rate, most int, send func(event int)) (events int, behind time.Duration) {
	var sending sync.WaitGroup
	defer sending.Wait()
	places := make(chan struct{}, most)
	began := time.Now()
	for ctx.Err() == nil {
		for due := int((time.Since(began) - behind).Seconds() * float64(rate)); events < due && ctx.Err() == nil; events++ {
			full := time.Now()
			select {
			case places <- struct{}{}:
			default:
				select {
				case places <- struct{}{}:
				case <-ctx.Done():
					return events, behind + time.Since(full)
				}
				behind += time.Since(full)
			}
			event := events
			sending.Go(func() {
				defer func() { <-places }()
				send(event)
			})
		}
		time.Sleep(2 * time.Millisecond)
	}
	return events, behind
}

// woken are the functions that events wake, each with the kinds.
var woken = map[string][]string{
	"scale-machineset": {"MachineSet", "Machine"}, "provision-machine": {"Machine", "MachineSet"}, "link-node": {"Node", "Machine"},
	"drain-node": {"Machine", "Node"}, "remediate": {"Machine", "Node", "MachineHealthCheck"},
	"evaluate-autoscale": {"ClusterAutoscaler", "MachineAutoscaler"},
}

// mortal are the functions that are killed: those that events wake, and the one that only scans do.
var mortal = append(slices.Sorted(maps.Keys(woken)), "sweep-instances")

// apiVersions are those of the kinds, as triggers filter them.
var apiVersions = map[string]string{
	"Node": "v1", "Machine": "machine.openshift.io/v1beta1", "MachineSet": "machine.openshift.io/v1beta1",
	"MachineHealthCheck": "machine.openshift.io/v1beta1",
	"ClusterAutoscaler":  "autoscaling.openshift.io/v1", "MachineAutoscaler": "autoscaling.openshift.io/v1beta1",
}

// answers are what one phase was answered.
type answers struct {
	mu     sync.Mutex
	status map[string]int
	took   []time.Duration
	taken  time.Time     // when the last event was taken
	pause  time.Duration // the longest time in which none was
}

func newAnswers() *answers { return &answers{status: map[string]int{}, taken: time.Now()} }

// add remembers one answer; nil means that there was none.
func (a *answers) add(status string, answer *http.Response, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status[status]++
	if answer == nil {
		return
	}
	a.took = append(a.took, took)
	if answer.StatusCode < http.StatusMultipleChoices {
		a.pause = max(a.pause, time.Since(a.taken))
		a.taken = time.Now()
	}
}

// standstill is the longest time until then in which no event was taken.
func (a *answers) standstill(until time.Time) time.Duration { return max(a.pause, until.Sub(a.taken)) }

// times tells how long answers took.
func (a *answers) times() string {
	slices.Sort(a.took)
	return fmt.Sprintf("p50 %v, p99 %v, at most %v", a.at(0.5), a.at(0.99), a.at(1))
}

// phase sends so many events in each second for a while to the Broker, or straight at the functions if none is told, with everything
// else that goes on, and tells how it went.
func (f *flood) phase(t *testing.T, name string, rate int, lasts time.Duration, broker string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	objects := f.objects(t)
	before := f.account(t)
	var others sync.WaitGroup
	kills := 0
	others.Go(func() { kills = f.kills(ctx, t) })
	others.Go(func() { f.people(ctx, t) })
	others.Go(func() { f.watch(ctx, t) })
	others.Go(func() { f.sickens(ctx, t) })
	others.Go(func() { f.works(ctx, t) })
	names := slices.Sorted(maps.Keys(woken))
	one := func(a *answers, broker, id string) (deliver func()) {
		function := names[rand.IntN(len(names))] //nolint:gosec // a load
		kinds := woken[function]
		kind := kinds[rand.IntN(len(kinds))]                   //nolint:gosec // a load
		object := objects[kind][rand.IntN(len(objects[kind]))] //nolint:gosec // a load
		return func() { f.send(t, a, cmp.Or(broker, f.address(function)), kind, object, id) }
	}
	a, past := newAnswers(), newAnswers()
	if broker != "" {
		others.Go(func() {
			pour(ctx, asking, mostUnderWay, func(event int) { one(past, "", fmt.Sprint("past-", event))() })
		})
	}
	began := time.Now()
	events, behind := pour(ctx, rate, mostUnderWay, func(event int) {
		deliver := one(a, broker, strconv.Itoa(event))
		switch p := rand.Float64(); { //nolint:gosec // a load
		case p < dropped:
		case p < dropped+duplicated:
			var second sync.WaitGroup
			second.Go(deliver)
			deliver()
			second.Wait()
		default:
			deliver()
		}
	})
	last := time.Since(began) - lasts
	others.Wait()
	all := f.account(t).took.since(before.took)
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %d events in %v, %.0f/s of %d/s, %.0f %% of them twice, %.0f %% lost; %d processes were killed\n",
		name, events, lasts, float64(events)/lasts.Seconds(), rate, 100*duplicated, 100*dropped, kills)
	if behind > 0 {
		fmt.Fprintf(&text, "  for %v nothing more was sent: %d requests waited for their answers\n", behind.Round(time.Second), mostUnderWay)
	}
	if sent := float64(events) / lasts.Seconds(); sent < leastSent*float64(rate) {
		t.Errorf("%s: %.0f events a second were sent, want %d: this machine is too slow, or too busy, to show anything", name, sent, rate)
	}
	fmt.Fprintf(&text, "  the last answer came %v after the last event\n", max(0, last).Round(100*time.Millisecond))
	for _, status := range slices.Sorted(maps.Keys(a.status)) {
		fmt.Fprintf(&text, "  answered %-22s %8d\n", status, a.status[status])
	}
	fmt.Fprintf(&text, "  a request took %s\n", a.times())
	pause := a.standstill(began.Add(lasts))
	fmt.Fprintf(&text, "  the longest time in which no event was taken: %v\n", pause.Round(100*time.Millisecond))
	if pause > mostStandstill {
		t.Errorf("%s: no event was taken for %v", name, pause)
	}
	if broker != "" {
		fmt.Fprintf(&text, "  past the Broker, functions answered %d/s after %s\n", asking, past.times())
	}
	fmt.Fprintf(&text, "  handling took, by the functions' metrics: p50 %v, p99 %v, %d invocations\n", all.at(0.5), all.at(0.99), all.count())
	return text.String()
}

func (a *answers) at(p float64) time.Duration {
	if len(a.took) == 0 {
		return 0
	}
	return a.took[min(len(a.took)-1, int(p*float64(len(a.took))))].Round(100 * time.Microsecond)
}

// send delivers one event and remembers the answer. That nobody listens where a process was just killed is no answer, and no fault.
func (f *flood) send(t *testing.T, a *answers, to, kind, object, id string) {
	t.Helper()
	namespace, name, _ := strings.Cut(object, "/")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader("{}"))
	if err != nil {
		t.Error(err)
		return
	}
	for key, value := range map[string]string{
		"Id": id, "Specversion": "1.0", "Source": "flood", "Type": "dev.knative.apiserver.ref.update",
		"Apiversion": apiVersions[kind], "Kind": kind, "Name": name, "Namespace": namespace,
	} {
		if value != "" {
			req.Header.Set("Ce-"+key, value)
		}
	}
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	status := ""
	resp, err := f.client.Do(req)
	took := time.Since(began)
	switch {
	case err == nil:
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		status = resp.Status
	case timedOut(err):
		status = "never"
	case strings.Contains(err.Error(), "http: idle connection timeout"): // it left the connection in the moment of taking it
		status = "by its own sender"
	case f.gone(req.URL.Host, began):
		status = "by a killed process"
	default:
		status = "by nobody"
		f.broken.Add(1)
		t.Logf("%v, %v after it was sent: %v", time.Now().Format(time.StampMilli), took, err)
	}
	if took > answeredWithin {
		f.hung.Add(1)
	}
	a.add(status, resp, took)
}

func timedOut(err error) bool {
	late, ok := errors.AsType[*url.Error](err)
	return ok && late.Timeout()
}

// address returns a process of a function that nobody kills at the moment.
func (f *flood) address(function string) string {
	var all []string
	for _, p := range f.Processes {
		if p.Name == function && !f.gone(p.Address, time.Now()) {
			all = append(all, "http://"+p.Address)
		}
	}
	return all[rand.IntN(len(all))] //nolint:gosec // a load
}

// objects are what events can be about, by kind; some of it is gone when they come.
func (f *flood) objects(t *testing.T) map[string][]string {
	t.Helper()
	const names = " -o jsonpath={range.items[*]}{.metadata.namespace}/{.metadata.name},{end}"
	all := map[string][]string{}
	for kind, get := range map[string]string{"Machine": "machines -A", "MachineSet": "machinesets -A", "Node": "nodes"} {
		await(t, "there are three of kind "+kind, func() string { // people scale meanwhile
			if all[kind] = strings.Split(strings.TrimSuffix(f.do(t, "get "+get+names), ","), ","); len(all[kind]) < 3 {
				return fmt.Sprint(all[kind])
			}
			return ""
		})
	}
	all["MachineHealthCheck"], all["MachineAutoscaler"] = []string{"openshift-machine-api/flood"}, []string{"openshift-machine-api/" + jobsSet}
	all["ClusterAutoscaler"] = []string{"/default"}
	return all
}

// kills ends one process of every function that events wake every 20 s, and starts it again.
func (f *flood) kills(ctx context.Context, t *testing.T) (n int) {
	t.Helper()
	for replica := 0; ; replica = 1 - replica {
		select {
		case <-ctx.Done():
			return n
		case <-time.After(killEvery):
		}
		for _, function := range mortal {
			p := f.Replica(function, replica)
			f.remember(t, p)
			f.missing(p.Address, &absence{})
			p.Kill()
			n++
			if err := errors.Join(p.Start(), p.AwaitReady(t.Context())); err != nil {
				t.Error(err)
			}
			f.missing(p.Address, &absence{until: time.Now()})
		}
	}
}

// people scale the sets again and again.
func (f *flood) people(ctx context.Context, t *testing.T) {
	t.Helper()
	for ctx.Err() == nil {
		f.do(t, fmt.Sprintf("scale machineset %s%s --replicas=%d", floodSets[rand.IntN(3)], inMachines, rand.IntN(8))) //nolint:gosec // a load
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second):
		}
	}
}

// watch looks for Machines with two instances.
func (f *flood) watch(ctx context.Context, t *testing.T) {
	t.Helper()
	for ctx.Err() == nil {
		for uid, records := range f.history(t) {
			if n := living(records); n > 1 {
				f.violations.Add(1)
				t.Errorf("Machine %s has %d instances: %v", uid, n, records)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second):
		}
	}
}

func living(records map[string]bool) (n int) {
	for _, alive := range records {
		if alive {
			n++
		}
	}
	return n
}

// oneEach waits until so many instances live, and holds that no Machine ever had two.
func (f *flood) oneEach(t *testing.T, want int) {
	t.Helper()
	await(t, fmt.Sprintf("%d instances live", want), func() string {
		alive := 0
		for _, records := range f.history(t) {
			alive += living(records)
		}
		if alive != want {
			return fmt.Sprintf("%d do", alive)
		}
		return ""
	})
	for uid, records := range f.history(t) {
		if len(records) > 1 {
			f.violations.Add(1)
			t.Errorf("Machine %s had the instances %v", uid, records)
		}
	}
}

// silent waits until nobody writes an object of ours during three scans.
func (f *flood) silent(t *testing.T) {
	t.Helper()
	const versions = "get machines,machinesets,machinehealthchecks,machineautoscalers,clusterautoscalers,configmaps" + inMachines + " -o jsonpath={range.items[*]}{.metadata.resourceVersion},{end}"
	await(t, "nobody writes during three scans", func() string {
		before := f.do(t, versions)
		time.Sleep(30 * time.Second)
		if f.do(t, versions) != before {
			return "somebody does"
		}
		return ""
	})
}
