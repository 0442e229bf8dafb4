// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// busy is an API server that takes its time, and counts how many requests are there at a time.
type busy struct {
	silent
	takes     time.Duration
	now, most atomic.Int64
	all       atomic.Int64
}

func (b *busy) RoundTrip(r *http.Request) (*http.Response, error) {
	b.all.Add(1)
	n := b.now.Add(1)
	defer b.now.Add(-1)
	for most := b.most.Load(); n > most && !b.most.CompareAndSwap(most, n); most = b.most.Load() {
		continue
	}
	select {
	case <-time.After(b.takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	r.Method = http.MethodGet
	answer, err := b.silent.RoundTrip(r)
	if err == nil {
		answer.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	return answer, err
}

// However many ask at a time, few requests are under way; the time of the others runs from when it is their turn (RELIABILITY
// G6, §4 inputs). Whether the server is there at all waits for none of them.
func TestRequestsUnderWayAreBounded(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "1"}}
	for what, request := range map[string]func(context.Context, *Cluster) error{
		"reads": func(ctx context.Context, c *Cluster) error {
			_, err := c.Observe(ctx, snapshot.Snapshot{}, []snapshot.Query{snapshot.One("Pod", "ns", "p")})
			return err
		},
		"writes": func(ctx context.Context, c *Cluster) error { return c.Apply(ctx, plan.Delete{Object: pod}) },
	} {
		synctest.Test(t, func(t *testing.T) {
			api := &busy{silent: silent{"1"}, takes: requestTimeout - time.Second}
			c := connect(t, &rest.Config{Host: "http://api", Transport: api})
			var all sync.WaitGroup
			for range 5 * maxRequests {
				all.Go(func() {
					if err := request(t.Context(), c); err != nil {
						t.Errorf("%s: %v", what, err)
					}
				})
			}
			synctest.Wait()
			begin := time.Now()
			if err := c.Ready(t.Context()); err != nil || time.Since(begin) > 2*api.takes { // it lists Machines first
				t.Errorf("ready after %v: %v", time.Since(begin), err)
			}
			all.Wait()
			if most := api.most.Load(); most > maxRequests+1 { // and the one of Ready
				t.Errorf("%s: %d requests at a time, want at most %d", what, most, maxRequests)
			}
		})
	}
}

// Who leaves before it is his turn has asked nothing.
func TestWhoLeavesTheQueueAsksNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &busy{silent: silent{"1"}, takes: 9 * time.Second}
		c := connect(t, &rest.Config{Host: "http://api", Transport: api})
		var all sync.WaitGroup
		for range maxRequests {
			all.Go(func() {
				if err := c.Apply(t.Context(), plan.Delete{Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "1"}}}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.Apply(ctx, plan.Delete{Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q", UID: "2"}}})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), fmt.Sprint(maxRequests)) {
			t.Errorf("got %v", err)
		}
		all.Wait()
		if got := api.all.Load(); got != maxRequests {
			t.Errorf("%d requests, want %d", got, maxRequests)
		}
	})
}
