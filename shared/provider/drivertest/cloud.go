// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// invocation is how long after it was stamped a create may be answered: the stamp is when its invocation read (RELIABILITY G6).
const invocation = 24 * time.Second

// cloud is a harness with a driver opened for a cluster of its own.
type cloud struct {
	Harness
	provider.Driver
	resolved json.RawMessage
}

func newCloud(t *testing.T, h Harness) *cloud {
	t.Helper()
	if h.Patience == 0 {
		h.Patience = 10 * time.Second
	}
	if h.Pace == 0 {
		h.Pace = 100 * time.Millisecond
	}
	h.Account.ClusterID, h.Account.ClusterUID = "test-"+unique(), uuid.NewUUID()
	return h.open(t, h.Account)
}

// open binds a driver and resolves the spec; what it made is removed when the test ends.
func (h Harness) open(t *testing.T, a provider.Account) *cloud {
	t.Helper()
	d, err := h.Provider.Open(t.Context(), a)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	c := &cloud{Harness: h, Driver: d}
	if c.resolved, err = d.Resolve(t.Context(), h.Spec); err != nil {
		t.Fatalf("Resolve: %v", err)
	}
	t.Cleanup(func() { c.sweep(t) })
	return c
}

// other opens the same account for another cluster.
func (c *cloud) other(t *testing.T) *cloud {
	t.Helper()
	a := c.Account
	a.ClusterID, a.ClusterUID = "test-"+unique(), uuid.NewUUID()
	return c.open(t, a)
}

// sweep removes everything of the cluster by id, as a collector of orphans does.
func (c *cloud) sweep(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	c.eventually(t, "the cluster's instances and children are gone", func() bool {
		all, err := c.List(ctx)
		all = slices.DeleteFunc(all, func(i provider.Instance) bool { return i.UID == "" && !i.Child }) // nobody's
		for _, i := range all {
			_ = c.Delete(ctx, provider.Ref{ID: i.ID}) // List says whether it worked
		}
		return err == nil && len(all) == 0
	})
}

// ref names a Machine that nobody has named before.
func (c *cloud) ref() provider.Ref {
	uid := uuid.NewUUID()
	return provider.Ref{UID: uid, Name: "worker-" + unique(), Token: machine.Token(uid, 1, c.Account.Key())}
}

// attempt names the same Machine's n-th attempt.
func (c *cloud) attempt(r provider.Ref, n int) provider.Ref {
	r.Token = machine.Token(r.UID, n, c.Account.Key())
	return r
}

func unique() string { return strings.ReplaceAll(string(uuid.NewUUID()), "-", "")[:8] }

// tokens reports whether repeating a Create makes nothing more.
func (c *cloud) tokens() bool {
	_, untokened := c.Driver.(provider.Untokened)
	return !untokened
}

// create makes all steps of a creation.
func (c *cloud) create(ctx context.Context, r provider.Ref) (provider.Instance, error) {
	for step := 0; ; step++ {
		i, err := c.Create(ctx, r, c.resolved)
		if err != nil || i.State != provider.StateIncomplete {
			return i, err
		}
		if len(i.Progress) == 0 || step == 100 {
			return i, fmt.Errorf("step %d is incomplete, with progress %q", step, i.Progress)
		}
		r.Progress = i.Progress
		time.Sleep(c.Pace)
	}
}

// launch creates the instance of r and waits until the cloud shows it.
func (c *cloud) launch(t *testing.T, r provider.Ref) provider.Instance {
	t.Helper()
	i, err := c.create(t.Context(), r)
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	c.eventually(t, "the instance is found", func() bool {
		for _, f := range c.find(t, r) {
			if f.ID == i.ID {
				return true
			}
		}
		return false
	})
	return i
}

// started launches an instance, returns once it runs, and what it was when it was made: some clouds change nothing of an
// instance that still boots.
func (c *cloud) started(t *testing.T, r provider.Ref) provider.Instance {
	t.Helper()
	made := c.launch(t, r)
	c.eventually(t, "the instance runs", func() bool {
		found := c.find(t, r)
		return len(found) == 1 && found[0].State == provider.StateRunning
	})
	return made
}

func (c *cloud) find(t *testing.T, r provider.Ref) []provider.Instance {
	t.Helper()
	all, err := c.Find(t.Context(), r)
	if err != nil {
		t.Fatalf("Find: %v", err)
	}
	return all
}

func (c *cloud) list(t *testing.T) []provider.Instance {
	t.Helper()
	all, err := c.List(t.Context())
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	return all
}

// remove deletes until nothing is left.
func (c *cloud) remove(t *testing.T, r provider.Ref) {
	t.Helper()
	c.eventually(t, "delete says NotFound", func() bool {
		err := c.Delete(t.Context(), r)
		if err != nil {
			wantCode(t, err, provider.NotFound)
		}
		return err != nil
	})
}

// eventually looks until cond holds, as long as the harness is patient.
func (c *cloud) eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(c.Patience); !cond(); time.Sleep(c.Pace) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", c.Patience, what)
		}
	}
}

// together calls f n times at the same time and returns the instances of those that succeeded, by id, and whether any was
// not answered in time: n at once may be more than a cloud can do, which is no fault of its driver.
func together(t *testing.T, n int, f func() (provider.Instance, error)) (ids map[string]int, late bool) {
	t.Helper()
	var (
		wg sync.WaitGroup
		mu sync.Mutex
	)
	ids = map[string]int{}
	for range n {
		wg.Go(func() {
			i, err := f()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				wantClassified(t, err)
				late = late || errors.Is(err, context.DeadlineExceeded)
				return
			}
			ids[i.ID]++
		})
	}
	wg.Wait()
	return ids, late
}

func ids(all []provider.Instance) map[string]bool {
	m := map[string]bool{}
	for _, i := range all {
		m[i.ID] = true
	}
	return m
}

// wantClassified wants an error that carries a code.
func wantClassified(t *testing.T, err error) {
	t.Helper()
	if _, ok := errors.AsType[*provider.Error](err); !ok {
		t.Errorf("error %v carries no code", err)
	}
}

func wantCode(t *testing.T, err error, want ...provider.Code) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want code %v", want)
	}
	wantClassified(t, err)
	for _, w := range want {
		if provider.CodeOf(err) == w {
			return
		}
	}
	t.Fatalf("error %v has code %v, want %v", err, provider.CodeOf(err), want)
}

func wantNames(t *testing.T, err error, names []string) {
	t.Helper()
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("error %q does not name %q", err, name)
		}
	}
}
