// SPDX-License-Identifier: Apache-2.0

// Package memory is a cloud in a map whose manners can be chosen: for tests, simulations, demonstrations.
package memory

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Kind is the kind of providerSpec that a Cloud serves.
const Kind = "MemoryMachineProviderSpec"

// defaultHorizon covers an invocation, with nothing that lags.
const defaultHorizon = 24 * time.Second

// Cloud is a cloud that several accounts share. The zero Cloud is well-behaved: idempotent by token, at once
// consistent, never short of anything. Its fields are set before the first call.
type Cloud struct {
	Untokened bool          // every Create that is repeated makes another instance
	Lag       time.Duration // Find, List and Delete see the cloud as it was so long ago
	Ports     int           // ports that are made before the instance, one with each Create
	Boot      time.Duration // from creation to running
	Removal   time.Duration // from Delete to gone
	Hold      time.Duration // from PowerOff to off; 0: power cannot be held off
	Window    time.Duration // the Horizon; 24 s more than Lag if 0
	Networks  []string      // that a spec may name; any if empty
	Types     []provider.InstanceType
	// Clock is time.Now if nil.
	Clock func() time.Time
	// Local is the clock of those who call, by which a driver judges what they remember; Clock if nil.
	Local func() time.Time
	// Fault, if set, is asked before and after the effect of every call; the error that it returns is the call's
	// answer. It is called concurrently and may block.
	Fault func(ctx context.Context, c Call) error
	// Behind, if set, says how far what one call sees lies back; it is at most Lag, which is otherwise the answer.
	Behind func(ctx context.Context, c Call) time.Duration
	// Shown, if set, says what a List, or a Find, answers of what there is.
	Shown func(ctx context.Context, c Call, all []provider.Instance) []provider.Instance

	mu      sync.Mutex
	all     []*thing // instances and ports in the order in which they were made, those that are gone too
	byID    map[string]*thing
	byToken map[string]*thing   // instances; by account, cluster and token
	ports   map[string][]string // made so far for a token that has no instance yet
	stock   map[string]int      // by type; absent: no limit
	history []Event
}

// Op is a method of a Driver.
type Op string

// The methods that a fault can strike.
const (
	OpResolve       Op = "resolve"
	OpCreate        Op = "create"
	OpFind          Op = "find"
	OpList          Op = "list"
	OpDelete        Op = "delete"
	OpInstanceTypes Op = "types"
	OpUpdate        Op = "update"
	OpPowerCycle    Op = "power-cycle"
	OpPowerOff      Op = "power-off"
	OpPowerOn       Op = "power-on"
)

// Call is one call to the cloud, as a fault sees it.
type Call struct {
	Op      Op
	Account string // key of the account
	Ref     provider.Ref
	After   bool // the effect has happened
}

// thing is an instance or a port.
type thing struct {
	provider.Instance
	account, cluster string
	ports            []string       // ids of those that belong to the instance
	owned            bool           // a port that belongs to an instance
	removed          time.Time      // when it is gone; zero while nobody asked
	override         provider.State // set by hand
	held             time.Time      // when its power was cut; zero while it is on
}

// Open binds a driver to an account of this cloud.
func (c *Cloud) Open(_ context.Context, a provider.Account) (provider.Driver, error) {
	if a.ClusterID == "" {
		return nil, provider.Errorf(provider.Invalid, "open account %s: the cluster id is empty", a.Key())
	}
	d := &driver{cloud: c, account: a.Key(), cluster: a.ClusterID, mark: a.ClusterUID, region: a.Region}
	if c.Untokened {
		return untokened{d}, nil
	}
	return d, nil
}

// Provider is this cloud's line in a table of drivers.
func (c *Cloud) Provider() provider.Provider {
	return provider.Provider{Name: "memory", Kinds: []string{Kind}, Account: account, InstanceType: instanceType, Open: c.Open}
}

// SetStock limits how many instances of a type may exist at a time; a negative number lifts the limit.
func (c *Cloud) SetStock(instanceType string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stock == nil {
		c.stock = map[string]int{}
	}
	c.stock[instanceType] = n
	if n < 0 {
		delete(c.stock, instanceType)
	}
}

// SetState makes an instance say that it is in a state, whatever Boot would make of it: stopped, failed, or running
// again. It reports whether the instance exists.
func (c *Cloud) SetState(id string, s provider.State) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.byID[id]
	if !ok || t.gone(c.now()) {
		return false
	}
	t.override = s
	return true
}

// Vanish takes an instance away with its ports, as a cloud that loses it. It reports whether the instance existed.
func (c *Cloud) Vanish(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	t, ok := c.byID[id]
	if !ok || t.gone(now) {
		return false
	}
	c.remove(t, now, Vanished)
	return true
}

// Add puts an instance there that no Create made; its tags are those of the arguments, and may be empty. It returns
// the id.
func (c *Cloud) Add(account, cluster string, i provider.Instance) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(&thing{Instance: i, account: account, cluster: cluster}, "i").ID
}

// Instances returns what exists now, whatever Lag lets others see: ports that belong to an instance too, in the order
// in which they were made.
func (c *Cloud) Instances() []provider.Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.existing(c.now(), func(*thing) bool { return true })
}

// local returns the time where the driver runs.
func (c *Cloud) local() time.Time {
	if c.Local == nil {
		return c.now()
	}
	return c.Local()
}

func (c *Cloud) now() time.Time {
	if c.Clock == nil {
		return time.Now()
	}
	return c.Clock()
}

// add gives t an id, a provider id and addresses. The caller holds the lock.
func (c *Cloud) add(t *thing, prefix string) *thing {
	if c.byID == nil {
		c.byID, c.byToken, c.ports = map[string]*thing{}, map[string]*thing{}, map[string][]string{}
	}
	n := len(c.all) + 1
	t.ID, t.Created = fmt.Sprintf("%s-%06d", prefix, n), c.now()
	if !t.Child {
		t.ProviderID, t.Addresses = "memory:///"+t.ID, addresses(t.Name, n)
	}
	c.all = append(c.all, t)
	c.byID[t.ID] = t
	c.record(t, Created, t.Created)
	return t
}

// existing returns what is there at a time and satisfies keep, in the order in which it was made. The caller holds the
// lock.
func (c *Cloud) existing(at time.Time, keep func(*thing) bool) []provider.Instance {
	var out []provider.Instance
	for _, t := range c.all {
		if !t.Created.After(at) && !t.gone(at) && keep(t) {
			out = append(out, c.view(t, at))
		}
	}
	return out
}

// remove lets t, with the ports that belong to it, be gone at a time. The caller holds the lock.
func (c *Cloud) remove(t *thing, at time.Time, what What) {
	if t.removed.IsZero() || at.Before(t.removed) {
		t.removed = at
		c.record(t, what, c.now())
	}
	for _, id := range t.ports {
		c.remove(c.byID[id], at, what)
	}
}

// gone reports whether t no longer exists at a time.
func (t *thing) gone(at time.Time) bool { return !t.removed.IsZero() && !at.Before(t.removed) }

// view returns t as the cloud tells of it at a time. The caller holds the lock.
func (c *Cloud) view(t *thing, at time.Time) provider.Instance {
	i := t.Instance
	i.Addresses = slices.Clone(i.Addresses)
	switch {
	case !t.removed.IsZero():
		i.State = provider.StateDeleting
	case !t.held.IsZero() && !at.Before(t.held.Add(c.Hold)):
		i.State = provider.StateStopped
	case t.override != "":
		i.State = t.override
	case at.Before(t.Created.Add(c.Boot)):
		i.State = provider.StatePending
	default:
		i.State = provider.StateRunning
	}
	i.CloudState = string(i.State)
	if c.Hold > 0 && !t.Child {
		i.Power = provider.PowerOn
	}
	if !t.held.IsZero() {
		i.Power = provider.PowerHeld
	}
	return i
}

// addresses returns those of the n-th thing: its name before its node registers (SPEC B83).
func addresses(name string, n int) []corev1.NodeAddress {
	return []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}).String()},
		{Type: corev1.NodeInternalDNS, Address: name},
		{Type: corev1.NodeHostName, Address: name},
	}
}
