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

	"github.com/machine-functions/machine-functions/shared/provider"
)

// openshifts makes an instance as OpenShift's own provider does, with a port for each of these names: descriptions by name.
func (f *fake) openshifts(name string, ports map[string]string) string {
	id := f.add("servers", map[string]any{
		"name": name, "status": "ACTIVE", "tags": []any{"cluster-api-provider-openstack"}, "metadata": map[string]any{"openshiftClusterID": "ocp43-abcde"}, "flavor": map[string]any{},
	})
	all := []string{}
	for port, description := range ports {
		made := f.add("ports", map[string]any{"name": port, "tags": []any{"team=a"}, "device_id": id, "revision_number": 1, "description": description})
		trunk := f.add("trunks", map[string]any{"name": port, "port_id": made, "tags": []any{}})
		f.things["ports"][made].fields["trunk_details"] = map[string]any{"trunk_id": trunk}
		all = append(all, made)
	}
	f.things["servers"][id].fields["ports"] = all
	return id
}

const byOpenShift = "Created by cluster-api-provider-openstack cluster openshift-machine-api-ocp43-abcde"

// The ports that OpenShift made with a Machine's instance go with it, and so do their trunks (E19), whatever goes wrong on the way.
// Ports that others made stay, also those that people attached.
func TestPortsOfAMachineThatOpenShiftMade(t *testing.T) {
	t.Parallel()
	for n := range 12 { // the request whose answer is lost, if any
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			l := newLife(t, f, "")
			id := f.openshifts("worker-a", map[string]string{
				"worker-a-0": byOpenShift, "worker-a-sriov": byOpenShift, "worker-a": byOpenShift, // with a suffix, and as older releases named them
				"worker-a-backup": "attached by hand", "worker-ab-0": byOpenShift, "backup": byOpenShift,
			})
			f.openshifts("worker-b", map[string]string{"worker-b-0": byOpenShift, "worker-a-1": byOpenShift})
			count := 0
			f.wire = func(ctx context.Context, r *http.Request, after bool) (*http.Response, error) {
				if after && r.Method != http.MethodGet {
					if count++; count == n {
						return silence(ctx)
					}
				}
				return nil, nil
			}
			l.ref = provider.Ref{UID: l.ref.UID, Name: "worker-a", ProviderID: providerID(id)}
			if err := l.Delete(t.Context(), l.ref); err == nil {
				listed, err := l.List(t.Context())
				if err != nil || slices.ContainsFunc(listed, func(in provider.Instance) bool { return in.Child }) {
					t.Errorf("List = %+v, %v: what a port of an instance is has nobody left", listed, err)
				}
			}
			l.down(t)
			time.Sleep(time.Minute)
			names := []string{}
			for _, p := range f.things["ports"] {
				names = append(names, p.text("name"))
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != "backup worker-a-1 worker-a-backup worker-ab-0 worker-b-0" || f.count("trunks") != len(names) || f.count("servers") != 1 {
				t.Errorf("answer %d lost: left are the ports %s, %d trunks, %d servers: %v", n, got, f.count("trunks"), f.count("servers"), f.calls)
			}
		})
	}
}

// What went while the removal of an instance was prepared, be it the instance or a port, is no word that nothing is left.
func TestPortThatGoesMeanwhileIsNoAbsence(t *testing.T) {
	t.Parallel()
	for name, uid := range map[string]bool{"of an instance of OpenShift's": true, "of an instance that is removed by its id": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				l := newLife(t, f, "")
				r := provider.Ref{UID: l.ref.UID, Name: "worker-a"}
				if uid {
					r.ProviderID = providerID(f.openshifts("worker-a", map[string]string{"worker-a-0": byOpenShift}))
				} else {
					r = provider.Ref{Name: l.ref.Name, ID: l.up(t).ID}
				}
				f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
					if !after && r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/tags") {
						return reply(refuse(http.StatusNotFound, "NeutronError", "Port could not be found.")), nil
					}
					return nil, nil
				}
				if err := l.Delete(t.Context(), r); err != nil {
					t.Errorf("Delete = %v (%v) with %d instances", err, provider.CodeOf(err), f.count("servers"))
				}
				f.wire = nil
				for range 5 {
					time.Sleep(5 * time.Second)
					_ = l.Delete(t.Context(), r)
				}
				if n := f.count("servers"); n != 0 {
					t.Errorf("%d instances are left", n)
				}
			})
		})
	}
}
