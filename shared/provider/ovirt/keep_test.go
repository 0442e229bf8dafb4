// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// leak lets the disks of the Machine's instance outlive it.
func (l *life) leak(t *testing.T) {
	t.Helper()
	l.wire.Leak(true)
	for len(l.wire.Instances()) > 0 {
		must(t, l.Delete(t.Context(), l.ref))
		time.Sleep(2 * time.Second)
	}
	l.wire.Leak(false)
}

// A mark without an id does not say that the instance was never started: people may have, and a Pod's volume is kept.
func TestVolumeOfWhatPeopleStartedOutlivesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, _ := begun(t)
		time.Sleep(2 * time.Second)
		i := w.Instances()[0]
		w.Set(i.ID, "up", "")
		volume := w.Attach(i.ID)
		l.gone(t)
		if left := w.Disks(); !slices.Equal(left, []string{volume}) {
			t.Errorf("disks %v are left, want %s", left, volume)
		}
	})
}

type late struct{}

// A note that comes late takes what was noted meanwhile away, and no volume with it.
func TestNoteThatComesLateLosesNoVolume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, in := begun(t)
		time.Sleep(30 * time.Second)
		bare := w.Instances()[0].Comment
		r := l.ref
		r.Progress = in.Progress
		proceed(t, l, r, l.resolved)
		m, ok := marked(bare)
		if !ok || m.ID != "" {
			t.Fatalf("the mark is %+v before anything is noted", m)
		}
		m.Leaving = true
		comment, err := m.comment()
		must(t, err)
		i := w.Instances()[0]
		w.Set(i.ID, "", comment)
		volume := w.Attach(i.ID)
		l.gone(t)
		if left := w.Disks(); !slices.Equal(left, []string{volume}) {
			t.Errorf("disks %v are left, want %s", left, volume)
		}
	})
}

// Delete writes down which disks are the instance's own before it stops anything, also where its note is slow.
func TestSlowRemovalLosesNoVolume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, in := begun(t)
		time.Sleep(30 * time.Second)
		held, first, done := make(chan struct{}), true, make(chan error)
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if r.Method == http.MethodPut && r.Context().Value(late{}) != nil && first {
				first = false
				<-held
			}
			return next()
		})
		go func() { done <- l.Delete(context.WithValue(t.Context(), late{}, true), l.ref) }()
		synctest.Wait()
		r := l.ref
		r.Progress = in.Progress
		proceed(t, l, r, l.resolved)
		volume := w.Attach(w.Instances()[0].ID)
		close(held)
		<-done // what is changed at the same time may be refused
		w.set(nil)
		if m, _ := marked(w.Instances()[0].Comment); m.ID == "" || !slices.Equal(m.Disks, w.Instances()[0].Disks[:1]) {
			t.Errorf("noted %+v", m)
		}
		l.gone(t)
		if left := w.Disks(); !slices.Equal(left, []string{volume}) {
			t.Errorf("disks %v are left, want %s", left, volume)
		}
	})
}

// Nothing but a list without it says that an instance is gone: an engine that misses something else says nothing of it.
func TestWhatTheEngineMissesIsNotTheInstance(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"unknown", "not_responding", "up", "down"} {
		synctest.Test(t, func(t *testing.T) {
			w, l, in := started(t)
			w.Set(in.ID, status, "")
			w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
				if r.Method == http.MethodDelete || strings.HasSuffix(r.URL.Path, "/stop") {
					return faulty(http.StatusNotFound, "Entity not found: host"), nil
				}
				return next()
			})
			if err := l.Delete(t.Context(), l.ref); provider.CodeOf(err) == provider.NotFound || !w.has(in.ID) {
				t.Errorf("%s: Delete = %v", status, err)
			}
		})
	}
}

// Disks are called as the cluster's from the beginning, and one that outlives an instance on which nothing else was done goes with its Machine.
func TestDiskOfWhatWasNeverCompleteIsFoundAndRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, _ := begun(t)
		time.Sleep(time.Minute)
		l.leak(t)
		all, err := l.List(t.Context())
		must(t, err)
		if len(all) != 1 || !all[0].Child || all[0].UID != l.ref.UID {
			t.Errorf("listed %+v", all)
		}
		must(t, l.Delete(t.Context(), l.ref))
		l.gone(t)
		if left := w.Disks(); len(left) != 0 {
			t.Errorf("disks %v are left", left)
		}
	})
}

// What the engine leaves of an instance that it takes back is told.
func TestDiskOfWhatTheEngineTakesBackIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.Spoil(true)
		w.Leak(true)
		l := newLife(t, w, "")
		_, err := l.Create(t.Context(), l.ref, l.resolved)
		must(t, err)
		time.Sleep(time.Minute)
		all, err := l.List(t.Context())
		must(t, err)
		if len(all) != 1 || !all[0].Child || all[0].UID != "" || !strings.Contains(all[0].Message, "remove it if nobody needs it") {
			t.Errorf("listed %+v", all)
		}
		if err := l.Delete(t.Context(), l.ref); provider.CodeOf(err) != provider.NotFound || len(w.Disks()) != 1 {
			t.Errorf("Delete = %v, disks %v are left", err, w.Disks())
		}
	})
}

// What an attempt left is listed beside the instance of a later one.
func TestDiskOfAFormerAttemptIsALeftover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, _ := started(t)
		l.leak(t)
		left := w.Disks()[0]
		l.ref = provider.Ref{UID: l.ref.UID, Name: l.ref.Name, Token: "t2"}
		in := l.up(t)
		all, err := l.List(t.Context())
		must(t, err)
		if len(all) != 2 || all[0].ID != in.ID || all[1].ID != left || !all[1].Child || all[1].Token != "t" || all[1].UID != l.ref.UID {
			t.Errorf("listed %+v", all)
		}
	})
}

// A clone that people make before the instance is complete is theirs.
func TestCloneOfWhatIsIncompleteIsNobodys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, `"affinity_groups_names": ["workers"]`)
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/affinitygroups/") || r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/diskattachments/") {
				return faulty(http.StatusConflict, "[no]"), nil
			}
			return next()
		})
		for range 5 {
			if in, _ := l.Create(t.Context(), l.ref, l.resolved); len(in.Progress) > 0 { // it is refused
				l.ref.Progress = in.Progress
			}
			time.Sleep(time.Second)
		}
		cloned := w.Make("somebodys-clone", w.Instances()[0].Comment)
		l.ref.Progress = nil
		l.gone(t)
		if !w.has(cloned) || len(w.Instances()) != 1 {
			t.Errorf("left %+v", w.Instances())
		}
	})
}

// What cannot be stopped because it does not run is removed, whatever its status is called.
func TestWhatDoesNotRunIsRemoved(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"image_illegal", "unassigned"} {
		synctest.Test(t, func(t *testing.T) {
			w, l, in := started(t)
			w.Set(in.ID, status, "")
			l.gone(t)
			if w.has(in.ID) || len(w.Disks()) != 0 {
				t.Errorf("%s: left %+v", status, w.Instances())
			}
		})
	}
}

// An instance of which the engine does not say what it does is not taken for one that was started: its steps are waited for.
func TestStatusThatNobodyKnowsIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, in := begun(t)
		time.Sleep(5 * time.Second)
		id := w.Instances()[0].ID
		w.Set(id, "unassigned", "")
		l.ref.Progress = in.Progress
		writes := w.Writes()
		if in, err := l.Create(t.Context(), l.ref, l.resolved); err != nil || in.State != provider.StateIncomplete || w.Writes() != writes {
			t.Errorf("Create = %+v, %v after %d changes", in, err, w.Writes()-writes)
		}
		w.Set(id, "down", "")
		l.up(t)
		if i := w.Instances()[0]; len(i.Tags) != 1 || i.Sizes[0] != 31<<30 {
			t.Errorf("made %+v", i)
		}
	})
}

// What has broken disks does not mend itself: the attempt hears so, and is over after a few such answers.
func TestInstanceWithIllegalDisksIsARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, in := begun(t)
		time.Sleep(5 * time.Second)
		w.Set(w.Instances()[0].ID, "image_illegal", "")
		l.ref.Progress = in.Progress
		writes := w.Writes()
		in, err := l.Create(t.Context(), l.ref, l.resolved)
		if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "illegal") || in.State != provider.StateIncomplete || w.Writes() != writes {
			t.Errorf("Create = %+v, %v after %d changes", in, err, w.Writes()-writes)
		}
		l.gone(t)
	})
}
