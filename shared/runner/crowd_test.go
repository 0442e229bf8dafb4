// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/events"
	"github.com/machine-functions/machine-functions/shared/flights"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// sharing is an API server that takes its time for a list, which all who wait for it share.
type sharing struct {
	cluster.Cluster
	takes time.Duration
	lists *flights.Group[string, snapshot.Snapshot]
}

func (c sharing) Observe(ctx context.Context, s snapshot.Snapshot, q []snapshot.Query) (snapshot.Snapshot, error) {
	if _, err := c.lists.Do(ctx, "nodes", func(context.Context) (s snapshot.Snapshot, err error) {
		time.Sleep(c.takes)
		return s, nil
	}); err != nil {
		return s, err
	}
	return c.Cluster.Observe(ctx, s, q)
}

// crowd delivers an event about each of n Nodes at the same time, and returns how often which status was the answer.
func crowd(s *Server, n int) map[int]int {
	var all sync.WaitGroup
	var mu sync.Mutex
	answers := map[int]int{}
	for i := range n {
		all.Go(func() {
			w := postAbout(s, events.TypeRefPrefix+"update", snapshot.Request{APIVersion: "v1", Kind: "Node", Name: fmt.Sprintf("n%d", i)})
			mu.Lock()
			defer mu.Unlock()
			answers[w.Code]++
		})
	}
	all.Wait()
	return answers
}

// Invocations that wait for one shared list of a busy API server keep no others from joining them: two hundred deliveries are
// all answered (RELIABILITY §5, load).
func TestWaitingForASharedListTurnsNobodyAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := sharing{world(t, 1).As("label"), 3 * time.Second, flights.New[string, snapshot.Snapshot](0)}
		s := NewServer(testRunner(label(func(snapshot.Snapshot) plan.Plan { return plan.Plan{} }), api), nil)
		if got := crowd(s, 200); got[http.StatusAccepted] != 200 {
			t.Errorf("answers %v, want all accepted", got)
		}
	})
}

// wide is a function whose events, once they looked at their Node, leave all to a scan.
func wide(scans *atomic.Int64) function.Function {
	return function.Function{
		Name: "wide",
		Reads: func(s snapshot.Snapshot) snapshot.Scope {
			one := snapshot.One("Node", "", s.Request.Name)
			switch {
			case s.Request.Scan():
				return snapshot.Scope{Objects: []snapshot.Query{snapshot.All("Node")}}
			case s.Has(one):
				return snapshot.Scope{Scan: true}
			}
			return snapshot.Scope{Objects: []snapshot.Query{one}}
		},
		Decide: func(s snapshot.Snapshot) plan.Plan {
			if !s.Request.Scan() {
				panic("an event decides what a scan should")
			}
			scans.Add(1)
			return wantLabel(s)
		},
	}
}

// However many objects fall ill together, their events share scans, of which one is under way at a time: else each keeps a list of all
// objects for as long as it waits, and the function is killed for its memory in the outage that it is there for (RELIABILITY 2g).
func TestEventsThatConcernAllShareAScan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var scans atomic.Int64
		api := world(t, 200)
		s := NewServer(testRunner(wide(&scans), sharing{api.As("wide"), time.Second, flights.New[string, snapshot.Snapshot](0)}), nil)
		got := crowd(s, 200)
		if got[http.StatusAccepted]+got[http.StatusOK] != 200 || got[http.StatusOK] == 0 {
			t.Errorf("answers %v", got)
		}
		if n := scans.Load(); n > 4 { // two, of two rounds each
			t.Errorf("%d decisions", n)
		}
	})
}

// Without others beside it an invocation is the scan that it asks for.
func TestEventIsTheScanThatItAsksFor(t *testing.T) {
	t.Parallel()
	var scans atomic.Int64
	api := world(t, 3)
	p, err := testRunner(wide(&scans), api.As("wide")).Handle(t.Context(), snapshot.Request{APIVersion: "v1", Kind: "Node", Name: "n1"})
	if err != nil || len(p.Do) != 3 || scans.Load() == 0 {
		t.Errorf("%v: planned\n%v", err, p)
	}
}

// crowded is an API server that takes its time to write, and counts how many writes are there at a time.
type crowded struct {
	slow
	now, most *atomic.Int64
}

func (c crowded) Apply(ctx context.Context, a plan.Action) error {
	n := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
		continue
	}
	return c.slow.Apply(ctx, a)
}

// However many invocations are under way, few of them act (RELIABILITY §4, inputs).
func TestFewInvocationsActAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := world(t, maxInvocations)
		write := func(s snapshot.Snapshot) plan.Plan {
			mine := s
			mine.Nodes = nil
			if n := s.Node(s.Request.Name); n != nil {
				mine.Nodes = append(mine.Nodes, n)
			}
			return wantLabel(mine)
		}
		c := crowded{slow{api.As("label"), time.Second}, &atomic.Int64{}, &atomic.Int64{}}
		s := NewServer(testRunner(label(write), c), nil)
		if got := crowd(s, maxInvocations); got[http.StatusOK] != maxInvocations {
			t.Errorf("answers %v, want all decided", got)
		}
		if most := c.most.Load(); most != maxBusy {
			t.Errorf("%d invocations wrote at a time, want %d", most, maxBusy)
		}
	})
}

// Knative lets a process have as many requests as it takes: whoever would be kept waiting outside can share no answer with those
// inside. Where there may be more processes, there are when more requests want to act than one process lets.
func TestKnativeLetsAsManyIn(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../config/services/*-*.yaml")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d services, error %v", len(files), err)
	}
	for _, file := range append(files, "../../config/overlays/approve-node/service.yaml") {
		if filepath.Base(file) == "dead-letter.yaml" {
			continue // it answers at once
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var service struct {
			Spec struct {
				Template struct {
					Metadata struct{ Annotations map[string]string }
					Spec     struct{ ContainerConcurrency int }
				}
			}
		}
		if err := yaml.Unmarshal(text, &service); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		of := service.Spec.Template
		if of.Spec.ContainerConcurrency != maxInvocations {
			t.Errorf("%s: containerConcurrency is %d, a process takes %d", file, of.Spec.ContainerConcurrency, maxInvocations)
		}
		target, want := of.Metadata.Annotations["autoscaling.knative.dev/target"], strconv.Itoa(maxBusy)
		if of.Metadata.Annotations["autoscaling.knative.dev/max-scale"] == "1" {
			want = ""
		}
		if target != want {
			t.Errorf("%s: target is %q, want %q", file, target, want)
		}
	}
}
