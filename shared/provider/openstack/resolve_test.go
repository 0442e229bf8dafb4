// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// TestFilterTrap is the walk-through's failure (SPEC E15, S22, S24): one message, which names the filter.
func TestFilterTrap(t *testing.T) {
	t.Parallel()
	const none = "error creating Openstack instance: No network was found or provided: "
	for name, c := range map[string]struct {
		more string
		want string // the message, or the networks of the ports
	}{
		"an empty filter with subnets means their network":    {`"networks": [{"filter": {}, "subnets": [{"filter": {"name": "ocp43-nodes"}}]}]`, "ocp43-net/ocp43-nodes"},
		"a port for each subnet":                              {`"networks": [{"subnets": [{"filter": {"name": "ocp43-nodes"}}, {"filter": {"name": "ocp43-both"}}]}]`, "ocp43-net/ocp43-nodes ocp43-net/ocp43-both"},
		"a network without subnets":                           {`"networks": [{"filter": {"name": "storage"}}]`, "storage/"},
		"a subnet of the network":                             {`"networks": [{"filter": {"name": "storage"}, "subnets": [{"filter": {"tags": "both"}}]}]`, "storage/storage-v4"},
		"an address of each subnet of the network":            {`"networks": [{"filter": {"name": "ocp43-net"}, "subnets": [{"filter": {"name": "ocp43-nodes"}}, {"filter": {"name": "ocp43-both"}}]}]`, "ocp43-net/ocp43-nodes+ocp43-both"},
		"what selects nothing is not asked for":               {`"networks": [{"filter": {"name": "storage", "status": "DOWN", "shared": false, "adminStateUp": false, "projectId": "somebody", "tenantId": "another"}, "subnets": [{"filter": {"tags": "both", "enableDhcp": false}}]}]`, "storage/storage-v4"},
		"a tenant is a project":                               {`"networks": [{"filter": {"tenantId": "nobody"}}]`, none + `providerSpec.value.networks[0].filter {tenantId: "nobody"} matches no network`},
		"an image of the root volume counts":                  {`"image": "nowhere", "rootVolume": {"diskSize": 20, "sourceUUID": "rhcos-ocp43"}`, "ocp43-net/ocp43-nodes"},
		"an image beside that of the root volume does not":    {`"rootVolume": {"diskSize": 20, "sourceUUID": "nowhere"}`, `providerSpec.value.rootVolume.sourceUUID: "nowhere": no such image`},
		"a root volume of the image":                          {`"rootVolume": {"diskSize": 20}`, "ocp43-net/ocp43-nodes"},
		"a subnet that is not there":                          {`"networks": [{"filter": {}, "subnets": [{"filter": {"name": "nowhere", "tags": "a=b"}}]}]`, none + `providerSpec.value.networks[0].subnets[0].filter {name: "nowhere", tags: "a=b"} matches no subnet. Check the machine's configuration`},
		"a subnet of another network":                         {`"networks": [{"filter": {"name": "storage"}, "subnets": [{"filter": {"name": "ocp43-nodes"}}]}]`, none + `providerSpec.value.networks[0].subnets[0].filter {name: "ocp43-nodes", network: "`},
		"a network that is not there":                         {`"networks": [{"filter": {"name": "nowhere"}}]`, none + `providerSpec.value.networks[0].filter {name: "nowhere"} matches no network. Check the machine's configuration`},
		"a network id that is not there":                      {`"networks": [{"uuid": "nowhere"}]`, none + `providerSpec.value.networks[0] {uuid: "nowhere"} matches no network`},
		"subnets of several networks":                         {`"networks": [{"subnets": [{"filter": {"tags": "both"}}]}]`, none + `providerSpec.value.networks[0].subnets[0].filter {tags: "both"} matches subnets of several networks, and must match those of one: `},
		"several networks":                                    {`"networks": [{"filter": {"projectId": "` + own + `"}}]`, none + `providerSpec.value.networks[0].filter {projectId: "` + own + `"} matches 2 networks, and must match one: `},
		"a port's network that is not there":                  {`"ports": [{"networkID": "nowhere"}]`, none + `providerSpec.value.ports[0] {networkID: "nowhere"} matches no network`},
		"an empty filter without subnets never means all":     {`"networks": [{"filter": {}}]`, "providerSpec.value.networks[0].filter: Required value: an empty filter selects every network; give uuid, filter or subnets"},
		"paging selects nothing":                              {`"networks": [{"filter": {"limit": 1, "sortKey": "name"}}]`, "an empty filter selects every network"},
		"an empty subnet filter never means all":              {`"networks": [{"subnets": [{"filter": {}}]}]`, "an empty filter selects every subnet"},
		"a security group that is not there":                  {`"securityGroups": [{"name": "nowhere"}]`, `error creating Openstack instance: No security group was found: providerSpec.value.securityGroups[0] {name: "nowhere"} matches no security group`},
		"a server group that is not there":                    {`"serverGroupID": "nowhere"`, `providerSpec.value {serverGroupID: "nowhere"} matches no server group`},
		"a floating IP that is not there":                     {`"floatingIP": "198.51.100.8"`, `providerSpec.value.floatingIP {address: "198.51.100.8"} matches no floating IP`},
		"user data that is not there":                         {`"userDataSecret": {"name": "nobody-wrote-it"}`, `user data secret openshift-machine-api/nobody-wrote-it: secret not found`},
		"user data that cannot be read":                       {`"userDataSecret": {"name": "unread"}`, `user data secret openshift-machine-api/unread: the API server is not ready`},
		"a primary subnet that is not there":                  {`"primarySubnet": "nowhere"`, none + `providerSpec.value.primarySubnet {id: "nowhere"} matches no subnet`},
		"a Secret of another namespace is not for the asking": {`"userDataSecret": {"name": "a", "namespace": "kube-system"}`, `providerSpec.value.userDataSecret.namespace: Invalid value: "kube-system"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.add("networks", map[string]any{"name": "other", "project_id": own})
				d, err := providerOf(f).Open(t.Context(), accountOf("secret"))
				if err != nil {
					t.Fatal(err)
				}
				raw, err := d.Resolve(t.Context(), specWith(c.more))
				got := fmt.Sprint(err)
				if err == nil {
					got = f.networksOf(t, raw)
				}
				if !strings.Contains(got, c.want) {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
				if code := provider.CodeOf(err); err != nil && name == "user data that cannot be read" != (code == provider.Unknown) {
					t.Errorf("%v has the code %v", err, code)
				} else if err != nil && strings.HasPrefix(got, "error creating") && code != provider.Unknown && !strings.HasSuffix(got, "no such image") && code != provider.NotFound && code != provider.Exhausted {
					t.Errorf("%v has the code %v", err, code)
				}
			})
		})
	}
}

// networksOf names the networks and subnets of the ports.
func (f *fake) networksOf(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var w wanted
	if err := json.Unmarshal(raw, &w); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range w.Ports {
		var subnets []string
		for _, ip := range p.Body.FixedIPs {
			subnets = append(subnets, f.things["subnets"][ip.Subnet].text("name"))
		}
		all = append(all, f.things["networks"][p.Body.Network].text("name")+"/"+strings.Join(subnets, "+"))
	}
	return strings.Join(all, " ")
}

func (f *fake) only(t *testing.T, kind string) map[string]any {
	t.Helper()
	if len(f.things[kind]) != 1 {
		t.Fatalf("%d %s", len(f.things[kind]), kind)
	}
	for _, one := range f.things[kind] {
		return one.fields
	}
	return nil
}

// wantJSON wants fields to have these values.
func wantJSON(t *testing.T, what string, fields map[string]any, text string) {
	t.Helper()
	var want map[string]any
	if err := json.Unmarshal([]byte("{"+text+"}"), &want); err != nil {
		t.Fatal(err)
	}
	for name, value := range want {
		a, _ := json.Marshal(value)
		if b, err := json.Marshal(fields[name]); err != nil || string(a) != string(b) {
			t.Errorf("%s: %s is %s, want %s", what, name, b, a)
		}
	}
}

func TestListCostsFourRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		l.up(t)
		one := f.only(t, "servers")
		for range 100 {
			f.add("servers", maps.Clone(one))
		}
		before := len(f.calls)
		all, err := l.List(t.Context())
		if err != nil || len(all) != 101 {
			t.Errorf("List = %d, %v", len(all), err)
		}
		if asked := f.calls[before:]; len(asked) != 4 {
			t.Errorf("List asked %v", asked)
		}
	})
}

// TestCellThatDoesNotAnswer: Nova leaves its instances out of lists by tag, and tells of the others' ids only.
func TestCellThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		l.up(t)
		s := f.only(t, "servers")
		for name := range s {
			if name != "id" {
				delete(s, name)
			}
		}
		s["status"], s["created"] = "UNKNOWN", time.Now().UTC().Format(time.RFC3339)
		if found, err := l.Find(t.Context(), l.ref); provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), "its cell does not answer") {
			t.Errorf("Find = %v, %v", found, err)
		}
		if all, err := l.List(t.Context()); provider.CodeOf(err) != provider.Unknown {
			t.Errorf("List = %v, %v", all, err)
		}
		if err := l.Delete(t.Context(), l.ref); provider.CodeOf(err) != provider.Unknown {
			t.Errorf("Delete = %v", err)
		}
		if f.count("ports") != 1 {
			t.Error("the port of an instance in a cell that does not answer was deleted")
		}
	})
}

func TestStates(t *testing.T) {
	t.Parallel()
	launched := "2026-01-01T00:00:00.000000"
	for _, c := range []struct {
		server server
		want   provider.State
	}{
		{server{Status: "BUILD"}, provider.StatePending},
		{server{Status: "ACTIVE"}, provider.StateRunning},
		{server{Status: "ACTIVE", Task: "deleting"}, provider.StateDeleting},
		{server{Status: "SHUTOFF"}, provider.StateStopped},
		{server{Status: "SHELVED_OFFLOADED"}, provider.StateStopped},
		{server{Status: "HARD_REBOOT"}, provider.StateRunning},
		{server{Status: "ERROR"}, provider.StateFailed},
		{server{Status: "ERROR", Launched: &launched}, provider.StateStopped},
		{server{Status: "SOFT_DELETED"}, provider.StateDeleting},
	} {
		if got := c.server.state(); got != c.want {
			t.Errorf("%+v is %s, want %s", c.server, got, c.want)
		}
	}
}

func TestAddressesOfThePrimaryNetworkComeFirst(t *testing.T) {
	t.Parallel()
	var s server
	if err := json.Unmarshal([]byte(`{"name": "w", "metadata": {"machine-primary-network": "b"}, "addresses": {
		"a": [{"addr": "10.1.0.1", "OS-EXT-IPS:type": "fixed"}],
		"b": [{"addr": "10.0.0.1", "OS-EXT-IPS:type": "fixed"}, {"addr": "198.51.100.7", "OS-EXT-IPS:type": "floating"}]}}`), &s); err != nil {
		t.Fatal(err)
	}
	want := []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeExternalIP, Address: "198.51.100.7"}, {Type: corev1.NodeInternalIP, Address: "10.1.0.1"},
		{Type: corev1.NodeHostName, Address: "w"}, {Type: corev1.NodeInternalDNS, Address: "w"},
	}
	if got := s.addresses(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("addresses %v, want %v", got, want)
	}
}

// TestPagesAreReadSideBySide: 5,000 instances take as long as two pages and a list of ids.
func TestPagesAreReadSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.page = 100
		l := newLife(t, f, "")
		l.up(t)
		one := f.only(t, "servers")
		for range 499 {
			f.add("servers", maps.Clone(one))
		}
		f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
			if after && strings.HasSuffix(r.URL.Path, "/servers/detail") {
				time.Sleep(3 * time.Second)
			}
			return nil, nil
		}
		begin := time.Now()
		all, err := l.List(t.Context())
		if err != nil || len(all) != 500 {
			t.Errorf("List = %d, %v", len(all), err)
		}
		if took := time.Since(begin); took > 7*time.Second {
			t.Errorf("five pages of 3 s took %v", took)
		}
	})
}

// SPEC B21: an instance of the list of ids that its page does not tell of is asked for by itself: only Nova's 404 says that
// it was deleted in between.
func TestFewThatNoPageTellsOfAreAskedFor(t *testing.T) {
	t.Parallel()
	for what, is := range map[string]struct {
		answer func() (int, any, http.Header) // in place of the one instance; nil: it is there
		want   int
	}{
		"there":  {nil, 150},
		"gone":   {func() (int, any, http.Header) { return refuse(http.StatusNotFound, "itemNotFound", "gone") }, 149},
		"unsaid": {func() (int, any, http.Header) { return refuse(http.StatusServiceUnavailable, "x", "no") }, 0},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				l := newLife(t, f, "")
				l.up(t)
				one := f.only(t, "servers")
				clear(f.things["ports"]) // one that outlives its instance is listed in its place
				f.page = 100
				for range 149 {
					f.add("servers", maps.Clone(one))
				}
				last := slices.Max(slices.Collect(maps.Keys(f.things["servers"])))
				f.wire = func(_ context.Context, r *http.Request, _ bool) (*http.Response, error) {
					if strings.HasSuffix(r.URL.Path, "/servers/"+last) && is.answer != nil {
						return reply(is.answer()), nil
					}
					return nil, nil
				}
				f.untold = last
				all, err := l.List(t.Context())
				if len(all) != is.want || (err == nil) != (is.want > 0) {
					t.Errorf("List = %d, %v, want %d", len(all), err, is.want)
				}
			})
		})
	}
}

// Many that no page tells of are no few that went in between: the list has failed, and nobody is asked for each.
func TestManyThatNoPageTellsOfAreNoList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		l.up(t)
		one := f.only(t, "servers")
		f.page = 100
		for range 299 {
			f.add("servers", maps.Clone(one))
		}
		f.wire = func(ctx context.Context, r *http.Request, after bool) (*http.Response, error) {
			if after && strings.HasSuffix(r.URL.Path, "/servers/detail") && r.URL.Query().Get("marker") != "" {
				return answers(http.StatusOK, `{"servers": []}`, nil)(ctx)
			}
			return nil, nil
		}
		before := len(f.calls)
		_, err := l.List(t.Context())
		if asked := len(f.calls) - before; provider.CodeOf(err) != provider.Unknown || err == nil || asked > 20 {
			t.Errorf("List = %v after %d requests, want an error after a handful", err, asked)
		}
	})
}

// An image by its id is found though no list shows it: one of another project for everybody (visibility community), or one
// that is hidden (E18).
func TestImageThatNoListShows(t *testing.T) {
	t.Parallel()
	for name, fields := range map[string]map[string]any{
		"community": {"name": "rhcos", "status": "active", "visibility": "community"},
		"hidden":    {"name": "rhcos", "status": "active", "os_hidden": true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				id := f.add("images", fields)
				d, err := providerOf(f).Open(t.Context(), accountOf("secret"))
				if err != nil {
					t.Fatal(err)
				}
				raw, err := d.Resolve(t.Context(), specWith(`"image": "`+id+`"`))
				if err != nil || !strings.Contains(string(raw), `"image":"`+id+`"`) {
					t.Errorf("Resolve = %s, %v", raw, err)
				}
				const nowhere = "99999999-9999-9999-9999-999999999999"
				if _, err := d.Resolve(t.Context(), specWith(`"image": "`+nowhere+`"`)); provider.CodeOf(err) != provider.Invalid || !strings.Contains(err.Error(), nowhere) {
					t.Errorf("Resolve of an image that is nowhere = %v", err)
				}
			})
		})
	}
}

// Nova tells a page of server groups, and not that there are more: the group of a name that is on another page is not made anew.
func TestServerGroupOfAnotherPageIsFound(t *testing.T) {
	t.Parallel()
	for page := 2; page < 5; page++ {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.page = page
			for n := range 6 {
				f.add("server_groups", map[string]any{"name": fmt.Sprintf("spread-%d", n)})
			}
			for n := range 6 {
				l := newLife(t, f, fmt.Sprintf(`"serverGroupName": "spread-%d"`, n))
				l.up(t)
			}
			if n := f.count("server_groups"); n != 7 {
				t.Errorf("%d groups with %d a page, want 7", n, page)
			}
		})
	}
}
