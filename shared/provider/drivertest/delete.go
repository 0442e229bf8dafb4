// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var deleteTests = []test{
	{"delete by id", func(t *testing.T, c *cloud) {
		i := c.launch(t, c.ref())
		c.remove(t, provider.Ref{ID: i.ID})
		c.wantInstances(t, 0)
	}},
	{"delete by tag", func(t *testing.T, c *cloud) {
		r := c.ref()
		c.launch(t, r)
		c.remove(t, provider.Ref{UID: r.UID})
		c.wantInstances(t, 0)
	}},
	{"delete by tag and provider id", func(t *testing.T, c *cloud) {
		r := c.ref()
		r.ProviderID = c.launch(t, r).ProviderID
		c.remove(t, r)
		c.wantInstances(t, 0)
	}},
	{"delete of what was never created is NotFound", func(t *testing.T, c *cloud) {
		c.launch(t, c.ref())
		wantCode(t, c.Delete(t.Context(), c.ref()), provider.NotFound)
		wantCode(t, c.Delete(t.Context(), provider.Ref{ID: "unknown"}), provider.NotFound)
		c.wantInstances(t, 1)
	}},
	{"what is gone stays gone", func(t *testing.T, c *cloud) {
		r := c.ref()
		r.ID = c.launch(t, r).ID
		c.remove(t, r)
		c.wantInstances(t, 0)
		for range 3 {
			wantCode(t, c.Delete(t.Context(), r), provider.NotFound)
		}
		if found := c.find(t, r); len(found) != 0 {
			t.Errorf("found %+v after its removal", found)
		}
	}},
	{"delete of what no read shows yet leaves nothing", func(t *testing.T, c *cloud) {
		r := c.ref()
		r.Began = time.Now()
		i, err := c.create(t.Context(), r)
		if err != nil {
			t.Fatalf("Create: %v", err)
		}
		r.ID, r.ProviderID = i.ID, i.ProviderID
		c.remove(t, r)
		time.Sleep(c.Lag)
		if left := c.list(t); len(left) != 0 {
			t.Errorf("nothing is there, says Delete, and %+v is listed", left)
		}
	}},
	{"what is on its way out says so", func(t *testing.T, c *cloud) {
		r := c.ref()
		c.launch(t, r)
		if err := c.Delete(t.Context(), r); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		c.eventually(t, "the instance is deleting or gone", func() bool {
			found := c.find(t, r)
			return len(found) == 0 || found[0].State == provider.StateDeleting
		})
	}},
	{"delete at the same time", func(t *testing.T, c *cloud) {
		r := c.ref()
		c.launch(t, r)
		together(t, 8, func() (provider.Instance, error) { return provider.Instance{}, c.Delete(t.Context(), r) })
		c.remove(t, r)
		c.wantInstances(t, 0)
	}},
	{"delete of one leaves the other", func(t *testing.T, c *cloud) {
		gone, stays := c.ref(), c.ref()
		c.launch(t, gone)
		id := c.launch(t, stays).ID
		c.remove(t, gone)
		c.wantInstances(t, 1)
		if all := ids(c.list(t)); !all[id] {
			t.Errorf("listed %v, want %s", all, id)
		}
	}},
	{"delete never takes another machine's instance for its id", func(t *testing.T, c *cloud) {
		mine, theirs := c.ref(), c.launch(t, c.ref())
		wantCode(t, c.Delete(t.Context(), provider.Ref{UID: mine.UID, ID: theirs.ID, ProviderID: theirs.ProviderID}), provider.NotFound)
		c.wantInstances(t, 1)
	}},
	{"delete never takes another cluster's instance", func(t *testing.T, c *cloud) {
		other := c.other(t)
		r := other.ref()
		theirs := other.launch(t, r)
		wantCode(t, c.Delete(t.Context(), provider.Ref{UID: r.UID, ID: theirs.ID, ProviderID: theirs.ProviderID}), provider.NotFound)
		wantCode(t, c.Delete(t.Context(), provider.Ref{ID: theirs.ID}), provider.NotFound)
		other.wantInstances(t, 1)
	}},
	{"delete by id alone leaves the machine's other instance", func(t *testing.T, c *cloud) {
		if c.OnePerMachine {
			t.Skip("the cloud holds one instance of a machine at a time")
		}
		r := c.ref()
		kept, doubled := c.launch(t, r), c.launch(t, c.attempt(r, 2))
		c.remove(t, provider.Ref{ID: doubled.ID})
		c.wantInstances(t, 1)
		if all := ids(c.list(t)); !all[kept.ID] {
			t.Errorf("listed %v, want %s", all, kept.ID)
		}
	}},
	{"delete by tag takes every instance of the machine", func(t *testing.T, c *cloud) {
		if c.OnePerMachine {
			t.Skip("the cloud holds one instance of a machine at a time")
		}
		r := c.ref()
		id := c.launch(t, r).ID
		c.launch(t, c.attempt(r, 2))
		c.remove(t, provider.Ref{UID: r.UID, ID: id})
		c.wantInstances(t, 0)
	}},
	{"delete of one attempt leaves what another made", func(t *testing.T, c *cloud) {
		r := c.ref()
		id := c.launch(t, r).ID
		late := c.attempt(r, 2)
		late.Attempt = true
		wantCode(t, c.Delete(t.Context(), late), provider.NotFound)
		if all := ids(c.list(t)); !all[id] {
			t.Errorf("listed %v, want %s", all, id)
		}
		if c.Children != nil && c.Children() > 0 {
			n := c.Children()
			wantCode(t, c.Delete(t.Context(), late), provider.NotFound)
			if left := c.Children(); left != n {
				t.Errorf("%d children of %d are left", left, n)
			}
		}
		r.Attempt = true
		c.remove(t, r)
		c.wantInstances(t, 0)
	}},
	{"delete of one attempt takes its instance from beside another's", func(t *testing.T, c *cloud) {
		if c.OnePerMachine {
			t.Skip("the cloud holds one instance of a machine at a time")
		}
		r := c.ref()
		first, second := c.launch(t, r), c.launch(t, c.attempt(r, 2))
		r.Attempt = true
		c.remove(t, r)
		c.wantInstances(t, 1)
		if all := ids(c.list(t)); !all[second.ID] {
			t.Errorf("listed %v, want %s without %s", all, second.ID, first.ID)
		}
	}},
	{"what one attempt left half-made is removed by its token", func(t *testing.T, c *cloud) {
		r := c.ref()
		r.Progress = c.firstStep(t, r).Progress
		if c.Children != nil {
			c.eventually(t, "the child is listed", func() bool { return len(c.list(t)) > 0 })
		}
		r.Attempt = true
		c.remove(t, r)
		if c.Children != nil && c.Children() != 0 {
			t.Errorf("%d children are left", c.Children())
		}
	}},
	{"children go with their instance", func(t *testing.T, c *cloud) {
		if c.Children == nil {
			t.Skip("instances have no children")
		}
		r := c.ref()
		c.launch(t, r)
		if c.Children() == 0 {
			t.Skip("instances have no children")
		}
		c.remove(t, provider.Ref{UID: r.UID})
		if n := c.Children(); n != 0 {
			t.Errorf("%d children outlived their instance", n)
		}
	}},
	{"a half-made creation is removed by tag", func(t *testing.T, c *cloud) {
		r := c.ref()
		c.firstStep(t, r)
		if c.Children != nil {
			c.eventually(t, "the child is listed", func() bool { return len(c.list(t)) > 0 })
		}
		c.remove(t, provider.Ref{UID: r.UID})
		if c.Children != nil && c.Children() != 0 {
			t.Errorf("%d children are left", c.Children())
		}
	}},
	{"instances without a tag are left alone", func(t *testing.T, c *cloud) {
		if c.Untagged == nil {
			t.Skip("the cloud makes no untagged instance")
		}
		providerID, exists := c.Untagged()
		c.launch(t, c.ref())
		for _, i := range c.list(t) {
			if i.ProviderID == providerID && (c.UntaggedOf == "" || i.UID != "") {
				t.Errorf("listed %+v", i)
			}
		}
		wantCode(t, c.Delete(t.Context(), c.ref()), provider.NotFound)
		wantCode(t, c.Delete(t.Context(), provider.Ref{}), provider.NotFound)
		if !exists() {
			t.Error("an untagged instance was deleted")
		}
	}},
	{"an instance without a tag is the machine's that records its provider id", func(t *testing.T, c *cloud) {
		if c.Untagged == nil {
			t.Skip("the cloud makes no untagged instance")
		}
		for _, form := range []func(string) string{func(id string) string { return id }, inOtherWords} {
			r := c.ref()
			providerID, exists := c.Untagged()
			r.Name, r.ProviderID = cmp.Or(c.UntaggedOf, c.NamedAs, r.Name), form(providerID)
			c.eventually(t, "it is found by "+r.ProviderID, func() bool {
				found := c.find(t, r)
				return len(found) == 1 && found[0].ProviderID == providerID
			})
			c.remove(t, r)
			if exists() {
				t.Errorf("NotFound is said of an instance that exists, recorded as %s", r.ProviderID)
			}
		}
	}},
}

// inOtherWords returns a providerID as somebody else than the driver may have recorded it (SPEC B5).
func inOtherWords(providerID string) string {
	switch scheme, rest, _ := strings.Cut(providerID, "://"); scheme {
	case "aws":
		return "aws:////" + rest[strings.LastIndexByte(rest, '/')+1:]
	case "openstack":
		return "openstack://RegionOne" + rest
	case "vsphere":
		return "vsphere://" + strings.ToUpper(rest)
	}
	return providerID
}
