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
