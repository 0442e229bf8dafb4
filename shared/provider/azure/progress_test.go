// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/arm"
)

// One call waits for what takes a while, as the next one costs writes: it looks twice, and no longer than it may (SPEC E40).
func TestWhatTakesAWhileIsWaitedFor(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{Boot: 100 * time.Millisecond}
	d, w := wired(t, cloud, account())
	r, resolved := begun(t, d, spec(nil))
	d.pause = 200 * time.Millisecond
	if in, err := d.Create(t.Context(), r, resolved); err != nil || in.State != provider.StateRunning {
		t.Errorf("Create = %+v, %v", in, err)
	}
	cloud.Boot = time.Hour
	d.pause = deadline
	before := len(w.since(0))
	in, err := d.Create(t.Context(), provider.Ref{UID: "uid-2", Name: "worker-b", Token: "t"}, resolved)
	must(t, err)
	other := provider.Ref{UID: "uid-2", Name: "worker-b", Token: "t", Progress: in.Progress}
	for range 2 { // the instance is asked for, and then being made
		in, err = d.Create(t.Context(), other, resolved)
		must(t, err)
		other.Progress = in.Progress
	}
	if in.State != provider.StateIncomplete || len(w.since(before)) > 12 {
		t.Errorf("Create = %+v, after %v", in, w.since(before))
	}
}

// What does not end is told, with what is waited for, and what was made stays on record (SPEC E39): no number of that ends an attempt, whose
// instance may be a Node. A clock that was ahead is not waited for.
func TestWhatDoesNotEndIsTold(t *testing.T) {
	t.Parallel()
	for of, stay := range map[string]string{"for Azure to make the instance": "", "disk worker-a_OSDisk": "worker-a_OSDisk"} {
		cloud := &arm.Cloud{Boot: time.Hour}
		d, _ := wired(t, cloud, account())
		r, resolved := begun(t, d, spec(nil))
		if stay != "" { // and says that it is in use yet
			cloud.Strand("worker-a", stay)
		}
		in, err := d.Create(t.Context(), r, resolved)
		must(t, err)
		var p progress
		must(t, json.Unmarshal(in.Progress, &p))
		began := p.Since
		for _, since := range []int64{time.Now().Add(48 * time.Hour).Unix(), began - int64(patience/time.Second)/2} {
			p.Since = since
			r.Progress, err = json.Marshal(p)
			must(t, err)
			in, err = d.Create(t.Context(), r, resolved)
			must(t, err)
			var noted progress
			must(t, json.Unmarshal(in.Progress, &noted))
			if noted.Since > time.Now().Unix() || noted.Since > began+60 {
				t.Errorf("it waits since %d, which began at %d", noted.Since, began)
			}
		}
		p.Since = began - int64(patience/time.Second) - 1
		if r.Progress, err = json.Marshal(p); err != nil || began == 0 || !strings.Contains(p.Waits, of) {
			t.Fatalf("it waits for %+v, %v", p, err)
		}
		in, err = d.Create(t.Context(), r, resolved)
		e, ok := errors.AsType[*provider.Error](err)
		if !ok || e.Code != provider.Throttled || e.RetryAfter != toldEvery || !strings.Contains(err.Error(), of) || len(in.Progress) == 0 {
			t.Errorf("Create = %+v, %v", in, err)
		}
	}
}

// What is made before the instance, and whose change fails each time, is asked for again, and told once that takes long.
func TestWhatFailsEachTimeIsTold(t *testing.T) {
	t.Parallel()
	for op, of := range map[string]string{"InterfacesClient": "the network interface", "PublicIPAddressesClient": "the public address"} {
		d, w := wired(t, &arm.Cloud{}, account())
		resolved, err := d.Resolve(t.Context(), spec(map[string]any{"publicIP": true}))
		must(t, err)
		w.set(func(asked string, next func() (*http.Response, error)) (*http.Response, error) {
			res, err := next()
			if err == nil && asked == op+".Get" {
				text, _ := io.ReadAll(res.Body)
				res.Body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(text, []byte(`"Succeeded"`), []byte(`"Failed"`))))
			}
			return res, err
		})
		r := provider.Ref{UID: "uid-1", Name: "worker-a", Token: "t"}
		var p progress
		for range 4 {
			in, err := d.Create(t.Context(), r, resolved)
			must(t, err)
			r.Progress = in.Progress
			must(t, json.Unmarshal(in.Progress, &p))
		}
		puts := 0
		for _, asked := range w.since(0) {
			if asked == op+".BeginCreateOrUpdate" {
				puts++
			}
		}
		if puts < 3 || !strings.Contains(p.Waits, of) {
			t.Errorf("%s is asked for %d times; it waits %q", of, puts, p.Waits)
		}
		p.Since -= int64(patience/time.Second) + 1
		r.Progress, err = json.Marshal(p)
		must(t, err)
		if in, err := d.Create(t.Context(), r, resolved); provider.CodeOf(err) != provider.Throttled || !strings.Contains(err.Error(), of) || len(in.Progress) == 0 {
			t.Errorf("%s: Create = %+v, %v", of, in, err)
		}
	}
}
