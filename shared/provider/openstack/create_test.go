// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// TestRefusedAttemptsDoNotPileUp: a quota that is used up for hours costs one set of ports and volumes, not one for each
// attempt; and none once the Machine goes.
func TestRefusedAttemptsDoNotPileUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.quota = -1
		l := newLife(t, f, everything)
		for range 100 {
			l.step(t)
			time.Sleep(5 * time.Second)
		}
		if l.attempt < 10 {
			t.Errorf("%d attempts only", l.attempt)
		}
		if p, v, n := f.count("ports"), f.count("volumes"), f.count("trunks"); p > 2 || v > 2 || n > 2 {
			t.Errorf("%d attempts left %d ports, %d trunks, %d volumes", l.attempt, p, n, v)
		}
		for _, err := range l.errs {
			if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "Quota exceeded for instances") {
				t.Errorf("%v has the code %v", err, provider.CodeOf(err))
			}
		}
		l.down(t)
		wantNothing(t, f, "refused")
	})
}

// TestAttemptThatHasToWaitKeepsItsPorts: giving it up would make more requests of what is asked too much already.
func TestAttemptThatHasToWaitKeepsItsPorts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		throttled := answers(429, `{"overLimit": {"code": 429, "message": "This request was rate-limited."}}`, http.Header{"Retry-After": {"30"}})
		f.wire = func(ctx context.Context, r *http.Request, after bool) (*http.Response, error) {
			if !after && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/servers") {
				return throttled(ctx)
			}
			return nil, nil
		}
		l.step(t)
		before := len(f.calls)
		begin := time.Now()
		for range 20 { // the limiter stands between: asking costs nothing
			l.step(t)
		}
		if asked := len(f.calls) - before; asked > 10 || time.Since(begin) > time.Second {
			t.Errorf("20 tries asked the cloud %d times in %v", asked, time.Since(begin))
		}
		f.wire = nil
		l.up(t)
		if l.attempt != 1 || f.count("ports") != 1 {
			t.Errorf("attempt %d, %d ports", l.attempt, f.count("ports"))
		}
	})
}

func TestThrottledCallSaysWhenAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		f.wire = func(ctx context.Context, _ *http.Request, after bool) (*http.Response, error) {
			if after {
				return nil, nil
			}
			return answers(429, `{"overLimit": {"code": 429, "message": "This request was rate-limited."}}`, http.Header{"Retry-After": {"30"}})(ctx)
		}
		for range 2 { // first the cloud says so, then the limiter
			_, err := l.InstanceTypes(t.Context())
			e, ok := errors.AsType[*provider.Error](err)
			if !ok || e.Code != provider.Throttled || e.RetryAfter != 30*time.Second {
				t.Errorf("InstanceTypes = %v", err)
			}
		}
		if n := len(f.calls); n > 20 {
			t.Errorf("%d requests", n)
		}
	})
}

// TestVolumeOfAnInstanceThatIsGone: Cinder did not answer while Nova removed the instance, so the volumes stayed attached
// to nothing. What another instance has is left alone.
func TestVolumeOfAnInstanceThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, everything)
		l.up(t)
		f.absent = true
		l.down(t)
		wantNothing(t, f, "detached")
		if n := f.count("attachments"); n != 0 {
			t.Errorf("%d attachments are left", n)
		}
		if len(l.errs) != 0 {
			t.Errorf("errors %v", l.errs)
		}
	})
}

// TestVolumeThatAnotherInstanceHas: people gave a Machine's disk to an instance of theirs. It is left alone, and that is told.
func TestVolumeThatAnotherInstanceHas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		theirs, _ := f.untagged(nil)
		theirs = strings.TrimPrefix(theirs, providerID(""))
		id := f.add("volumes", map[string]any{
			"name": "worker-etcd", "status": "in-use", "created_at": "1999-01-01T00:00:00.000000", "attachments": []any{map[string]any{"server_id": theirs}},
			"metadata": map[string]any{tagCluster: "ocp43-abcde", tagUID: string(l.ref.UID), tagToken: l.ref.Token, tagPart: "etcd"},
		})
		f.add("attachments", map[string]any{"instance": theirs, "volume_id": id, "status": "attached"})
		err := l.Delete(t.Context(), l.ref)
		for _, want := range []string{"worker-etcd", id, "somebody-elses", theirs} {
			if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), want) {
				t.Errorf("Delete = %v, want %q in it", err, want)
			}
		}
		if f.count("attachments") != 1 || f.count("volumes") != 1 {
			t.Fatalf("%d attachments, %d volumes", f.count("attachments"), f.count("volumes"))
		}
		f.detach(id)
		l.down(t)
		if f.count("volumes") != 0 {
			t.Error("the volume is left")
		}
	})
}

// TestVolumeThatDoesNotEnd: nothing is there but a volume that Cinder is busy with. Whoever asks is told after a while.
func TestVolumeThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		id := f.add("volumes", map[string]any{
			"name": "worker-root", "status": "deleting", "created_at": "1999-01-01T00:00:00.000000", "updated_at": time.Now().UTC().Format("2006-01-02T15:04:05.000000"),
			"metadata": map[string]any{tagCluster: "ocp43-abcde", tagUID: string(l.ref.UID), tagToken: l.ref.Token, tagPart: rootName},
		})
		if err := l.Delete(t.Context(), l.ref); err != nil {
			t.Errorf("Delete = %v", err)
		}
		time.Sleep(stuckAfter)
		err := l.Delete(t.Context(), l.ref)
		for _, want := range []string{"worker-root", id, "in the state deleting since", "openstack volume service list"} {
			if provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), want) {
				t.Errorf("Delete = %v, want %q in it", err, want)
			}
		}
	})
}

// TestServerGroupOfTwoThatFoundNone: the list that showed no group is a moment old when the second one is made. Both instances come
// into the same group all the same, also where the call had little time left.
func TestServerGroupOfTwoThatFoundNone(t *testing.T) {
	t.Parallel()
	for more, slow := range map[string]time.Duration{"": 0, `, "rootVolume": {"diskSize": 20}`: 9 * time.Second} {
		for range 10 { // which of two ids is the smaller is chance
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.slow = slow
				more := `"serverGroupName": "spread"` + more
				lives := []*life{newLife(t, f, more), newLife(t, f, more)} // a process each
				made := groupsTogether(f)
				upAtOnce(t, lives)
				groups := map[string]bool{}
				for _, s := range f.things["servers"] {
					groups[fmt.Sprint(s.fields["hints"])] = true
				}
				if made.Load() != 2 || len(groups) != 1 || f.count("server_groups") != 2 {
					t.Errorf("%d were made; instances in %v, %d groups", made.Load(), groups, f.count("server_groups"))
				}
			})
		}
	}
}

// groupsTogether lets two find no server group at the same time; the second one is made a second later.
func groupsTogether(f *fake) (made *atomic.Int64) {
	made = new(atomic.Int64)
	f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
		if after || !strings.HasSuffix(r.URL.Path, "os-server-groups") {
			return nil, nil
		}
		time.Sleep(100 * time.Millisecond)
		if r.Method == http.MethodPost && made.Add(1) == 2 {
			time.Sleep(time.Second)
		}
		return nil, nil
	}
	return made
}

func upAtOnce(t *testing.T, lives []*life) {
	t.Helper()
	var all sync.WaitGroup
	for _, l := range lives {
		all.Go(func() { l.up(t) })
	}
	all.Wait()
}

// TestServerGroupThatAnInstanceIsInStays: a third process found the group that loses while it was the only one.
func TestServerGroupThatAnInstanceIsInStays(t *testing.T) {
	t.Parallel()
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			const more = `"serverGroupName": "spread"`
			lives, third := []*life{newLife(t, f, more), newLife(t, f, more)}, newLife(t, f, more)
			made := groupsTogether(f)
			go func() {
				time.Sleep(500 * time.Millisecond)
				third.up(t)
			}()
			upAtOnce(t, lives)
			time.Sleep(time.Minute)
			for id, s := range f.things["servers"] {
				group := fmt.Sprint(s.fields["hints"].(map[string]any)["group"])
				if f.things["server_groups"][group] == nil {
					t.Errorf("the group of instance %s is gone", id)
				}
			}
			if made.Load() != 2 || f.count("servers") != 3 {
				t.Errorf("%d groups were made for %d instances", made.Load(), f.count("servers"))
			}
		})
	}
}

// TestServerGroupOfManyThatWait: those whose turn does not come within a call ask for nothing in it, so nothing is unclear.
func TestServerGroupOfManyThatWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.wire = func(context.Context, *http.Request, bool) (*http.Response, error) {
			time.Sleep(100 * time.Millisecond)
			return nil, nil
		}
		lives := []*life{newLife(t, f, `"serverGroupName": "spread"`)}
		for len(lives) < 40 {
			l := *lives[0] // of the same process
			l.ref.UID = uuid.NewUUID()
			l.ref.Token = machine.Token(l.ref.UID, 1, "zone")
			lives = append(lives, &l)
		}
		upAtOnce(t, lives)
		for _, l := range lives {
			for _, err := range l.errs {
				t.Error(err)
			}
		}
		if n := f.count("servers"); n != len(lives) || f.count("server_groups") != 2 {
			t.Errorf("%d instances, %d groups", n, f.count("server_groups"))
		}
	})
}

// TestServerGroupThatIsNotThereIsMade: one for all that name it, whatever becomes of which request; one also where another
// process makes one at the same time.
func TestServerGroupThatIsNotThereIsMade(t *testing.T) {
	t.Parallel()
	names := slices.Sorted(maps.Keys(faults))
	for n := 1; n < 12; n++ {
		for _, name := range append(names, "") {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				const more = `"serverGroupName": "spread"`
				first, beside := newLife(t, f, more), newLife(t, f, more)
				same := *first
				same.ref.UID, same.ref.Name = uuid.NewUUID(), "worker-same"
				same.ref.Token = machine.Token(same.ref.UID, 1, "zone")
				var asked atomic.Int64
				f.wire = func(ctx context.Context, r *http.Request, after bool) (*http.Response, error) {
					if !strings.Contains(r.URL.Path, "os-server-groups") {
						return nil, nil
					}
					if !after {
						time.Sleep(100 * time.Millisecond) // the others ask meanwhile
					}
					if fault := faults[name]; name != "" && after == fault.after && asked.Add(1) == int64(n) {
						return fault.do(ctx)
					}
					return nil, nil
				}
				var all sync.WaitGroup
				lives := []*life{first, &same}
				if name == "" {
					lives = append(lives, beside)
				}
				for _, l := range lives {
					all.Go(func() { l.up(t) })
				}
				all.Wait()
				if f.count("server_groups") != 2 {
					t.Errorf("%s at request %d: %d groups: %v", name, n, f.count("server_groups"), f.calls)
				}
				for _, s := range f.things["servers"] {
					if hint := fmt.Sprint(s.fields["hints"]); hint != "map[group:"+f.named("server_groups", "spread")+"]" {
						t.Errorf("%s at request %d: an instance was made in %s", name, n, hint)
					}
				}
			})
		}
	}
}

// A port of an earlier attempt that an instance has stays, though no list shows the instance: its cell may not answer.
func TestPortInUseIsNotStale(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		in := l.up(t)
		next := provider.Ref{UID: l.ref.UID, Name: l.ref.Name, Token: machine.Token(l.ref.UID, 2, "zone")}
		f.untold = in.ID
		_, err := l.Create(t.Context(), next, l.resolved)
		f.untold = ""
		if used := slices.ContainsFunc(slices.Collect(maps.Values(f.things["ports"])), func(p *thing) bool { return p.text("device_id") == in.ID }); !used {
			t.Errorf("the instance has no port any more; Create = %v", err)
		}
	})
}

// A port that says nothing yet of the attempt that made it may be that of a call which is under way: for a minute nobody removes it.
func TestPortWithoutTagsIsNotStaleAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.macs = false
		l := newLife(t, f, "")
		f.wire = func(ctx context.Context, r *http.Request, after bool) (*http.Response, error) {
			if !after && r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/tags") {
				return silence(ctx)
			}
			return nil, nil
		}
		if _, err := l.Create(t.Context(), l.ref, l.resolved); err == nil || f.count("ports") != 1 {
			t.Fatalf("Create = %v with %d ports", err, f.count("ports"))
		}
		f.wire = nil
		first := slices.Collect(maps.Keys(f.things["ports"]))[0]
		_, err := l.Create(t.Context(), l.ref, l.resolved)
		if f.things["ports"][first] == nil || f.count("ports") != 1 || provider.CodeOf(err) != provider.Throttled {
			t.Errorf("Create = %v (%v) with %d ports", err, provider.CodeOf(err), f.count("ports"))
		}
		time.Sleep(launchFor)
		l.up(t)
		if f.things["ports"][first] != nil || f.count("ports") != 1 {
			t.Errorf("%d ports", f.count("ports"))
		}
	})
}
