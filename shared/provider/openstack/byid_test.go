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

// By an id alone, as a sweep does it, nothing that could not be looked at is gone: whichever request has no answer, the removal says so. And no
// volume is detached from an instance of which nobody told that it is gone (R-S2, G5).
func TestLookByIDThatFailedIsNoAbsence(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]func(f *fake, l *life) string{
		"a port": func(f *fake, l *life) string {
			return f.add("ports", map[string]any{"name": "p", "tags": ownTags(l.ref.UID, "t"), "device_id": string(uuid.NewUUID()), "revision_number": 1})
		},
		"the ports of an instance that is gone": func(f *fake, l *life) string {
			id := string(uuid.NewUUID())
			f.add("ports", map[string]any{"name": "p", "tags": append(ownTags(l.ref.UID, "t"), tag(tagServer, id)), "device_id": "", "revision_number": 1})
			return id
		},
		"a volume": func(f *fake, l *life) string {
			gone := string(uuid.NewUUID())
			id := f.add("volumes", map[string]any{
				"name": "v", "status": "in-use", "attachments": []any{map[string]any{"server_id": gone}},
				"metadata": map[string]any{tagCluster: "ocp43-abcde", tagUID: string(l.ref.UID), tagToken: "t"},
			})
			f.add("attachments", map[string]any{"instance": gone, "volume_id": id, "status": "attached"})
			return id
		},
	} {
		failed := true
		for n := 1; failed; n++ { // the request that has no answer
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				l := newLife(t, f, "")
				f.mu.Lock()
				r := provider.Ref{Name: "m", ID: made(f, l)}
				attached := len(f.things["attachments"])
				f.mu.Unlock()
				count, asked := 0, ""
				f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
					if after || strings.Contains(r.URL.Path, "/tokens") {
						return nil, nil
					}
					if count++; count == n {
						asked = r.Method + " " + r.URL.Path
						return reply(refuse(http.StatusServiceUnavailable, "error", "not now")), nil
					}
					return nil, nil
				}
				err := l.Delete(t.Context(), r)
				if failed = asked != ""; failed && (err == nil || provider.CodeOf(err) != provider.Unknown) {
					t.Errorf("%s, without an answer to %s: Delete = %v", name, asked, err)
				}
				if strings.Contains(asked, "/servers/") && len(f.things["attachments"]) != attached {
					t.Errorf("%s, without an answer to %s: %d attachments of %d are left", name, asked, len(f.things["attachments"]), attached)
				}
				f.wire = nil
				for range 20 {
					if err = l.Delete(t.Context(), r); provider.CodeOf(err) == provider.NotFound {
						break
					}
					time.Sleep(30 * time.Second)
				}
				wantNothing(t, f, "in the end")
			})
		}
	}
}

// A volume is detached from instances that are gone, and from no other: neither the Machine's own, which is Nova's to do, nor another's, which is
// told, nor where nobody tells from which.
func TestFromWhichInstanceAVolumeIsDetached(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of, instance string // whose it is; "": there is none
		code         provider.Code
		goes         bool
	}{
		"one that is gone":     {instance: string(uuid.NewUUID()), goes: true},
		"the Machine's own":    {of: "own"},
		"another's":            {of: "other", code: provider.Exhausted},
		"one that nobody told": {},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			l := newLife(t, f, "")
			f.mu.Lock()
			instance, uid := c.instance, l.ref.UID
			if c.of == "other" {
				uid = uuid.NewUUID()
			}
			if c.of != "" {
				instance = f.add("servers", map[string]any{"name": "m", "status": "ACTIVE", "tags": ownTags(uid, "t"), "metadata": map[string]any{}, "flavor": map[string]any{}})
			}
			id := f.add("volumes", map[string]any{
				"name": "v", "status": "in-use", "created_at": time.Now().UTC().Format("2006-01-02T15:04:05.000000"), "attachments": []any{map[string]any{"server_id": instance}},
				"metadata": map[string]any{tagCluster: "ocp43-abcde", tagUID: string(l.ref.UID), tagToken: "t"},
			})
			f.add("attachments", map[string]any{"instance": instance, "volume_id": id, "status": "attached"})
			f.mu.Unlock()
			err := l.Delete(t.Context(), provider.Ref{Name: "m", ID: id})
			removals := slices.DeleteFunc(slices.Clone(f.calls), func(call string) bool { return !strings.HasPrefix(call, "DELETE ") })
			if provider.CodeOf(err) != c.code || (len(removals) > 0) != c.goes || (f.count("attachments") == 0) != c.goes {
				t.Errorf("%s: Delete = %v, asked for %v", name, err, removals)
			}
		})
	}
}

// What starts by itself, or was reset a moment ago, is not reset again: it would never come up. What goes is not there.
func TestWhichInstancesArePowerCycled(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]struct {
		resets int
		code   provider.Code
	}{
		"ACTIVE": {1, 0}, "SHUTOFF": {1, 0}, "ERROR": {1, 0}, "BUILD": {0, 0}, "HARD_REBOOT": {0, 0}, "DELETED": {0, provider.NotFound}, "SOFT_DELETED": {0, provider.NotFound},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			l := newLife(t, f, "")
			f.mu.Lock()
			f.add("servers", map[string]any{"name": "m", "status": status, "tags": ownTags(l.ref.UID, "t"), "metadata": map[string]any{}, "flavor": map[string]any{}})
			f.mu.Unlock()
			resets := 0
			f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
				if !after && strings.HasSuffix(r.URL.Path, "/action") {
					resets++
					return reply(http.StatusAccepted, nil, nil), nil
				}
				return nil, nil
			}
			cycler, _ := l.Driver.(provider.PowerCycler)
			if err := cycler.PowerCycle(t.Context(), l.ref); provider.CodeOf(err) != want.code || resets != want.resets {
				t.Errorf("%s: PowerCycle = %v, %d resets", status, err, resets)
			}
		})
	}
}
