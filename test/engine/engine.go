// SPDX-License-Identifier: Apache-2.0

// Package engine is an oVirt engine for tests: the wire is that of the REST API, version 4, in JSON and in XML; what it does is what
// docs/ovirt-semantics.md quotes.
package engine

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// What an administrator has made for Machines.
const (
	DataCenter    = "5a0e0001-0000-4000-8000-000000000001"
	Cluster       = "5a0e0002-0000-4000-8000-000000000001" // in DataCenter
	Elsewhere     = "5a0e0002-0000-4000-8000-000000000002" // a cluster of another data center
	Template      = "rhcos"                                // of both, with a disk of 16 GiB
	Walk          = "cluster-a389-fmxsv-rhcos"             // the walk-through's, of Cluster
	Profile       = "5a0e0004-0000-4000-8000-000000000001"
	OtherProfile  = "5a0e0004-0000-4000-8000-000000000002"
	StorageDomain = "5a0e0005-0000-4000-8000-000000000001"
	InstanceType  = "5a0e0006-0000-4000-8000-000000000001" // 4 CPUs, 16 GiB
	Group         = "workers"                              // an affinity group of Cluster
	User          = "machines@internal"
)

const gib = 1 << 30

// Engine is one engine. Its fields are set before it serves.
type Engine struct {
	Password string        // of User; empty: any
	Lock     time.Duration // how long disks are being made or resized
	Boot     time.Duration // from wait_for_launch to up
	Halt     time.Duration // from powering_down to down
	Expires  time.Duration // of a token; 0: never
	Texts    bool          // numbers and truths are written as text, as some versions do

	mu        sync.Mutex
	now       func() time.Time
	next      int
	due       []event
	tokens    map[string]time.Time
	instances []*instance // in the order of their creation
	disks     []*disk
	templates []*template
	tags      []*tag
	groups    []*group
	members   map[string][]string // of affinity groups
	calls     []string
	full      bool
	busy      bool
	spoils    bool
	leaks     bool
	frozen    bool
	saves     bool
	old       bool
}

// event is what happens by itself.
type event struct {
	at time.Time
	do func()
}

type template struct {
	id, name, cluster, status string
	version                   int
	disks                     []*disk
	cards                     []*card
}

type group struct{ id, name, cluster string }

type tag struct{ id, name string }

type disk struct {
	id, alias, description, status, format string
	size                                   int64
	sparse, bootable                       bool
	domain                                 string
}

type card struct{ id, name, profile, mac string }

type instance struct {
	id, name, cluster, template, status string
	fields                              content // as they were asked for
	disks                               []*disk
	cards                               []*card
	tags                                []string
	ip                                  string
	created                             time.Time
	pinned                              bool
}

// New returns an engine that has what an administrator makes, and no instance.
func New() *Engine {
	e := &Engine{now: time.Now, tokens: map[string]time.Time{}, members: map[string][]string{}}
	for n, of := range []struct{ name, cluster string }{{Template, Cluster}, {Template, Elsewhere}, {Walk, Cluster}} {
		d := &disk{id: e.id(7), alias: "rhcos", status: "ok", format: "cow", size: 16 * gib, sparse: true, bootable: true}
		e.templates = append(e.templates, &template{
			id: fmt.Sprintf("5a0e0003-0000-4000-8000-%012d", n+1), name: of.name, cluster: of.cluster, status: "ok", version: 1,
			disks: []*disk{d}, cards: []*card{{id: e.id(8), name: "nic1", profile: OtherProfile}},
		})
	}
	e.groups = []*group{{e.id(9), Group, Cluster}, {e.id(9), "infra", Cluster}}
	return e
}

// id returns an id that nothing else has.
func (e *Engine) id(kind int) string {
	e.next++
	return fmt.Sprintf("5a0e%04d-0000-4000-9000-%012d", kind, e.next)
}

// fault is a refusal.
type fault struct {
	status         int
	reason, detail string
}

// failed is the fault of an operation that the engine's state stands against.
func failed(format string, args ...any) *fault {
	return &fault{http.StatusConflict, "Operation Failed", "[" + fmt.Sprintf(format, args...) + "]"}
}

func absent(what string) *fault {
	return &fault{http.StatusNotFound, "Operation Failed", "Entity not found: " + what}
}

func unread(format string, args ...any) *fault {
	return &fault{http.StatusBadRequest, "Incomplete parameters", fmt.Sprintf(format, args...)}
}

// after lets something happen in a while.
func (e *Engine) after(d time.Duration, do func()) {
	e.due = append(e.due, event{e.now().Add(d), do})
}

// catchUp lets happen what is due, in its order.
func (e *Engine) catchUp() {
	for {
		first := -1
		for n, it := range e.due {
			if !it.at.After(e.now()) && (first < 0 || it.at.Before(e.due[first].at)) {
				first = n
			}
		}
		if first < 0 {
			return
		}
		it := e.due[first]
		e.due = slices.Delete(e.due, first, first+1)
		it.do()
	}
}

// Fill takes the room for instances away, or gives it back.
func (e *Engine) Fill(full bool) { e.set(&e.full, full) }

// Busy takes the room on hosts away, or gives it back: nothing starts meanwhile.
func (e *Engine) Busy(busy bool) { e.set(&e.busy, busy) }

// Spoil lets the disks of what is made fail, whereupon the engine removes the instance again.
func (e *Engine) Spoil(spoils bool) { e.set(&e.spoils, spoils) }

// Leak lets disks outlive their instances.
func (e *Engine) Leak(leaks bool) { e.set(&e.leaks, leaks) }

// Save begins a backup of every virtual machine, or ends it: nothing is stopped meanwhile, but by force.
func (e *Engine) Save(saves bool) { e.set(&e.saves, saves) }

// Freeze lets no virtual machine be edited, or lets them again: the engine judges the whole of one whatever is changed of it.
func (e *Engine) Freeze(frozen bool) { e.set(&e.frozen, frozen) }

// Age lets clusters be of a compatibility level before 4.6, which knows no reset, or again of a later one.
func (e *Engine) Age(old bool) { e.set(&e.old, old) }

func (e *Engine) set(field *bool, value bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	*field = value
}

// Forget ends every token.
func (e *Engine) Forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.tokens)
}

// Tokens returns how many tokens there are.
func (e *Engine) Tokens() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.tokens)
}

// Calls returns what was asked for: method, and path below the API with "*" for each id.
func (e *Engine) Calls() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.calls)
}

// Writes returns how many changes were asked for.
func (e *Engine) Writes() (n int) {
	for _, c := range e.Calls() {
		if c != "POST token" && !strings.HasPrefix(c, "GET ") {
			n++
		}
	}
	return n
}

// Known is what a test sees of an instance.
type Known struct {
	ID, Name, Comment, Status, Template string
	Fields                              map[string]any // of the request that made it
	Disks, Tags, Groups, Profiles       []string
	Sizes                               []int64
	Pinned                              bool
}

// Instances returns all there are.
func (e *Engine) Instances() (all []Known) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.catchUp()
	for _, i := range e.instances {
		k := Known{ID: i.id, Name: i.name, Comment: text(i.fields, "comment"), Status: i.status, Template: i.template, Fields: i.fields, Tags: slices.Clone(i.tags), Pinned: i.pinned}
		for _, d := range i.disks {
			k.Disks, k.Sizes = append(k.Disks, d.id), append(k.Sizes, d.size)
		}
		for _, c := range i.cards {
			k.Profiles = append(k.Profiles, c.profile)
		}
		for _, g := range e.groups {
			if slices.Contains(e.members[g.id], i.id) {
				k.Groups = append(k.Groups, g.name)
			}
		}
		all = append(all, k)
	}
	return all
}

// Disks returns the ids of all disks but those of templates.
func (e *Engine) Disks() (all []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.catchUp()
	for _, d := range e.disks {
		all = append(all, d.id)
	}
	return all
}

// Make makes an instance as another system does: with a name, a comment, tags, and running.
func (e *Engine) Make(name, comment string, tags ...string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := &disk{id: e.id(7), alias: name, status: "ok", format: "cow", size: 16 * gib, bootable: true}
	i := &instance{
		id: e.id(1), name: name, cluster: Cluster, template: e.templates[0].id, status: "up", fields: content{"comment": comment}, disks: []*disk{d}, tags: tags, created: e.now(),
	}
	for _, t := range tags {
		e.tagOf(t)
	}
	e.disks, e.instances = append(e.disks, d), append(e.instances, i)
	return i.id
}

// Attach gives an instance another disk, as a volume of a Pod, and returns its id.
func (e *Engine) Attach(id string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := &disk{id: e.id(7), alias: "pvc-1", status: "ok", format: "cow", size: gib}
	e.disks = append(e.disks, d)
	if i := e.instance(id); i != nil {
		i.disks = append(i.disks, d)
	}
	return d.id
}

// Float makes a disk that is attached to nothing, and returns its id. The description may name it: %s stands for the id.
func (e *Engine) Float(alias, description string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := &disk{id: e.id(7), alias: alias, status: "ok", format: "cow", size: gib}
	d.description = strings.ReplaceAll(description, "%s", d.id)
	e.disks = append(e.disks, d)
	return d.id
}

// Set gives an instance a status, or a comment if that is not empty.
func (e *Engine) Set(id, status, comment string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.catchUp()
	i := e.instance(id)
	if i == nil {
		return
	}
	if status != "" {
		i.status = status
	}
	if comment != "" {
		i.fields["comment"] = comment
	}
}

// Protect lets nobody remove an instance.
func (e *Engine) Protect(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := e.instance(id); i != nil {
		i.fields["delete_protected"] = "true"
	}
}

func (e *Engine) instance(id string) *instance {
	n := slices.IndexFunc(e.instances, func(i *instance) bool { return i.id == id })
	if n < 0 {
		return nil
	}
	return e.instances[n]
}

func (e *Engine) tagOf(name string) *tag {
	n := slices.IndexFunc(e.tags, func(t *tag) bool { return t.name == name })
	if n < 0 {
		e.tags = append(e.tags, &tag{e.id(10), name})
		n = len(e.tags) - 1
	}
	return e.tags[n]
}
