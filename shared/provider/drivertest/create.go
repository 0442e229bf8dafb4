// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var createTests = []test{
	{"create makes an instance that carries the tags", func(t *testing.T, c *cloud) {
		r := c.ref()
		i := c.launch(t, r)
		if i.ID == "" || i.ProviderID == "" || i.UID != r.UID || i.Name != r.Name || i.Type == "" && !c.OwnNames || i.CloudState == "" || i.Child {
			t.Errorf("Create(%+v) = %+v", r, i)
		}
		if i.State != provider.StatePending && i.State != provider.StateRunning {
			t.Errorf("a new instance is %q", i.State)
		}
	}},
	{"what is made carries the mark of its cluster", func(t *testing.T, c *cloud) {
		r, mark := c.ref(), c.Account.ClusterUID
		if first, err := c.Create(t.Context(), r, c.resolved); err == nil && first.State == provider.StateIncomplete {
			for _, i := range c.list(t) { // what a step made, if it shows
				if i.ClusterUID != mark {
					t.Errorf("a step made %+v, want the mark %s", i, mark)
				}
			}
		}
		c.launch(t, r)
		for what, all := range map[string][]provider.Instance{"found": c.find(t, r), "listed": c.list(t)} {
			for _, i := range all {
				if i.ClusterUID != mark {
					t.Errorf("%s %+v, want the mark %s", what, i, mark)
				}
			}
		}
	}},
	{"a mark of another cluster with the same id hides nothing", func(t *testing.T, c *cloud) {
		r, a := c.ref(), c.Account
		made, mark := c.launch(t, r), a.ClusterUID
		a.ClusterUID = uuid.NewUUID()
		d, err := c.Provider.Open(t.Context(), a)
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		c.eventually(t, "the other cluster lists it, with the mark that it carries", func() bool {
			all, err := d.List(t.Context())
			if err != nil {
				t.Fatalf("List: %v", err)
			}
			return slices.ContainsFunc(all, func(i provider.Instance) bool { return i.ID == made.ID && i.ClusterUID == mark })
		})
	}},
	{"create repeated makes nothing more", func(t *testing.T, c *cloud) {
		c.needTokens(t)
		r := c.ref()
		first := c.launch(t, r)
		for range 3 {
			again, err := c.create(t.Context(), r)
			if err != nil || again.ID != first.ID {
				t.Errorf("Create again = %s, %v, want %s", again.ID, err, first.ID)
			}
		}
		c.wantInstances(t, 1)
	}},
	{"create at the same time makes one instance", func(t *testing.T, c *cloud) {
		c.needTokens(t)
		r := c.ref()
		made, late := together(t, 8, func() (provider.Instance, error) { return c.create(t.Context(), r) })
		if len(made) == 0 && !late {
			t.Error("none of eight made an instance")
		}
		last := c.launch(t, r)
		if c.Losers {
			c.eventually(t, "one instance does not fail", func() bool {
				return len(slices.DeleteFunc(c.list(t), func(i provider.Instance) bool { return i.State == provider.StateFailed })) == 1
			})
			c.remove(t, provider.Ref{UID: r.UID})
			c.wantInstances(t, 0)
			return
		}
		made[last.ID]++ // who comes later, alone, gets the same
		if len(made) != 1 {
			t.Fatalf("one token made %v", made)
		}
		c.wantInstances(t, 1)
	}},
	{"a creation goes on from its progress", func(t *testing.T, c *cloud) {
		r := c.ref()
		first := c.firstStep(t, r)
		r.Progress = first.Progress
		i := c.launch(t, r)
		c.wantInstances(t, 1)
		c.remove(t, provider.Ref{UID: r.UID, ID: i.ID})
		c.wantInstances(t, 0)
	}},
	{"a creation whose progress is lost goes on", func(t *testing.T, c *cloud) {
		c.needTokens(t)
		r := c.ref()
		c.firstStep(t, r)
		c.launch(t, r)
		c.wantInstances(t, 1)
	}},
	{"two attempts of a machine are told apart", func(t *testing.T, c *cloud) {
		if c.OnePerMachine {
			t.Skip("the cloud holds one instance of a machine at a time")
		}
		r := c.ref()
		one, two := c.launch(t, r), c.launch(t, c.attempt(r, 2))
		if one.ID == two.ID {
			t.Fatalf("two attempts made one instance: %+v", one)
		}
		tokens := map[string]string{}
		for _, i := range c.find(t, r) {
			tokens[i.ID] = i.Token
		}
		if len(tokens) != 2 || tokens[one.ID] == tokens[two.ID] {
			t.Errorf("found tokens by id: %v", tokens)
		}
	}},
	{"two machines of one name are two instances", func(t *testing.T, c *cloud) {
		if c.UniqueNames {
			t.Skip("the cloud holds one instance of a name at a time")
		}
		a, b := c.ref(), c.ref()
		b.Name = a.Name
		one, two := c.launch(t, a), c.launch(t, b)
		if found := c.find(t, a); len(found) != 1 || found[0].ID != one.ID || one.ID == two.ID {
			t.Errorf("found %+v for %s, beside %s", found, one.ID, two.ID)
		}
	}},
	{"a token never makes a second instance", func(t *testing.T, c *cloud) {
		c.needTokens(t)
		if c.TokensReused {
			t.Skip("the cloud forgets tokens")
		}
		r := c.ref()
		c.launch(t, r)
		c.remove(t, provider.Ref{UID: r.UID})
		if i, err := c.create(t.Context(), r); err == nil {
			t.Errorf("Create with the token of an instance that was removed = %+v", i)
		} else {
			wantClassified(t, err)
		}
		c.wantInstances(t, 0)
	}},
	{"the next attempt works after a removal", func(t *testing.T, c *cloud) {
		r := c.ref()
		c.launch(t, r)
		c.remove(t, provider.Ref{UID: r.UID})
		c.launch(t, c.attempt(r, 2))
		c.wantInstances(t, 1)
	}},
}

func (c *cloud) needTokens(t *testing.T) {
	t.Helper()
	if !c.tokens() {
		t.Skip("the cloud has no tokens")
	}
}

// firstStep makes the first step of a creation that has several.
func (c *cloud) firstStep(t *testing.T, r provider.Ref) provider.Instance {
	t.Helper()
	i, err := c.Create(t.Context(), r, c.resolved)
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	if i.State != provider.StateIncomplete {
		t.Skip("the cloud creates in one step")
	}
	if len(i.Progress) == 0 || i.UID != r.UID {
		t.Fatalf("first step = %+v, want progress", i)
	}
	return i
}

// wantInstances waits until the list shows n instances, with no leftover child, and wants it to stay so.
func (c *cloud) wantInstances(t *testing.T, n int) {
	t.Helper()
	c.eventually(t, "the list is as long as it should be", func() bool { return len(c.list(t)) == n })
	if c.Lag > 0 {
		time.Sleep(c.Lag + c.Pace)
	}
	if all := c.list(t); len(all) != n {
		t.Errorf("list has %+v, want %d", all, n)
	}
}
