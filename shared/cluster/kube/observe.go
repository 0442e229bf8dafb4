// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/flights"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	// pageSize is how many objects one request of a list returns: client-go's number, small enough for the server to
	// answer within requestTimeout when busy.
	pageSize = 500
	// maxListings bounds how often a list is begun anew because the server forgot the revision of its first page.
	maxListings = 4
	// notServedFor is how long a kind that a deployment may do without is not asked for again once the server proved not
	// to serve it.
	notServedFor = time.Minute
	// versionPath is what every account may ask for.
	versionPath = "/version"
)

// Observe asks one query after the other, because their order is promised. It never sets resourceVersion: every
// answer is as fresh as the storage (RELIABILITY G2).
func (c *Cluster) Observe(ctx context.Context, s snapshot.Snapshot, queries []snapshot.Query) (snapshot.Snapshot, error) {
	seen := s.Clone()
	seen.Served = c.Namespaces
	for _, q := range queries {
		r, ok := plan.ResourceOf(q.Kind)
		if !ok {
			return s, fmt.Errorf("observe %q: not a kind that functions know", q.Kind)
		}
		for _, q.Namespace = range cluster.Namespaces(q, c.Namespaces) {
			date, err := c.answer(ctx, r, q, &seen)
			if err != nil {
				return s, fmt.Errorf("observe %s: %w", plan.Name(q.Kind, q.Namespace, q.Name), err)
			}
			seen.Now = date
		}
	}
	return seen.Answered(queries...), nil
}

// answer puts what q selects in its namespace into seen, and returns the server's clock. Invocations that ask for the same
// list at the same time share one that began after they asked: a busy server is asked less, not more.
func (c *Cluster) answer(ctx context.Context, r plan.Resource, q snapshot.Query, seen *snapshot.Snapshot) (time.Time, error) {
	if q.Name != "" {
		objects, date, err := c.ask(ctx, r, q)
		if err == nil {
			seen.Drop(q)
			seen.Add(objects...)
		}
		return date, err
	}
	v := c.views[q]
	shared := q
	shared.Again = false // that is between the invocation and its snapshot
	l, err := c.lists.Do(ctx, shared, func(ctx context.Context) (l listing, err error) {
		if v != nil {
			l.objects, l.date, err = v.list(ctx, c, r)
		} else {
			l.objects, l.date, err = c.ask(ctx, r, q)
		}
		return l, err
	})
	switch {
	case errors.Is(err, flights.ErrLeft):
		return l.date, fmt.Errorf("%w: %w", err, ctx.Err())
	case err != nil:
		return l.date, err
	case v != nil:
		seen.Hold(q, l.objects)
	default:
		seen.Drop(q)
		seen.Add(l.objects...)
	}
	return l.date, nil
}

// ask reads what q selects in its namespace, with the server's clock.
func (c *Cluster) ask(ctx context.Context, r plan.Resource, q snapshot.Query) (all []plan.Object, date time.Time, err error) {
	v, _ := c.notServed.Load(r.Kind)
	if at, _ := v.(time.Time); time.Since(at) < notServedFor {
		return nil, c.now().UTC().Truncate(time.Second), nil
	}
	if q.Name != "" && (q.Namespace != "" || !r.Namespaced) {
		all, date, err = c.get(ctx, r, q)
	} else {
		all, date, err = c.list(ctx, r, q)
	}
	if at, absent := c.absent(ctx, r, err); absent {
		return nil, at, nil
	}
	if apierrors.IsForbidden(err) && plan.Foreign(r.Kind) {
		err = nil
	}
	if err == nil && date.IsZero() {
		err = errDateless
	}
	return all, date, err
}

// absent reports whether err means that the cluster has no such kind, where it may have none; and the server's clock.
func (c *Cluster) absent(ctx context.Context, r plan.Resource, err error) (time.Time, bool) {
	page, ok := errors.AsType[*pageError](err)
	if !ok || page.code != http.StatusNotFound || !cluster.Optional(r.Kind) {
		return time.Time{}, false
	}
	date, served := c.lacks(ctx, r)
	if served != nil {
		return date, false
	}
	if r.Kind == plan.LegacyHealthCheck || plan.Foreign(r.Kind) {
		c.notServed.Store(r.Kind, time.Now())
	}
	return date, true
}

// errDateless is about an answer of which nobody knows when it was true.
var errDateless = errors.New("the answer has no date")

// clean leaves out what no function wants to know: the kind, where the Go type says it, who wrote which field, and of a Node the images that
// it has, which are two thirds of it. Writes are merge patches: what is not known here stays as it is there.
func clean(o plan.Object) {
	if n, ok := o.(*corev1.Node); ok {
		n.Status.Images = nil
	}
	if _, untyped := o.(*unstructured.Unstructured); !untyped {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	o.SetManagedFields(nil)
}

// get reads one object. That it is not there is an answer, if the API server itself says so, or if no object can have its name: those
// are in what people write, tenants among them, and must keep nobody from the rest. Then only the time is asked for.
func (c *Cluster) get(ctx context.Context, r plan.Resource, q snapshot.Query) ([]plan.Object, time.Time, error) {
	at := address{group: r.Group, plural: r.Plural, namespace: q.Namespace, name: q.Name}
	if _, err := at.path(); err != nil {
		a, err := c.call(ctx, http.MethodGet, versionPath, nil, "", nil, typeJSON)
		if err == nil {
			_, err = a.protobuf() // a proxy's page is of the proxy's time
		}
		return nil, a.date, err
	}
	a, err := c.read(ctx, at, nil)
	if apierrors.IsNotFound(err) {
		return nil, a.date, nil
	}
	if err != nil {
		return nil, a.date, err
	}
	o := r.New()
	if err := a.object(r.GVK(), o); err != nil {
		return nil, a.date, err
	}
	if o.GetName() != q.Name || o.GetNamespace() != q.Namespace {
		return nil, a.date, fmt.Errorf("the answer is about %s", plan.NameOf(o)) // which proves nothing
	}
	if !q.Selects(o) {
		return nil, a.date, nil
	}
	clean(o)
	return []plan.Object{o}, a.date, nil
}

// list reads all pages at one revision, or fails.
func (c *Cluster) list(ctx context.Context, r plan.Resource, q snapshot.Query) (all []plan.Object, date time.Time, err error) {
	for range maxListings {
		all, date, err = c.pages(ctx, r, q)
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return all, date, err
		}
	}
	return nil, date, fmt.Errorf("begun %d times: %w", maxListings, err)
}

func (c *Cluster) pages(ctx context.Context, r plan.Resource, q snapshot.Query) (all []plan.Object, date time.Time, err error) {
	query := selectors(q)
	for {
		a, err := c.read(ctx, address{group: r.Group, plural: r.Plural, namespace: q.Namespace}, query)
		if err != nil {
			return nil, a.date, err
		}
		page, meta, err := a.page(r)
		if err != nil {
			return nil, a.date, err
		}
		for _, o := range page { // of each page: of all there would be twice as much for a moment
			clean(o)
		}
		all = append(all, page...)
		if meta.Continue == "" {
			return all, a.date, nil
		}
		query.Set("continue", meta.Continue)
	}
}

func selectors(q snapshot.Query) url.Values {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	if q.Labels != "" {
		query.Set("labelSelector", q.Labels)
	}
	switch {
	case q.Name != "":
		query.Set("fieldSelector", "metadata.name="+fields.EscapeValue(q.Name))
	case q.Kind == "Pod" && (q.Node != "" || q.Unbound):
		query.Set("fieldSelector", "spec.nodeName="+fields.EscapeValue(q.Node))
	}
	return query
}

// lacks succeeds if the API server does not serve r, proven by what it says it serves.
func (c *Cluster) lacks(ctx context.Context, r plan.Resource) (time.Time, error) {
	var groups metav1.APIGroupList
	date, err := c.discover(ctx, "/apis", &groups, "APIGroupList")
	if err != nil {
		return date, err
	}
	if !slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool {
		return g.Name == r.Group.Group && slices.ContainsFunc(g.Versions, func(v metav1.GroupVersionForDiscovery) bool {
			return v.Version == r.Group.Version
		})
	}) {
		return date, nil
	}
	var resources metav1.APIResourceList
	date, err = c.discover(ctx, "/apis/"+r.Group.String(), &resources, "APIResourceList")
	if err != nil {
		return date, err
	}
	if slices.ContainsFunc(resources.APIResources, func(s metav1.APIResource) bool { return s.Name == r.Plural }) {
		return date, fmt.Errorf("%s is served", r.Plural)
	}
	return date, nil
}

func (c *Cluster) discover(ctx context.Context, path string, into runtime.Object, kind string) (time.Time, error) {
	a, err := c.call(ctx, http.MethodGet, path, nil, "", nil, typeJSON)
	if err != nil {
		return a.date, err
	}
	return a.date, a.object(schema.GroupVersionKind{Version: "v1", Kind: kind}, into)
}

// Secret reads one Secret. No error holds any of it.
func (c *Cluster) Secret(ctx context.Context, namespace, name string) (data map[string][]byte, version string, err error) {
	group := corev1.SchemeGroupVersion
	a, err := c.read(ctx, address{group: group, plural: "secrets", namespace: namespace, name: name}, nil)
	if apierrors.IsNotFound(err) {
		return nil, "", fmt.Errorf("secret %s/%s: %w", namespace, name, cluster.ErrGone)
	}
	if err != nil {
		return nil, "", fmt.Errorf("secret %s/%s: %w", namespace, name, err)
	}
	var secret corev1.Secret
	if err := a.object(group.WithKind("Secret"), &secret); err != nil {
		return nil, "", fmt.Errorf("secret %s/%s: %w", namespace, name, err)
	}
	return secret.Data, secret.ResourceVersion, nil
}
