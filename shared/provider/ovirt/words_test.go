// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// What is at the same thing the engine says in sentences of its own: words that stand in names, or within others, are none of them.
func TestSentencesOfWhatWaits(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string]bool{
		"[Cannot add VM. Related operation is currently in progress. Please try again later.]":                                                 true,
		"[Cannot remove VM: VM is locked. Please try again in a few minutes.]":                                                                 true,
		"[Cannot run VM: The following disks are locked: a. Please try again in a few minutes.]":                                               true,
		"[Cannot remove VM: VM is being exported now. Please try again in a few minutes.]":                                                     true,
		"[Cannot edit VM. VM is being updated.]":                                                                                               true,
		"[Cannot remove VM. Snapshot is currently being created for VM a.]":                                                                    true,
		"[Cannot remove VM. The VM is performing an operation on a Snapshot. Please wait for the operation to finish, and try again.]":         true,
		"[Cannot stop VM. The VM is during a backup operation.]":                                                                               true,
		"[Cannot stop VM. VM is in saving/restoring state.\n-Please try again when the VM is either up or down.]":                              true,
		"[Cannot run VM. The port of the network is blocked.]":                                                                                 false,
		"[Cannot run VM. There is no host that satisfies current scheduling constraints., The host unlocked-a is in progress-of-maintenance.]": false,
		"[Cannot remove Virtual Disk. The disk is being used by VM a.]":                                                                        false,
		"[Cannot remove VM. The following attached disks are in ILLEGAL status: a - please remove them and try again.]":                        false,
	} {
		if got := busy(&refusal{status: http.StatusConflict, reason: "Operation Failed", detail: detail}); got != want {
			t.Errorf("%s: busy = %t", detail, got)
		}
	}
}

// What is being saved or restored the engine neither stops nor resets: it is waited for, and then done as asked.
func TestWhatIsBeingSavedIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"saving_state", "restoring_state"} {
		synctest.Test(t, func(t *testing.T) {
			w, l, in := started(t)
			w.Set(in.ID, status, "")
			writes := w.Writes()
			if err := l.PowerCycle(t.Context(), l.ref); provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), status) || w.Writes() != writes {
				t.Errorf("%s: PowerCycle = %v after %d changes", status, err, w.Writes()-writes)
			}
			w.Set(in.ID, "up", "")
			must(t, l.PowerCycle(t.Context(), l.ref))
			time.Sleep(time.Minute)
			w.Set(in.ID, status, "")
			must(t, l.Delete(t.Context(), l.ref))
			if i := w.Instances()[0]; i.Status != status || len(i.Disks) != 1 {
				t.Errorf("left %+v", i)
			}
			w.Set(in.ID, "suspended", "")
			l.gone(t)
		})
	}
}

// An engine whose cluster knows no reset refuses it in no words: people read which level it needs.
func TestResetThatTheClusterDoesNotKnow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.Age(true)
		l := newLife(t, w, "")
		l.up(t)
		if err := l.PowerCycle(t.Context(), l.ref); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "compatibility level 4.6") {
			t.Errorf("PowerCycle = %v", err)
		}
	})
}

// One that says what it lacks knows reset: an instance that goes while it is reset is no reason to upgrade the engine.
func TestResetOfWhatGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, in := started(t)
		w.set(func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/reset") {
				return answered(http.StatusNotFound, "application/json", `{"status": "failed", "fault": {"reason": "Operation Failed", "detail": "Entity not found: `+in.ID+`"}}`), nil
			}
			return next()
		})
		if err := l.PowerCycle(t.Context(), l.ref); provider.CodeOf(err) != provider.Unknown || strings.Contains(err.Error(), "4.4.6") {
			t.Errorf("PowerCycle = %v", err)
		}
	})
}

// An engine removes the virtual machine first, and then its disks: until they are gone the removal goes on, and they are told.
func TestDisksGoAfterTheInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, _ := started(t)
		w.Halt = time.Minute
		must(t, l.Delete(t.Context(), l.ref))
		time.Sleep(2 * time.Minute)
		must(t, l.Delete(t.Context(), l.ref))
		writes := w.Writes()
		must(t, l.Delete(t.Context(), l.ref))
		all, err := l.List(t.Context())
		must(t, err)
		if len(w.Instances()) != 0 || w.Writes() != writes || len(all) != 1 || !all[0].Child || all[0].UID != l.ref.UID || all[0].CloudState != "locked" {
			t.Errorf("left %+v, listed %+v after %d changes", w.Instances(), all, w.Writes()-writes)
		}
		time.Sleep(2 * time.Minute)
		l.gone(t)
		if left := w.Disks(); len(left) != 0 {
			t.Errorf("disks %v are left", left)
		}
	})
}

// Who is found by the Machine's UID is not asked for by its id as well.
func TestWhatIsFoundIsNotSearchedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, l, in := started(t)
		searches := w.count("GET /vms")
		if found, err := l.Find(t.Context(), l.ref); err != nil || len(found) != 1 || w.count("GET /vms") != searches+1 {
			t.Errorf("found %+v, %v after %d searches", found, err, w.count("GET /vms")-searches)
		}
		w.Set(in.ID, "", "people empty it")
		searches = w.count("GET /vms")
		if found, err := l.Find(t.Context(), l.ref); err != nil || len(found) != 1 || w.count("GET /vms") != searches+2 {
			t.Errorf("without a mark: found %+v, %v after %d searches", found, err, w.count("GET /vms")-searches)
		}
	})
}
