// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/engine"
)

// An engine judges the whole of a virtual machine whatever is changed of it, its comment too: one whose note it refuses is removed all the same,
// and a Pod's volume is kept.
func TestNoteThatIsRefusedEndsNoRemoval(t *testing.T) {
	t.Parallel()
	for _, complete := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire()
			l := newLife(t, w, "")
			var kept []string
			if complete {
				kept = []string{w.Attach(l.up(t).ID)}
			} else {
				_, err := l.Create(t.Context(), l.ref, l.resolved)
				must(t, err)
				time.Sleep(time.Minute)
			}
			w.Freeze(true)
			l.gone(t)
			if left := w.Disks(); !slices.Equal(left, kept) {
				t.Errorf("complete: %t: disks %v are left, want %v", complete, left, kept)
			}
		})
	}
}

// Where it was never noted which disks are an instance's own, and cannot be now, it goes only if all are called so.
func TestNoteThatIsRefusedLosesNoVolume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, _ := begun(t)
		time.Sleep(time.Minute)
		id := w.Instances()[0].ID
		volume := w.Attach(id)
		w.Freeze(true)
		for range 5 {
			if err := l.Delete(t.Context(), l.ref); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "Cannot edit VM") {
				t.Errorf("Delete = %v", err)
			}
			time.Sleep(time.Second)
		}
		if !w.has(id) || !slices.Contains(w.Instances()[0].Disks, volume) {
			t.Errorf("left %+v", w.Instances())
		}
		w.Freeze(false)
		l.gone(t)
	})
}

// What runs, and is known by its mark, is made, whether the engine lets that be written down or not.
func TestNoteThatIsRefusedEndsNoCreation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.Lock = 0
		l := newLife(t, w, "")
		w.Busy(true)
		for range 10 {
			in, _ := l.Create(t.Context(), l.ref, l.resolved) // there is no room to start it
			if len(in.Progress) > 0 {
				l.ref.Progress = in.Progress
			}
			time.Sleep(time.Second)
		}
		w.Busy(false)
		w.Freeze(true)
		if in := l.up(t); in.ID != w.Instances()[0].ID {
			t.Errorf("made %+v", in)
		}
		l.gone(t)
	})
}

// That an instance "is not running" the engine says too where it has not heard of its host: it may run, so no volume is taken off it, and
// nothing is started.
func TestWhatNobodyKnowsToRunLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, in := started(t)
		volume := w.Attach(in.ID)
		w.Set(in.ID, "unknown", "")
		if err := l.PowerCycle(t.Context(), l.ref); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "see to its host") {
			t.Errorf("PowerCycle = %v", err)
		}
		if err := l.Delete(t.Context(), l.ref); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "see to its host") {
			t.Errorf("Delete = %v", err)
		}
		if n := w.count("POST /vms/*/start") + w.count("DELETE /vms/*/diskattachments/*"); n != 1 || !slices.Contains(w.Instances()[0].Disks, volume) {
			t.Errorf("%d starts and detachments, of %+v", n, w.Instances()[0])
		}
	})
}

// What came back to life since it was listed as down loses no volume.
func TestVolumeIsDetachedOfWhatIsOffAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, in := started(t)
		volume := w.Attach(in.ID)
		w.Set(in.ID, "down", "")
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			res, err := next()
			if strings.HasSuffix(r.URL.Path, "/diskattachments") {
				w.Set(in.ID, "up", "")
			}
			return res, err
		})
		if err := l.Delete(t.Context(), l.ref); err != nil || !slices.Contains(w.Instances()[0].Disks, volume) {
			t.Errorf("Delete = %v, left %+v", err, w.Instances()[0])
		}
		w.set(nil)
		l.gone(t)
	})
}

// A reset of what is powering down ends with power off: it is started once it is down.
func TestPowerCycleOfWhatIsPoweringDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, in := started(t)
		w.Halt = 90 * time.Second
		w.Set(in.ID, "paused", "")
		for n := range 3 {
			if err := l.PowerCycle(t.Context(), l.ref); (err == nil) != (n == 2) {
				t.Errorf("PowerCycle %d = %v", n, err)
			}
			time.Sleep(time.Minute)
		}
		if i := w.Instances()[0]; i.Status != "up" {
			t.Errorf("it is %s", i.Status)
		}
	})
}

// Steps that were made of one instance are not made of another, as one whose request was held up.
func TestStepsOfAnotherInstanceAreMadeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		w.Busy(true) // all steps but the start
		_, _ = l.again(t, 20, time.Second)
		made := l.ref.Progress
		l.gone(t)
		l.ref.Progress = nil
		_, err := l.Create(t.Context(), l.ref, l.resolved)
		must(t, err)
		w.Busy(false)
		l.ref.Progress = made
		l.up(t)
		if i := w.Instances()[0]; i.Sizes[0] != 31<<30 || len(i.Tags) != 1 || i.Profiles[0] != engine.Profile {
			t.Errorf("made %+v", i)
		}
	})
}

// What an engine says of network cards and guests is needed by nobody who makes, removes or power-cycles an instance.
func TestDetailsThatFailStopNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if r.URL.Query().Get("follow") != "" && strings.HasSuffix(r.URL.Path, "/vms") {
				return faulty(http.StatusInternalServerError, "Problem fetching reported_devices"), nil
			}
			return next()
		})
		proceed(t, l, l.ref, l.resolved)
		time.Sleep(time.Minute)
		must(t, l.PowerCycle(t.Context(), l.ref))
		l.gone(t)
	})
}

// What people protect from removal runs on, with its volumes.
func TestWhatIsProtectedRunsOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, in := started(t)
		w.Attach(in.ID)
		w.Protect(in.ID)
		for range 3 {
			if err := l.Delete(t.Context(), l.ref); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "Delete protection is enabled") {
				t.Errorf("Delete = %v", err)
			}
			time.Sleep(time.Minute)
		}
		if i := w.Instances()[0]; i.Status != "up" || len(i.Disks) != 2 {
			t.Errorf("it is %+v", i)
		}
	})
}

// Refusals hold the names of what they are about: a start that found no room is no start, and what else is in use is no name that is taken.
func TestWordsOfARefusalAreReadWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			switch {
			case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/api/vms") && len(l.ref.Progress) == 0:
				return faulty(http.StatusConflict, "[Cannot add VM. MAC Address 56:6f:00:00:00:01 is already in use.]"), nil
			case strings.HasSuffix(r.URL.Path, "/start"):
				return faulty(http.StatusConflict, "[Cannot run VM. There is no host that satisfies current scheduling constraints., The host a did not, as VM b is running there.]"), nil
			}
			return next()
		})
		if _, err := l.Create(t.Context(), l.ref, l.resolved); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "MAC Address") {
			t.Errorf("Create = %v", err)
		}
		l.ref.Progress = []byte("{}")
		if _, err := l.again(t, 20, time.Second); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "no host that satisfies") {
			t.Errorf("Create = %v", err)
		}
	})
}
