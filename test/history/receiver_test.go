// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// R-B36: all requests put their events into one channel, and each takes one out of it, handles that, and answers with it. So the
// work for one is cut off when the client of another goes away, and who waits for it waits for ever. Forty clients ask at the same
// time, every other one goes away after a second, the work takes two: the others have to be answered, and their work is not cut off.
func TestReceivers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		receiver func(work) http.HandlerFunc
		harms    bool
	}{
		"naive": {shared, true},
		"ours":  {ours, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				done := map[string]error{}
				var mu sync.Mutex
				handle := c.receiver(func(ctx context.Context, object string) error {
					err := error(nil)
					select {
					case <-time.After(2 * time.Second):
					case <-ctx.Done():
						err = ctx.Err()
					}
					mu.Lock()
					defer mu.Unlock()
					done[object] = err
					return err
				})
				var clients sync.WaitGroup
				answered := make([]time.Duration, 40)
				for i := range answered {
					clients.Go(func() {
						ctx, leave := context.WithTimeout(t.Context(), 30*time.Second)
						if i%2 == 1 {
							ctx, leave = context.WithTimeout(t.Context(), time.Second)
						}
						defer leave()
						began := time.Now()
						event := about(ctx, fmt.Sprintf("worker-%d", i))
						time.Sleep(time.Duration(i) * time.Millisecond)
						event.Body = slow{time.Duration(len(answered)-i) * 2 * time.Millisecond} // whoever comes last is read first
						handle(httptest.NewRecorder(), event)
						answered[i] = time.Since(began)
					})
				}
				clients.Wait()
				time.Sleep(time.Minute) // what goes on without a client ends
				mu.Lock()
				defer mu.Unlock()
				wrong := ""
				for i := 0; i < len(answered); i += 2 {
					if object := fmt.Sprintf("worker-%d", i); answered[i] > 25*time.Second || done[object] != nil {
						wrong = fmt.Sprintf("%s: answered after %v, its work ended with %v", object, answered[i], done[object])
					}
				}
				if (wrong != "") != c.harms {
					t.Errorf("harm: %q, want some: %v", wrong, c.harms)
				}
			})
		})
	}
}

// work is what an event leads to.
type work func(ctx context.Context, object string) error

// about returns an event about a Machine.
func about(ctx context.Context, name string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", http.NoBody).WithContext(ctx)
	for key, value := range map[string]string{
		"Id": "1", "Specversion": "1.0", "Source": "test", "Type": "dev.knative.apiserver.ref.update",
		"Apiversion": "machine.openshift.io/v1beta1", "Kind": "Machine", "Name": name, "Namespace": machine.Namespace,
	} {
		r.Header.Set("Ce-"+key, value)
	}
	return r
}

// slow is an empty body that takes its time to arrive.
type slow struct{ takes time.Duration }

// Read implements [io.Reader].
func (s slow) Read([]byte) (int, error) {
	time.Sleep(s.takes)
	return 0, io.EOF
}

// Close implements [io.Closer].
func (slow) Close() error { return nil }

// shared is the naive receiver.
func shared(do work) http.HandlerFunc {
	type message struct {
		object string
		over   chan struct{}
	}
	incoming := make(chan message)
	return func(_ http.ResponseWriter, r *http.Request) {
		own := message{r.Header.Get("Ce-Name"), make(chan struct{})}
		go func() {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case incoming <- own:
			case <-r.Context().Done():
			}
		}()
		select {
		case m := <-incoming:
			_ = do(r.Context(), m.object)
			close(m.over)
		case <-r.Context().Done():
		}
		select {
		case <-own.over:
		case <-r.Context().Done():
		}
	}
}

// ours is the product's, of a function that works while it reads.
func ours(do work) http.HandlerFunc {
	r := &runner.Runner{
		Function: function.Function{
			Name: "look",
			Reads: func(s snapshot.Snapshot) snapshot.Scope {
				return snapshot.Scope{Objects: []snapshot.Query{snapshot.One("Machine", s.Request.Namespace, s.Request.Name)}}
			},
			Decide: func(snapshot.Snapshot) plan.Plan { return plan.Plan{} },
		},
		Cluster: working{memory.New(time.Now).As("look"), do}, Clock: time.Now, Log: slog.New(slog.DiscardHandler),
	}
	return runner.NewServer(r, []string{machine.Namespace}).Handle
}

// working is an API server whose answers take work.
type working struct {
	cluster.Cluster
	do work
}

// Observe implements [cluster.Cluster].
func (w working) Observe(ctx context.Context, s snapshot.Snapshot, q []snapshot.Query) (snapshot.Snapshot, error) {
	if err := w.do(ctx, s.Request.Name); err != nil {
		return s, err
	}
	return w.Cluster.Observe(ctx, s, q)
}
