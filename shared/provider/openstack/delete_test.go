// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// A removal that Nova accepted and nobody carried out, because the service on the instance's host was gone, is told when it
// takes too long, and asked for again; until then it is asked for once (R-L2, E19).
func TestRemovalThatNovaForgotIsAskedForAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		in := l.up(t)
		f.forgets = 1
		begin, told := time.Now(), error(nil)
		for range 40 {
			err := l.Delete(t.Context(), l.ref)
			if provider.CodeOf(err) == provider.NotFound {
				break
			}
			if err != nil && told == nil {
				told = err
				if waited := time.Since(begin); waited < stuckAfter || waited > stuckAfter+time.Minute {
					t.Errorf("told after %v", waited)
				}
			}
			found, err := l.Find(t.Context(), l.ref)
			if err != nil {
				t.Fatal(err)
			}
			for _, have := range found {
				if again := time.Since(begin) >= stuckAfter && told == nil; have.Going() == again {
					t.Errorf("after %v it goes by itself: %v", time.Since(begin), have.Going())
				}
			}
			time.Sleep(30 * time.Second)
		}
		if told == nil || !strings.Contains(told.Error(), in.ID) || !strings.Contains(told.Error(), "deleting since") {
			t.Errorf("told: %v", told)
		}
		asked := slices.DeleteFunc(slices.Clone(f.calls), func(call string) bool { return !strings.HasPrefix(call, "DELETE /compute") })
		if len(asked) != 2 {
			t.Errorf("asked for %d times", len(asked))
		}
		wantNothing(t, f, "in the end")
	})
}

// Where Nova puts removals off for days, so that people can take them back, an instance is out of every list, and has its ports
// and volumes. A Machine that is deleted does not wait for that; one whose instance people deleted so has none.
func TestRemovalThatIsPutOffIsForced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.putsOff = true
		l := newLife(t, f, everything)
		in := l.up(t)
		if err := l.Delete(t.Context(), l.ref); err != nil {
			t.Fatal(err)
		}
		found, err := l.Find(t.Context(), l.ref)
		if err != nil || len(found) != 1 || found[0].ID != in.ID || found[0].State != provider.StateDeleting || found[0].Going() {
			t.Errorf("Find = %+v, %v: want that it is going, and not by itself", found, err)
		}
		begin := time.Now()
		l.down(t)
		if waited := time.Since(begin); waited > time.Minute {
			t.Errorf("gone after %v", waited)
		}
		wantNothing(t, f, "in the end")
	})
}

// A list that is answered with 404, as by an endpoint of the catalog that leads elsewhere, is no word that nothing is left: on
// that word the Machine goes.
func TestListThatIsNotFoundIsNoAbsence(t *testing.T) {
	t.Parallel()
	for _, list := range []string{"/servers/detail", "/ports", "/volumes/detail"} {
		t.Run(list, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				l := newLife(t, f, everything)
				l.up(t)
				f.wire = func(_ context.Context, r *http.Request, _ bool) (*http.Response, error) {
					if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, list) {
						return reply(refuse(http.StatusNotFound, "itemNotFound", "The resource could not be found.")), nil
					}
					return nil, nil
				}
				for range 10 {
					if err := l.Delete(t.Context(), l.ref); provider.CodeOf(err) == provider.NotFound {
						t.Fatalf("Delete = %v with %d servers, %d ports, %d volumes", err, f.count("servers"), f.count("ports"), f.count("volumes"))
					}
					time.Sleep(30 * time.Second)
				}
				f.wire = nil
				l.down(t)
				wantNothing(t, f, "in the end")
			})
		})
	}
}

// What cannot be removed keeps nothing else that is paid for.
func TestPortThatStaysKeepsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, everything)
		l.up(t)
		stays := ""
		f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
			if after || r.Method != http.MethodDelete || !strings.Contains(r.URL.Path, "/trunks/") || stays != "" && stays != r.URL.Path {
				return nil, nil
			}
			stays = r.URL.Path
			return reply(refuse(http.StatusConflict, "NeutronError", "Trunk is currently in use.")), nil
		}
		var err error
		for range 10 {
			err = l.Delete(t.Context(), l.ref)
			time.Sleep(30 * time.Second)
		}
		if err == nil || !strings.Contains(err.Error(), "currently in use") || f.count("ports") != 1 {
			t.Errorf("Delete = %v, and %d ports are left", err, f.count("ports"))
		}
		f.wire = nil
		l.down(t)
		wantNothing(t, f, "in the end")
	})
}

// An instance whose removal was put off may end by itself before that is forced: what it leaves is left to the next call.
func TestInstanceThatGoesBeforeItIsForced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.putsOff = true
		l := newLife(t, f, everything)
		l.up(t)
		if err := l.Delete(t.Context(), l.ref); err != nil {
			t.Fatal(err)
		}
		f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
			if !after && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/action") {
				return reply(refuse(http.StatusNotFound, "itemNotFound", "Instance could not be found.")), nil
			}
			return nil, nil
		}
		if err := l.Delete(t.Context(), l.ref); err != nil {
			t.Errorf("Delete = %v (%v) with %d ports", err, provider.CodeOf(err), f.count("ports"))
		}
		f.wire = nil
		l.down(t)
		wantNothing(t, f, "in the end")
	})
}

// Cinder that leaves out what a list of attachments is filtered by tells of those of all volumes: nobody else's is detached.
func TestAttachmentOfAnotherVolumeStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, everything)
		l.up(t)
		f.mu.Lock()
		other := f.add("volumes", map[string]any{"name": "somebody-elses", "status": "in-use", "attachments": []any{}, "metadata": map[string]any{}})
		theirs := f.add("attachments", map[string]any{"instance": string(uuid.NewUUID()), "volume_id": other, "status": "attached"})
		f.absent = true
		f.mu.Unlock()
		f.wire = func(_ context.Context, r *http.Request, _ bool) (*http.Response, error) {
			q := r.URL.Query()
			if strings.HasSuffix(r.URL.Path, "/attachments") {
				q.Del("volume_id")
				r.URL.RawQuery = q.Encode()
			}
			return nil, nil
		}
		l.down(t)
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.things["attachments"][theirs] == nil || f.things["volumes"][other].text("status") != "in-use" {
			t.Error("the volume of somebody else was detached")
		}
	})
}
