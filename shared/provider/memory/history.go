// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// What happened to an instance or a port.
type What string

// What can happen.
const (
	Created  What = "created"
	Deleted  What = "deleted"  // was asked to go; Gone says when it is
	Vanished What = "vanished" // went without being asked
	Cycled   What = "cycled"   // was powered off and on
)

// Event is one line of a cloud's history.
type Event struct {
	At      time.Time
	What    What
	ID      string
	UID     types.UID
	Token   string
	Name    string
	Account string
	Child   bool
	Gone    time.Time // of Deleted and Vanished: when it no longer exists
}

// History returns everything that was ever made and removed, in order.
func (c *Cloud) History() []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.history)
}

// Most returns how many instances of one Machine ever existed at the same time.
func (c *Cloud) Most(uid types.UID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := 0
	for _, t := range c.all {
		if t.UID == uid && !t.Child {
			together := c.existing(t.Created, func(o *thing) bool { return o.UID == uid && !o.Child })
			most = max(most, len(together))
		}
	}
	return most
}

func (c *Cloud) record(t *thing, what What, at time.Time) {
	c.history = append(c.history, Event{
		At: at, What: what, ID: t.ID, UID: t.UID, Token: t.Token, Name: t.Name, Account: t.account, Child: t.Child, Gone: t.removed,
	})
}

// InstanceOf returns the one instance of a Machine that exists now; false if there is none, or more than one.
func (c *Cloud) InstanceOf(uid types.UID) (provider.Instance, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.existing(c.now(), func(t *thing) bool { return t.UID == uid && !t.Child })
	if len(all) != 1 {
		return provider.Instance{}, false
	}
	return all[0], true
}

// Since returns what happened after the first n events of the history.
func (c *Cloud) Since(n int) []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.history[min(n, len(c.history)):])
}

// Backup returns what makes the cloud what it is now.
func (c *Cloud) Backup() (restore func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := make([]thing, 0, len(c.all))
	for _, t := range c.all {
		kept = append(kept, *t)
	}
	tokens := map[string]string{}
	for key, t := range c.byToken {
		tokens[key] = t.ID
	}
	ports, history := maps.Clone(c.ports), slices.Clone(c.history)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all, c.byID, c.byToken, c.ports, c.history = nil, map[string]*thing{}, map[string]*thing{}, map[string][]string{}, slices.Clone(history)
		for _, t := range kept {
			c.all = append(c.all, &t)
			c.byID[t.ID] = &t
		}
		for key, id := range tokens {
			c.byToken[key] = c.byID[id]
		}
		maps.Copy(c.ports, ports)
	}
}
