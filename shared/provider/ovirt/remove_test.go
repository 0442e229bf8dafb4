// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// A volume of a Pod that is attached when its Node goes is detached first: the engine would remove it (R-B29).
func TestForeignDisksOutliveTheInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, in := started(t)
		volume, late := w.Attach(in.ID), ""
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			res, err := next()
			if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/diskattachments/") && late == "" {
				late = w.Attach(in.ID) // which comes while the first goes
			}
			return res, err
		})
		l.gone(t)
		if left := w.Disks(); !slices.Equal(left, []string{volume, late}) {
			t.Errorf("disks %v are left, want %s, %s", left, volume, late)
		}
	})
}

// A volume that somebody else detached just then is detached, in whichever words engines say so.
func TestVolumeThatSomebodyElseDetached(t *testing.T) {
	t.Parallel()
	for _, said := range []string{"The disk is already detached from VM.", "The disk is not attached to VM worker-a."} {
		synctest.Test(t, func(t *testing.T) {
			w, l, in := started(t)
			volume := w.Attach(in.ID)
			w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
				res, err := next()
				if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/diskattachments/") {
					return faulty(http.StatusConflict, "[Cannot detach Virtual Disk. "+said+"]"), nil
				}
				return res, err
			})
			l.gone(t)
			if left := w.Disks(); !slices.Equal(left, []string{volume}) {
				t.Errorf("disks %v are left, want %s", left, volume)
			}
		})
	}
}

// Of an instance that another system made goes what it boots from; all else is kept.
func TestDisksOfOthersInstances(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		id := w.Make("worker-b", "a comment", l.account.ClusterID)
		volume := w.Attach(id)
		l.ref = provider.Ref{UID: l.ref.UID, Name: "worker-b", ProviderID: scheme + id}
		l.gone(t)
		if left := w.Disks(); w.has(id) || !slices.Equal(left, []string{volume}) {
			t.Errorf("disks %v are left, want %s", left, volume)
		}
		if slices.Contains(w.Calls(), "PUT /vms/*") {
			t.Error("the comment of somebody else's instance was changed")
		}
	})
}

// A disk that outlived its instance is listed as what is left of its Machine's, by whichever sweep, and goes by the Machine's UID or its own id.
func TestDiskThatIsLeftBehindIsFoundAndRemoved(t *testing.T) {
	t.Parallel()
	for _, byID := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w, l, in := started(t)
			w.Leak(true)
			for w.has(in.ID) {
				must(t, l.Delete(t.Context(), l.ref))
				time.Sleep(2 * time.Second)
			}
			all, err := l.List(t.Context())
			must(t, err)
			if len(all) != 1 || !all[0].Child || all[0].UID != l.ref.UID || all[0].ClusterUID != l.account.ClusterUID || all[0].Token != l.ref.Token || all[0].ID != w.Disks()[0] {
				t.Fatalf("listed %+v", all)
			}
			if found, err := l.Find(t.Context(), l.ref); err != nil || len(found) != 0 {
				t.Errorf("found %+v, %v", found, err)
			}
			other := l.ref
			other.Token, other.Attempt = "another", true
			if err := l.Delete(t.Context(), other); provider.CodeOf(err) != provider.NotFound || len(w.Disks()) != 1 {
				t.Errorf("Delete of another attempt = %v", err)
			}
			if byID {
				l.ref = provider.Ref{ID: all[0].ID}
			}
			if err := l.Delete(t.Context(), l.ref); err != nil {
				t.Errorf("Delete = %v", err)
			}
			l.gone(t)
			if left := w.Disks(); len(left) != 0 {
				t.Errorf("disks %v are left", left)
			}
		})
	}
}

// A copy of a disk that people make has its alias and its description: it is nobody's, as is what only looks like ours.
func TestCopyOfADiskIsNobodys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		p := prefix(l.account.ClusterID, string(l.ref.UID))
		said := func(cluster, id string) string {
			return `{"cluster": "` + cluster + `", "uid": "` + string(l.ref.UID) + `", "token": "t", "id": "` + id + `"}`
		}
		w.Float(p+"1", said(l.account.ClusterID, "5a0e0007-0000-4000-9000-0000000000ff"))
		bare := w.Float(p+"1", "what people wrote")
		w.Float(p+"1", said("another", "%s"))
		mine := w.Float(p+"1", said(l.account.ClusterID, "%s"))
		all, err := l.List(t.Context())
		must(t, err)
		if len(all) != 2 || all[0].ID != bare || all[0].UID != "" || all[1].ID != mine || all[1].UID != l.ref.UID || !all[0].Child || !all[1].Child {
			t.Errorf("listed %+v", all)
		}
		l.gone(t)
		if left := w.Disks(); len(left) != 3 || slices.Contains(left, mine) {
			t.Errorf("disks %v are left", left)
		}
	})
}

// A disk of an instance that is there is no leftover, whatever the search for disks says.
func TestDiskOfALivingInstanceIsNoLeftover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, _ := started(t)
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if q := r.URL.Query(); strings.HasSuffix(r.URL.Path, "/disks") {
				q.Set("search", strings.ReplaceAll(q.Get("search"), " and number_of_vms=0", ""))
				r.URL.RawQuery = q.Encode()
			}
			return next()
		})
		all, err := l.List(t.Context())
		must(t, err)
		if len(all) != 1 || all[0].Child {
			t.Errorf("listed %+v", all)
		}
	})
}

// What the engine does not remove is told, in its words, until people mend it.
func TestRemovalThatIsRefusedIsTold(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]string{
		"unknown":   "Cannot stop VM. VM is not running. (409): the engine does not know whether it runs: see to its host",
		"protected": "Delete protection is enabled",
	} {
		synctest.Test(t, func(t *testing.T) {
			w, l, in := started(t)
			if call == "unknown" {
				w.Set(in.ID, "unknown", "")
			} else {
				w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
					if r.Method == http.MethodDelete {
						return faulty(http.StatusConflict, "[Cannot remove VM. Delete protection is enabled. In order to delete, disable Delete protection first.]"), nil
					}
					return next()
				})
			}
			var err error
			for range 5 {
				err = l.Delete(t.Context(), l.ref)
				time.Sleep(2 * time.Second)
			}
			if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), want) {
				t.Errorf("Delete = %v", err)
			}
			if call == "unknown" {
				w.Set(in.ID, "down", "")
			}
			w.set(nil)
			l.gone(t)
		})
	}
}

// What an instance lacks is no absence of it, and is asked for when the engine says.
func TestWhatAPartLacksIsAskedForAsLate(t *testing.T) {
	t.Parallel()
	if err := present(provider.ErrorAfter(provider.NotFound, time.Minute, "a disk is gone")); provider.CodeOf(err) != provider.Unknown || after(err) != time.Minute {
		t.Errorf("present = %v after %v", err, after(err))
	}
}

// What is being removed is no creation that goes on.
func TestCreateOfWhatIsBeingRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.Halt = time.Minute
		l := newLife(t, w, "")
		l.up(t)
		must(t, l.Delete(t.Context(), l.ref))
		found, err := l.Find(t.Context(), l.ref)
		must(t, err)
		if len(found) != 1 || found[0].State != provider.StateDeleting || !found[0].Again {
			t.Errorf("found %+v", found)
		}
		if in, err := l.Create(t.Context(), l.ref, l.resolved); provider.CodeOf(err) != provider.Unknown || !strings.Contains(fmt.Sprint(err), "is being removed") {
			t.Errorf("Create = %+v, %v", in, err)
		}
	})
}

// A power-cycle resets what runs, starts what is down, stops and starts what hangs, and lets alone what starts, or goes.
func TestPowerCycle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, in := started(t)
		for _, c := range []struct{ status, call string }{
			{"up", "POST /vms/*/reset"}, {"down", "POST /vms/*/start"}, {"paused", "POST /vms/*/stop"}, {"suspended", "POST /vms/*/stop"}, {"not_responding", "POST /vms/*/stop"},
		} {
			w.Set(in.ID, c.status, "")
			err := l.PowerCycle(t.Context(), l.ref)
			if calls := w.Calls(); calls[len(calls)-1] != c.call {
				t.Errorf("%s: %s", c.status, calls[len(calls)-1])
			}
			if c.call == "POST /vms/*/stop" {
				if provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), "started next time") {
					t.Errorf("%s: PowerCycle = %v", c.status, err)
				}
				time.Sleep(5 * time.Second)
				err = l.PowerCycle(t.Context(), l.ref)
			}
			must(t, err)
			time.Sleep(5 * time.Second)
			if i := w.Instances()[0]; i.Status != "up" {
				t.Errorf("after %s it is %s", c.status, i.Status)
			}
		}
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/reset") {
				return answered(http.StatusNotFound, "", ""), nil
			}
			return next()
		})
		if err := l.PowerCycle(t.Context(), l.ref); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "4.4.6") {
			t.Errorf("of an old engine: %v", err)
		}
		must(t, l.Delete(t.Context(), l.ref))
		writes := w.Writes()
		must(t, l.PowerCycle(t.Context(), l.ref))
		if w.Writes() != writes {
			t.Error("what is being removed was reset")
		}
	})
}

// An instance that is called after backups is stopped as any other: force is for one that is being saved.
func TestNameIsNoBackup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		l := newLife(t, w, "")
		l.up(t)
		var stops, forced int
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, "/stop") {
				return next()
			}
			stops++
			if b, err := io.ReadAll(r.Body); err != nil || strings.Contains(string(b), "force") {
				forced++
			}
			return faulty(http.StatusConflict, "[Cannot stop VM. backup-worker-a is being migrated.]"), nil
		})
		_ = l.Delete(t.Context(), l.ref) // whether it is refused does not matter here
		if stops != 1 || forced > 0 {
			t.Errorf("%d stops, of which %d by force", stops, forced)
		}
	})
}
