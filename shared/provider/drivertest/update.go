// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"maps"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// updateTests hold a driver that can change tags to what it promises; the others skip them.
var updateTests = []test{
	{"tags are added and changed", func(t *testing.T, c *cloud) {
		updater := c.updater(t)
		r := c.ref()
		before := c.started(t, r)
		r.ID, r.ProviderID = before.ID, before.ProviderID
		steps := c.Tags
		if steps == nil {
			steps = []map[string]string{{"team": "a"}, {"team": "a"}, {"cost": "7"}, {"team": "b"}}
		}
		want := map[string]string{}
		maps.Copy(want, before.Tags)
		for _, tags := range steps {
			if err := updater.Update(t.Context(), r, tags); err != nil {
				t.Fatalf("Update %v: %v", tags, err)
			}
			maps.Copy(want, tags)
			c.eventually(t, "the tags are told", func() bool {
				found, listed := c.find(t, r), c.list(t)
				return len(found) == 1 && maps.Equal(found[0].Tags, want) && len(listed) == 1 && maps.Equal(listed[0].Tags, want)
			})
		}
		after := c.find(t, r)[0]
		if after.ID != before.ID || after.UID != before.UID || after.Token != before.Token || after.Name != before.Name {
			t.Errorf("it is %+v now, was %+v", after, before)
		}
	}},
	{"update of what is not there is NotFound", func(t *testing.T, c *cloud) {
		updater := c.updater(t)
		r := c.ref()
		tags := map[string]string{"team": "a"}
		wantCode(t, updater.Update(t.Context(), r, tags), provider.NotFound)
		c.launch(t, r)
		c.remove(t, r)
		wantCode(t, updater.Update(t.Context(), r, tags), provider.NotFound)
	}},
	{"update never takes another machine's instance for its id", func(t *testing.T, c *cloud) {
		updater := c.updater(t)
		mine, theirs := c.ref(), c.launch(t, c.ref())
		ref := provider.Ref{UID: mine.UID, ID: theirs.ID, ProviderID: theirs.ProviderID}
		wantCode(t, updater.Update(t.Context(), ref, map[string]string{"team": "a"}), provider.NotFound)
	}},
}

func (c *cloud) updater(t *testing.T) provider.Updater {
	t.Helper()
	updater, can := c.Driver.(provider.Updater)
	if !can {
		t.Skip("the cloud cannot change tags")
	}
	return updater
}
