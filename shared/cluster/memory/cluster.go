// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Observe implements cluster.Cluster. All queries of one call see the same moment.
func (c *Cluster) Observe(ctx context.Context, s snapshot.Snapshot, queries []snapshot.Query) (snapshot.Snapshot, error) {
	seen := s.Clone()
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	for _, q := range queries {
		if err := c.answer(ctx, &seen, q); err != nil {
			return s, err
		}
	}
	return seen.Answered(queries...), nil
}

// Answer answers one query into a snapshot that nobody else sees yet, and does not mark it as answered.
func (c *Cluster) Answer(ctx context.Context, seen *snapshot.Snapshot, q snapshot.Query) error {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	return c.answer(ctx, seen, q)
}

func (c *Cluster) answer(ctx context.Context, seen *snapshot.Snapshot, q snapshot.Query) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, ok := plan.ResourceOf(q.Kind)
	if !ok {
		return fmt.Errorf("observe %q: not a kind that functions know", q.Kind)
	}
	if q.Labels != "" {
		if _, err := labels.Parse(q.Labels); err != nil {
			return fmt.Errorf("observe %s: %w", q.Kind, err)
		}
	}
	for _, q.Namespace = range cluster.Namespaces(q, c.namespaces) {
		seen.Drop(q)
		seen.Add(c.found(r, q)...)
	}
	seen.Now, seen.Served = c.server.now(), c.namespaces
	return nil
}

func (c *Cluster) found(r plan.Resource, q snapshot.Query) (all []plan.Object) {
	if q.Name != "" && (q.Namespace != "" || !r.Namespaced) {
		c.server.access(c.actor, "get", r, "", q.Namespace)
		if o, ok := c.server.objects[r.Kind][name{q.Namespace, q.Name}]; ok && q.Selects(o) {
			all = append(all, c.server.out(o))
		}
		return all
	}
	c.server.access(c.actor, "list", r, "", q.Namespace)
	for _, at := range c.server.names(r.Kind) {
		if o := c.server.objects[r.Kind][at]; q.Selects(o) {
			all = append(all, c.server.out(o))
		}
	}
	return all
}

// out returns o for a reader.
func (s *Server) out(o plan.Object) plan.Object {
	if s.Trusting {
		return o
	}
	return copyOf(o)
}

// Apply implements cluster.Cluster.
func (c *Cluster) Apply(ctx context.Context, a plan.Action) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	switch a := a.(type) {
	case plan.Create:
		r, at, err := of(a.Object)
		if err != nil {
			return err
		}
		return s.wrote(c.actor, "create", r, "", at, s.create(r, a.Object))
	case plan.Update:
		return c.patch(a.Old, a.New, "")
	case plan.UpdateStatus:
		return c.patch(a.Old, a.New, "status")
	case plan.Delete:
		return c.remove(a)
	case plan.Evict:
		r, at, err := of(a.Pod)
		if err != nil {
			return err
		}
		return s.wrote(c.actor, "create", r, "eviction", at, s.evict(at, deletion{uid: a.Pod.UID, grace: a.GraceSeconds}))
	case plan.Approve:
		return c.patch(a.Request, s.dated(a.Approved()), "approval")
	case plan.CreateInstance, plan.DeleteInstance, plan.UpdateInstance, plan.PowerCycle:
	}
	return fmt.Errorf("%T is not an action on objects", a)
}

func (c *Cluster) remove(a plan.Delete) error {
	r, at, err := of(a.Object)
	if err != nil {
		return err
	}
	d := deletion{uid: a.Object.GetUID()}
	if a.IfUnchanged {
		d.version = a.Object.GetResourceVersion()
	}
	return c.server.wrote(c.actor, "delete", r, "", at, c.server.delete(r, at, d))
}

// patch applies the very bytes that package kube sends.
func (c *Cluster) patch(before, after plan.Object, subresource string) error {
	r, at, err := of(before)
	if err != nil {
		return err
	}
	if n := c.server.adopted(r, at, before, after, subresource); n != nil {
		return c.adopt(r, at, before, n, subresource)
	}
	body, err := plan.MergePatch(before, after, subresource != "")
	if err != nil || body == nil {
		return err
	}
	var change map[string]any
	if err := json.Unmarshal(body, &change); err != nil {
		return err
	}
	return c.server.wrote(c.actor, "patch", r, subresource, at, c.server.patch(r, at, change))
}

// Tell implements cluster.Cluster.
func (c *Cluster) Tell(ctx context.Context, n plan.Note) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := cluster.Event(n, c.actor, s.now())
	if err != nil {
		return err
	}
	at := name{e.Namespace, e.Name}
	if wrong := validation.NameIsDNSSubdomain(e.Name, false); len(wrong) > 0 {
		return s.wrote(c.actor, "create", events, "", at, refuse(fmt.Errorf("event %q: %s", e.Name, wrong[0])))
	}
	if told, ok := s.events[at]; ok {
		told.Count++
		told.LastTimestamp = e.LastTimestamp
		told.ResourceVersion = s.next()
		s.access(c.actor, "create", events, "", at.namespace) // which is how the real client finds out
		s.access(c.actor, "get", events, "", at.namespace)
		return s.wrote(c.actor, "patch", events, "", at, nil)
	}
	e.UID, e.ResourceVersion = s.uid(), s.next()
	e.CreationTimestamp = e.FirstTimestamp
	s.events[at] = e
	return s.wrote(c.actor, "create", events, "", at, nil)
}

// Ready is always nil.
func (c *Cluster) Ready(context.Context) error { return nil }

// Secret implements cluster.Cluster.
func (c *Cluster) Secret(ctx context.Context, namespace, secret string) (map[string][]byte, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.access(c.actor, "get", secrets, "", namespace)
	found, ok := s.secrets[name{namespace, secret}]
	if !ok {
		return nil, "", fmt.Errorf("secret %s/%s: %w", namespace, secret, cluster.ErrGone)
	}
	return found.DeepCopy().Data, found.ResourceVersion, nil
}

// Resources beside those that functions observe.
var (
	events  = plan.Resource{Kind: "Event", Group: schema.GroupVersion{Version: "v1"}, Plural: "events", Namespaced: true}
	secrets = plan.Resource{Kind: "Secret", Group: schema.GroupVersion{Version: "v1"}, Plural: "secrets", Namespaced: true}
)

func of(o plan.Object) (plan.Resource, name, error) {
	r, ok := plan.ResourceOf(plan.KindOf(o))
	if !ok {
		return r, name{}, fmt.Errorf("%T is not a kind that functions know", o)
	}
	return r, name{o.GetNamespace(), o.GetName()}, nil
}

func copyOf(o plan.Object) plan.Object {
	c, _ := o.DeepCopyObject().(plan.Object)
	return c
}
