// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var findTests = []test{
	{"find by tag, by id, by provider id", func(t *testing.T, c *cloud) {
		r := c.ref()
		i := c.launch(t, r)
		for _, by := range []provider.Ref{
			{UID: r.UID},
			{UID: r.UID, ID: i.ID},
			{UID: r.UID, ProviderID: i.ProviderID},
			{UID: r.UID, Name: "renamed", ID: "unknown", Token: "unknown"},
		} {
			found := c.find(t, by)
			if len(found) != 1 || found[0].ID != i.ID || found[0].ProviderID != i.ProviderID || found[0].UID != r.UID {
				t.Errorf("Find(%+v) = %+v, want %s", by, found, i.ID)
			}
		}
	}},
	{"find without a tag goes by the ids, whosever tag the instance carries", func(t *testing.T, c *cloud) {
		r := c.ref()
		i := c.launch(t, r)
		found := c.find(t, provider.Ref{Name: r.Name, ID: i.ID, ProviderID: i.ProviderID})
		if len(found) != 1 || found[0].ID != i.ID || found[0].UID != r.UID {
			t.Errorf("found %+v, want %s with the tag %s", found, i.ID, r.UID)
		}
		other := c.other(t)
		if found := other.find(t, provider.Ref{Name: r.Name, ID: i.ID, ProviderID: i.ProviderID}); len(found) != 0 {
			t.Errorf("another cluster found %+v", found)
		}
	}},
	{"find of what was never created is empty", func(t *testing.T, c *cloud) {
		c.launch(t, c.ref())
		if found := c.find(t, c.ref()); len(found) != 0 {
			t.Errorf("found %+v", found)
		}
	}},
	{"find never goes by name", func(t *testing.T, c *cloud) {
		r := c.ref()
		c.launch(t, r)
		stranger := c.ref()
		stranger.Name = r.Name
		if found := c.find(t, stranger); len(found) != 0 {
			t.Errorf("found %+v by its name", found)
		}
	}},
	{"find shows no half-made creation as an instance", func(t *testing.T, c *cloud) {
		r := c.ref()
		c.firstStep(t, r)
		for _, i := range c.find(t, r) {
			if i.State != provider.StateIncomplete || i.Child {
				t.Errorf("found %+v", i)
			}
		}
	}},
	{"an instance comes to run", func(t *testing.T, c *cloud) {
		c.started(t, c.ref())
	}},
	{"addresses hold the name before the node registers", func(t *testing.T, c *cloud) {
		r := c.ref()
		c.launch(t, r)
		c.eventually(t, "the instance has an InternalIP, and its name as InternalDNS or Hostname", func() bool {
			found := c.find(t, r)
			return len(found) == 1 && c.addressed(found[0], r.Name)
		})
	}},
	{"two instances have different addresses", func(t *testing.T, c *cloud) {
		seen := map[string]string{}
		for range 3 {
			r := c.ref()
			c.launch(t, r)
			c.eventually(t, "the instance has addresses", func() bool {
				found := c.find(t, r)
				return len(found) == 1 && c.addressed(found[0], r.Name)
			})
			for _, a := range c.find(t, r)[0].Addresses {
				if other, taken := seen[a.Address]; taken && other != r.Name {
					t.Errorf("%s and %s have the address %s", other, r.Name, a.Address)
				}
				seen[a.Address] = r.Name
			}
		}
	}},
	{"list has everything of the cluster", func(t *testing.T, c *cloud) {
		want := map[string]provider.Ref{}
		for range 3 {
			r := c.ref()
			want[c.launch(t, r).ID] = r
		}
		c.wantInstances(t, len(want))
		for _, i := range c.list(t) {
			if r := want[i.ID]; i.UID != r.UID || i.Name != r.Name || i.ProviderID == "" || i.Child {
				t.Errorf("listed %+v, want %+v", i, r)
			}
		}
	}},
	{"list has nothing of another cluster", func(t *testing.T, c *cloud) {
		other := c.other(t)
		mine, theirs := c.launch(t, c.ref()), other.launch(t, other.ref())
		if got := ids(c.list(t)); got[theirs.ID] || !got[mine.ID] {
			t.Errorf("listed %v, want %s", got, mine.ID)
		}
		if got := ids(other.list(t)); got[mine.ID] || !got[theirs.ID] {
			t.Errorf("the other listed %v, want %s", got, theirs.ID)
		}
	}},
	{"an instance of the cluster without a machine's tag is listed as nobody's", func(t *testing.T, c *cloud) {
		if c.Foreign == nil {
			t.Skip("the cloud tells no such instance from others")
		}
		foreign, r := c.Foreign(c.Account.ClusterID), c.ref()
		mine := c.launch(t, r)
		listed := func() (uid types.UID, there bool) {
			for _, i := range c.list(t) {
				if i.ProviderID == foreign && !i.Child {
					return i.UID, true
				}
			}
			return "", false
		}
		c.eventually(t, "it is listed", func() bool { _, there := listed(); return there })
		if uid, _ := listed(); uid != "" || !ids(c.list(t))[mine.ID] {
			t.Errorf("listed with the UID %q, beside %v", uid, ids(c.list(t)))
		}
		c.remove(t, r)
		wantCode(t, c.Delete(t.Context(), c.ref()), provider.NotFound)
		if _, there := listed(); !there {
			t.Error("it went with another's")
		}
	}},
	{"list has what a half-made creation left", func(t *testing.T, c *cloud) {
		r := c.ref()
		c.firstStep(t, r)
		if c.Children != nil && c.Children() > 0 {
			c.eventually(t, "the child is listed", func() bool {
				all := c.list(t)
				return len(all) > 0 && all[0].UID == r.UID && all[0].ID != "" && all[0].Child
			})
		}
	}},
}

// addressed reports whether i has an address and can be recognized when its node asks to join (SPEC B80, B83).
func (c *cloud) addressed(i provider.Instance, name string) bool {
	ip, dns := false, false
	for _, a := range i.Addresses {
		ip = ip || a.Type == corev1.NodeInternalIP && a.Address != ""
		dns = dns || a.Type == corev1.NodeInternalDNS && (a.Address == name || c.OwnNames)
	}
	return ip && dns
}
