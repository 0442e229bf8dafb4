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

// Of the ports that OpenShift made those of the Machine's instance go with it, whether a tag tells who made them or the description: also where
// Neutron lists those of all instances, no other's goes, and none that is marked as another cluster's (R-S3).
func TestPortsOfOthersAreNotAdopted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := deafTo(t, f, "", map[string]string{"/ports": "device_id"})
		f.mu.Lock()
		id, other := f.openshifts("worker-a", nil), f.openshifts("worker-b", nil)
		for name, p := range map[string]map[string]any{
			"worker-a-told":    {"device_id": id, "description": byOpenShift, "tags": []any{}},
			"worker-a-tagged":  {"device_id": id, "description": "", "tags": []any{"cluster-api-provider-openstack"}},
			"worker-a-theirs":  {"device_id": id, "description": byOpenShift, "tags": []any{tag(tagCluster, "another"), tag(tagUID, string(uuid.NewUUID()))}},
			"worker-a-b":       {"device_id": other, "description": byOpenShift, "tags": []any{}},
			"worker-a-b-bytag": {"device_id": other, "description": "", "tags": []any{"cluster-api-provider-openstack"}},
		} {
			p["name"], p["revision_number"] = name, 1
			f.add("ports", p)
		}
		f.mu.Unlock()
		l.ref = provider.Ref{UID: l.ref.UID, Name: "worker-a", ProviderID: providerID(id)}
		l.down(t)
		time.Sleep(time.Minute)
		names := []string{}
		for _, p := range f.things["ports"] {
			names = append(names, p.text("name"))
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != "worker-a-b worker-a-b-bytag worker-a-theirs" || f.count("servers") != 1 {
			t.Errorf("left are the ports %s and %d servers", got, f.count("servers"))
		}
	})
}

// An instance stays until its ports are marked: once it is gone nothing else says whose they are (R-S2).
func TestInstanceStaysUntilItsPortsAreMarked(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]func(*fake, *life) provider.Ref{
		"of OpenShift's": func(f *fake, l *life) provider.Ref {
			return provider.Ref{UID: l.ref.UID, Name: "worker-a", ProviderID: providerID(f.openshifts("worker-a", map[string]string{"worker-a-0": byOpenShift}))}
		},
		"by its id": func(f *fake, l *life) provider.Ref {
			f.add("ports", map[string]any{"name": "p", "tags": ownTags(l.ref.UID, l.ref.Token), "device_id": "", "revision_number": 1})
			return provider.Ref{Name: l.ref.Name, ID: f.add("servers", map[string]any{
				"name": l.ref.Name, "status": "ACTIVE", "tags": ownTags(l.ref.UID, l.ref.Token), "metadata": map[string]any{}, "flavor": map[string]any{},
			})}
		},
	} {
		refused := 0
		for n := 1; n == 1 || refused >= n-1; n++ { // the request before the removal that is refused
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				l := newLife(t, f, "")
				f.mu.Lock()
				r := made(f, l)
				f.mu.Unlock()
				count, asked := 0, ""
				f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
					removal := r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/servers/")
					if after || removal || strings.Contains(r.URL.Path, "/tokens") {
						return nil, nil
					}
					if count++; count == n {
						asked, refused = r.Method+" "+r.URL.Path, n
						return reply(refuse(http.StatusServiceUnavailable, "error", "not now")), nil
					}
					return nil, nil
				}
				if err := l.Delete(t.Context(), r); count >= n && (err == nil || f.count("servers") != 1) {
					t.Errorf("%s, without an answer to %s: Delete = %v, %d servers are left", name, asked, err, f.count("servers"))
				}
			})
		}
		if refused < 3 {
			t.Errorf("%s: only %d requests came before the removal", name, refused)
		}
	}
}

// A port that an instance has is not taken from it, also of the Machine's own while that runs; one that is going away, or gone, needs it no more.
func TestPortOfAnInstanceThatRunsStays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status, of string // of the instance; "": it is gone, or the Machine's own
		goes       bool
	}{
		"its own, which runs":     {"ACTIVE", "", false},
		"its own, which goes":     {"SOFT_DELETED", "", true},
		"another's, which runs":   {"ACTIVE", "other", false},
		"another's, which goes":   {"SOFT_DELETED", "other", false},
		"one that is gone by now": {"", "", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			l := newLife(t, f, "")
			uid := l.ref.UID
			f.mu.Lock()
			device := string(uuid.NewUUID())
			if c.of != "" {
				uid = uuid.NewUUID()
			}
			if c.status != "" {
				device = f.add("servers", map[string]any{"name": "m", "status": c.status, "tags": ownTags(uid, "t"), "metadata": map[string]any{}, "flavor": map[string]any{}})
			}
			id := f.add("ports", map[string]any{"name": "p", "tags": ownTags(l.ref.UID, "t"), "device_id": device, "revision_number": 1})
			f.mu.Unlock()
			err := l.Delete(t.Context(), provider.Ref{ID: id, Name: "p"}) // as a sweep does
			f.mu.Lock()
			defer f.mu.Unlock()
			if there := f.things["ports"][id] != nil; there == c.goes || c.goes && err != nil || !c.goes && provider.CodeOf(err) != provider.Exhausted {
				t.Errorf("%s: Delete = %v, there %v", name, err, there)
			}
		})
	}
}
