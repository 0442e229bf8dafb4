// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// answered returns an answer of a kind.
func answered(status int, kind, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// faulty returns the engine's own refusal.
func faulty(status int, detail string) *http.Response {
	b, _ := json.Marshal(map[string]string{"reason": "Operation Failed", "detail": detail})
	return answered(status, "application/json", string(b))
}

var errLost = errors.New("connection reset by peer")

// faults are what may become of a request, beside what it should: before or after the engine has done it.
var faults = map[string]struct {
	effect bool
	answer func(ctx context.Context) (*http.Response, error)
}{
	"it is not sent":        {false, func(context.Context) (*http.Response, error) { return nil, errLost }},
	"the answer is lost":    {true, func(context.Context) (*http.Response, error) { return nil, errLost }},
	"it hangs":              {false, func(ctx context.Context) (*http.Response, error) { <-ctx.Done(); return nil, ctx.Err() }},
	"it is done, and hangs": {true, func(ctx context.Context) (*http.Response, error) { <-ctx.Done(); return nil, ctx.Err() }},
	"a proxy's page":        {false, func(context.Context) (*http.Response, error) { return answered(404, "text/html", "<html>"), nil }},
	"a proxy's page after":  {true, func(context.Context) (*http.Response, error) { return answered(502, "text/html", "<html>"), nil }},
	"nothing in it":         {true, func(context.Context) (*http.Response, error) { return answered(200, "application/json", ""), nil }},
	"an empty 404":          {false, func(context.Context) (*http.Response, error) { return answered(404, "", ""), nil }},
	"cut off": {true, func(context.Context) (*http.Response, error) {
		return answered(200, "application/json", `{"vm": [{"i`), nil
	}},
	"another's JSON": {true, func(context.Context) (*http.Response, error) {
		return answered(200, "application/json", `{"kind": "Status"}`), nil
	}},
	"null": {true, func(context.Context) (*http.Response, error) { return answered(200, "application/json", `null`), nil }},
	"500": {true, func(context.Context) (*http.Response, error) {
		return faulty(500, "java.lang.NullPointerException"), nil
	}},
	"503":    {true, func(context.Context) (*http.Response, error) { return answered(503, "text/html", ""), nil }},
	"429":    {false, func(context.Context) (*http.Response, error) { return answered(429, "text/plain", ""), nil }},
	"409":    {false, func(context.Context) (*http.Response, error) { return faulty(409, "[Cannot do that now.]"), nil }},
	"locked": {false, func(context.Context) (*http.Response, error) { return faulty(409, "[VM is locked.]"), nil }},
	"403":    {false, func(context.Context) (*http.Response, error) { return faulty(403, "not authorized"), nil }},
	"401":    {false, func(context.Context) (*http.Response, error) { return answered(401, "text/html", ""), nil }},
}

var anyID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// once lets the n-th request that has a method and a part of a path come to a fault, and reports whether it came.
func once(w *wire, call string, n int, name string) *bool {
	method, part, _ := strings.Cut(call, " ")
	fault, hit := faults[name], false
	var mu sync.Mutex
	w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
		mu.Lock()
		it := r.Method == method && strings.HasSuffix(anyID.ReplaceAllString(r.URL.Path, "*"), part)
		if it {
			n--
		}
		it = it && n == 0
		hit = hit || it
		mu.Unlock()
		if !it {
			return next()
		}
		if fault.effect {
			if _, err := next(); err != nil {
				return nil, err
			}
		}
		return fault.answer(r.Context())
	})
	return &hit
}

// calls are those of a life.
var calls = []string{
	"POST /sso/oauth/token", "POST /vms", "GET /vms", "GET /vms/*/diskattachments", "PUT /vms/*/diskattachments/*", "GET /vms/*/nics", "DELETE /vms/*/nics/*", "POST /vms/*/nics", "GET /vms/*/tags", "GET /tags",
	"POST /tags", "POST /vms/*/tags", "GET /clusters/*/affinitygroups/*/vms", "POST /clusters/*/affinitygroups/*/vms", "PUT /vms/*", "POST /vms/*/start", "POST /vms/*/stop", "DELETE /vms/*/diskattachments/*", "DELETE /vms/*",
	"GET /disks",
}

// Whatever becomes of whichever call: one instance, then none, with nothing left of it, and the Pod's volume is kept.
func TestNoFaultMakesTwoInstancesOrLeavesOne(t *testing.T) {
	t.Parallel()
	for name := range faults {
		if testing.Short() && !slices.Contains([]string{"the answer is lost", "a proxy's page", "locked", "it hangs"}, name) { // all of them take a quarter of a minute
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, call := range calls {
				for n := 1; n == 1 || n == 2 && !testing.Short(); n++ {
					synctest.Test(t, func(t *testing.T) { oneLife(t, call, n, name) })
				}
			}
		})
	}
}

func oneLife(t *testing.T, call string, n int, name string) {
	t.Helper()
	w := newWire()
	l := newLife(t, w, `"affinity_groups_names": ["workers"]`)
	must(t, l.Close(t.Context())) // so that it logs in again
	w.Forget()
	hit := once(w, call, n, name)
	r, patience := l.ref, 300
	step := func(do func() (done bool, err error)) {
		for {
			done, err := do()
			if done {
				return
			}
			if patience--; patience == 0 {
				t.Fatalf("%s of %s (%d): it does not end: %v", name, call, n, err)
			}
			wait := time.Second
			if provider.CodeOf(err) == provider.Denied {
				wait = after(err) + time.Second
			}
			time.Sleep(wait)
		}
	}
	step(func() (bool, error) {
		in, err := l.Create(t.Context(), r, l.resolved)
		if in.State == provider.StateIncomplete {
			r.Progress = in.Progress
		}
		if all := w.Instances(); len(all) > 1 {
			t.Fatalf("%s of %s (%d): %d instances", name, call, n, len(all))
		}
		return err == nil && in.State != provider.StateIncomplete, err
	})
	all := w.Instances()
	tags := 1
	if *hit && name == "403" && strings.HasSuffix(call, "/tags") { // who is denied it goes without
		tags = 0
	}
	if i := all[0]; len(i.Groups) != 1 || len(i.Tags) != tags || i.Sizes[0] != 31<<30 || len(i.Profiles) != 1 || len(i.Disks) != 1 {
		t.Errorf("%s of %s (%d): %+v", name, call, n, i)
	}
	volume := w.Attach(all[0].ID)
	step(func() (bool, error) {
		err := l.Delete(t.Context(), r)
		if provider.CodeOf(err) == provider.NotFound && len(w.Instances()) != 0 {
			t.Fatalf("%s of %s (%d): NotFound is said of what is there: %v", name, call, n, err)
		}
		return provider.CodeOf(err) == provider.NotFound, err
	})
	if left := w.Disks(); len(left) != 1 || left[0] != volume {
		t.Errorf("%s of %s (%d): disks %v are left, want %s", name, call, n, left, volume)
	}
	if !*hit && n == 1 {
		t.Errorf("%s is never called", call)
	}
}

// No answer that is not the engine's own is absence, nor a refusal: neither of an instance, nor of a list (RELIABILITY G5).
func TestNoFaultIsAbsence(t *testing.T) {
	t.Parallel()
	for name, f := range faults {
		if name == "401" || name == "403" || name == "409" || name == "locked" || name == "429" {
			continue // said by the engine: it is no absence either
		}
		synctest.Test(t, func(t *testing.T) {
			w, l, _ := started(t)
			w.set(func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
				return f.answer(r.Context())
			})
			found, find := l.Find(t.Context(), l.ref)
			all, list := l.List(t.Context())
			for call, err := range map[string]error{"Find": find, "List": list, "Delete": l.Delete(t.Context(), l.ref), "PowerCycle": l.PowerCycle(t.Context(), l.ref)} {
				if err == nil || provider.CodeOf(err) != provider.Unknown {
					t.Errorf("%s: %s = %v", name, call, err)
				}
			}
			if len(found) != 0 || len(all) != 0 {
				t.Errorf("%s: %v, %v", name, found, all)
			}
		})
	}
}

// Progress that is lost, or that nobody can read, leads to nothing twice.
func TestRestartsAtEveryStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, `"affinity_groups_names": ["workers"], "auto_pinning_policy": "resize_and_pin"`)
		for range 30 {
			d, err := w.provider().Open(t.Context(), provider.Account{
				Kind: Kind, Namespace: l.account.Namespace, Secret: l.account.Secret, ClusterID: l.account.ClusterID, UserData: l.account.UserData, Credentials: accountOf().Credentials,
			})
			must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			_, err = d.Create(ctx, l.ref, l.resolved) // of a function that knows nothing, and forgets what it did
			cancel()
			must(t, err)
			time.Sleep(time.Second)
		}
		if i := w.Instances(); len(i) != 1 || i[0].Status != "up" || len(i[0].Profiles) != 1 || len(i[0].Groups) != 1 {
			t.Errorf("made %+v", i)
		}
		l.ref.Progress = []byte("{")
		if _, err := l.Create(t.Context(), l.ref, l.resolved); provider.CodeOf(err) != provider.Unknown {
			t.Errorf("Create with a progress that cannot be read = %v", err)
		}
		l.gone(t)
	})
}
