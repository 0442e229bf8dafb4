// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// faults are what a wire may do to one request. After says that the request has had its effect by then.
var faults = map[string]struct {
	after bool
	do    func(ctx context.Context) (*http.Response, error)
}{
	"silence before": {false, silence},
	"silence after":  {true, silence},
	"reset after":    {true, func(context.Context) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }},
	"500 before":     {false, answers(500, `{"computeFault": {"code": 500, "message": "Unexpected API Error."}}`, nil)},
	"503 after":      {true, answers(503, `{"error": {"code": 503, "message": "unavailable"}}`, nil)},
	"502 in HTML":    {true, answers(502, "<html><body>Bad Gateway</body></html>", nil)},
	"200 in HTML":    {true, answers(200, "<html><body>Please log in</body></html>", nil)},
	"403 in HTML":    {true, answers(403, "<html><body>Blocked</body></html>", nil)},
	"redirect":       {false, answers(302, "", http.Header{"Location": {"http://elsewhere.test/"}})},
	"cut body":       {true, answers(200, `{"servers": [{"id": "1`, nil)},
	"empty object":   {true, answers(200, `{}`, nil)},
	"429":            {false, answers(429, `{"overLimit": {"code": 429, "message": "This request was rate-limited."}}`, http.Header{"Retry-After": {"3"}})},
	"expired token":  {false, answers(401, `{"error": {"code": 401, "message": "The request you have made requires authentication."}}`, nil)},
}

func silence(ctx context.Context) (*http.Response, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func answers(status int, body string, header http.Header) func(context.Context) (*http.Response, error) {
	return func(context.Context) (*http.Response, error) {
		r := reply(status, nil, header)
		r.Body = io.NopCloser(strings.NewReader(body))
		return r, nil
	}
}

// life is one Machine in the hands of whoever may be interrupted at any request: it keeps what was recorded.
type life struct {
	provider.Driver
	ref      provider.Ref
	resolved json.RawMessage
	attempt  int
	errs     []error
}

func newLife(t *testing.T, f *fake, more string) *life {
	t.Helper()
	return lifeOf(t, f, accountOf("secret"), more)
}

func lifeOf(t *testing.T, f *fake, a provider.Account, more string) *life {
	t.Helper()
	d, err := providerOf(f).Open(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := d.Resolve(t.Context(), specWith(more))
	if err != nil {
		t.Fatal(err)
	}
	uid := uuid.NewUUID()
	return &life{Driver: d, ref: provider.Ref{UID: uid, Name: "worker-" + string(uid[:5]), Token: machine.Token(uid, 1, "zone")}, resolved: resolved, attempt: 1}
}

// up creates as provision-machine does: it finds, else makes a step, and begins another attempt after a definite refusal,
// but keeps what it made when it is told to wait.
func (l *life) up(t *testing.T) provider.Instance {
	t.Helper()
	for range 200 {
		found, err := l.Find(t.Context(), l.ref)
		found = slices.DeleteFunc(found, func(i provider.Instance) bool { // the attempt goes on
			return i.State == provider.StateIncomplete || i.State == provider.StateFailed && i.Code == provider.Exhausted
		})
		if err == nil && len(found) > 0 {
			i := slices.IndexFunc(found, func(i provider.Instance) bool { return i.State == provider.StateRunning })
			if i >= 0 {
				return found[i]
			}
		} else if err == nil {
			l.step(t)
		}
		l.note(t, err)
		time.Sleep(5 * time.Second)
	}
	t.Fatalf("no instance after %d errors: %v", len(l.errs), errors.Join(l.errs...))
	return provider.Instance{}
}

func (l *life) step(t *testing.T) {
	t.Helper()
	in, err := l.Create(t.Context(), l.ref, l.resolved)
	l.note(t, err)
	switch {
	case err == nil && in.State == provider.StateIncomplete:
		l.ref.Progress = in.Progress
	case provider.CodeOf(err) == provider.Throttled && len(l.ref.Progress) > 0:
	case err != nil && provider.CodeOf(err).Definite():
		l.attempt++
		l.ref.Progress, l.ref.Token = nil, machine.Token(l.ref.UID, l.attempt, "zone")
	}
}

// note wants every error to have a code that keeps the Machine from failing.
func (l *life) note(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if _, ok := errors.AsType[*provider.Error](err); !ok || provider.CodeOf(err) == provider.Invalid {
		t.Errorf("%v has the code %v", err, provider.CodeOf(err))
	}
	l.errs = append(l.errs, err)
}

func (l *life) down(t *testing.T) {
	t.Helper()
	for range 200 {
		err := l.Delete(t.Context(), l.ref)
		if provider.CodeOf(err) == provider.NotFound {
			return
		}
		l.note(t, err)
		time.Sleep(5 * time.Second)
	}
	t.Fatalf("still there after %d errors: %v", len(l.errs), errors.Join(l.errs...))
}

const everything = `"trunk": true, "floatingIP": "198.51.100.7", "networks": [{"filter": {"name": "ocp43-net"}}, {"filter": {"name": "storage"}}],
	"rootVolume": {"diskSize": 20}, "additionalBlockDevices": [{"name": "etcd", "sizeGiB": 10, "storage": {"type": "Volume"}}]`

// TestFaultAtEveryRequest takes an instance with all that it can have up and down, with one fault at the n-th request.
func TestFaultAtEveryRequest(t *testing.T) {
	t.Parallel()
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				reached := false
				synctest.Test(t, func(t *testing.T) { reached = faultAt(t, n, fault.after, fault.do) })
				if !reached {
					if n < 30 {
						t.Errorf("the life of an instance took %d requests only", n)
					}
					return
				}
			}
		})
	}
}

func faultAt(t *testing.T, n int, after bool, do func(context.Context) (*http.Response, error)) (reached bool) {
	t.Helper()
	f := newFake()
	f.slow = time.Second
	l := newLife(t, f, everything)
	count := 0
	f.wire = func(ctx context.Context, _ *http.Request, done bool) (*http.Response, error) {
		if done != after {
			return nil, nil
		}
		if count++; count == n {
			reached = true
			return do(ctx)
		}
		return nil, nil
	}
	l.up(t)
	wantOne(t, f, fmt.Sprintf("fault at request %d", n))
	l.down(t)
	wantNothing(t, f, fmt.Sprintf("fault at request %d", n))
	return reached
}

func wantOne(t *testing.T, f *fake, when string) {
	t.Helper()
	time.Sleep(time.Minute) // whatever is on its way has come
	if s, p := f.count("servers"), f.count("ports"); s != 1 || p < 2 {
		t.Errorf("%s: %d instances, %d ports", when, s, p)
	}
	for kind, things := range f.things {
		for id, one := range things {
			if ours := kind == "ports" || kind == "trunks" || kind == "servers"; ours && valueOf(one.tags(), tagUID) == "" {
				t.Errorf("%s: %s %s has the tags %v", when, kind, id, one.tags())
			}
		}
	}
}

func wantNothing(t *testing.T, f *fake, when string) {
	t.Helper()
	time.Sleep(time.Minute)
	for _, kind := range []string{"servers", "ports", "trunks", "volumes"} {
		if n := f.count(kind); n != 0 {
			t.Errorf("%s: %d %s are left: %v", when, n, kind, f.calls)
		}
	}
}

// TestManyFaults has one request in ten go wrong, in any way, for many instances.
func TestManyFaults(t *testing.T) {
	t.Parallel()
	kinds := []string{}
	for name := range faults {
		kinds = append(kinds, name)
	}
	slices.Sort(kinds)
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, dice := newFake(), rand.New(rand.NewPCG(seed, 1))
				f.noRoom = int(seed % 3)
				more := everything
				if seed%2 == 0 {
					more = `"trunk": true`
				}
				l := newLife(t, f, more)
				next := ""
				f.wire = func(ctx context.Context, _ *http.Request, after bool) (*http.Response, error) {
					if !after {
						if next = ""; dice.IntN(10) == 0 {
							next = kinds[dice.IntN(len(kinds))]
						}
					}
					if fault, ok := faults[next]; ok && fault.after == after {
						return fault.do(ctx)
					}
					return nil, nil
				}
				l.up(t)
				f.wire = nil
				wantOneRunning(t, f)
				l.down(t)
				wantNothing(t, f, fmt.Sprintf("seed %d", seed))
			})
		})
	}
}

// wantOneRunning allows losers for the ports, which never run.
func wantOneRunning(t *testing.T, f *fake) {
	t.Helper()
	time.Sleep(time.Minute)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle()
	n := 0
	for _, s := range f.things["servers"] {
		if s.text("status") == "ACTIVE" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d instances run", n)
	}
}

func TestPageThatIsCutIsNoList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.page = 2
		l := newLife(t, f, "")
		for range 3 {
			other := *l
			uid := uuid.NewUUID()
			other.ref = provider.Ref{UID: uid, Name: "worker-" + string(uid[:5]), Token: machine.Token(uid, 1, "zone")}
			other.up(t)
		}
		if all, err := l.List(t.Context()); err != nil || len(all) != 3 {
			t.Fatalf("List = %v, %v", all, err)
		}
		for name, fault := range faults {
			if name == "expired token" { // there is another one
				continue
			}
			f.wire = func(ctx context.Context, r *http.Request, after bool) (*http.Response, error) {
				if r.URL.Query().Has("marker") && after == fault.after {
					return fault.do(ctx)
				}
				return nil, nil
			}
			if all, err := l.List(t.Context()); err == nil {
				t.Errorf("%s: List = %v", name, all)
			}
			time.Sleep(10 * time.Second)
		}
	})
}

// TestLateEffects has one request work after its caller has given up, and has begun to try again: the ports' addresses
// and the claim keep it from making anything twice.
func TestLateEffects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		more string
		want map[string]int
	}{
		"trunk":   {`"trunk": true`, map[string]int{"servers": 1, "ports": 1, "trunks": 1, "volumes": 0}},
		"volumes": {`"rootVolume": {"diskSize": 20}, "additionalBlockDevices": [{"name": "etcd", "sizeGiB": 10, "storage": {"type": "Volume"}}]`, map[string]int{"servers": 1, "ports": 1, "trunks": 0, "volumes": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				reached := false
				synctest.Test(t, func(t *testing.T) { reached = lateAt(t, n, c.more, c.want) })
				if !reached {
					return
				}
			}
		})
	}
}

func lateAt(t *testing.T, n int, more string, want map[string]int) (reached bool) {
	t.Helper()
	f := newFake()
	l := newLife(t, f, more)
	count := 0
	f.late = func() bool {
		count++
		reached = reached || count == n
		return count == n
	}
	l.up(t)
	time.Sleep(time.Minute)
	for kind, number := range want {
		if got := f.count(kind); got != number {
			t.Errorf("request %d late: %d %s, want %d: %v", n, got, kind, number, f.calls)
		}
	}
	l.down(t)
	wantNothing(t, f, fmt.Sprintf("request %d late", n))
	return reached
}
