// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"encoding/json"
	"errors"
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
