// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// manager is the field manager of everything that is applied here.
const manager = "test-eventing"

// poll is how often the API server is asked whether something has come true.
const poll = 100 * time.Millisecond

// cluster is the API server.
type cluster struct {
	dynamic   dynamic.Interface
	discovery discovery.DiscoveryInterface
	mapper    meta.ResettableRESTMapper
}

func connect(kubeconfig string) (*cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // a start is one burst
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))
	return &cluster{dynamic: d, discovery: disco, mapper: mapper}, nil
}

// resource returns where o is served.
func (c *cluster) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", describe(o), err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return c.dynamic.Resource(mapping.Resource).Namespace(o.GetNamespace()), nil
	}
	return c.dynamic.Resource(mapping.Resource), nil
}

// apply makes the object as o says (server-side apply) and returns what the API server made of it.
func (c *cluster) apply(ctx context.Context, o *unstructured.Unstructured, how metav1.PatchOptions, subresource ...string) (*unstructured.Unstructured, error) {
	r, err := c.resource(o)
	if err != nil {
		return nil, err
	}
	body, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	force := true
	how.FieldManager, how.Force = manager, &force
	applied, err := r.Patch(ctx, o.GetName(), types.ApplyPatchType, body, how, subresource...)
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", describe(o), err)
	}
	return applied, nil
}

func (c *cluster) applyAll(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if _, err := c.apply(ctx, o, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// applyCRDs applies the definitions and returns once all of them are served.
func (c *cluster) applyCRDs(ctx context.Context, crds []*unstructured.Unstructured) error {
	if err := c.applyAll(ctx, crds); err != nil {
		return err
	}
	if err := c.waitFor(ctx, crds, "Established"); err != nil {
		return err
	}
	return c.waitServed(ctx, crds)
}

// waitServed returns once the kind of every definition is served.
func (c *cluster) waitServed(ctx context.Context, crds []*unstructured.Unstructured) error {
	for _, crd := range crds {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		if _, err := c.served(ctx, schema.GroupKind{Group: group, Kind: kind}); err != nil {
			return fmt.Errorf("%s is established but not served: %w", describe(crd), err)
		}
	}
	return nil
}

// served returns how the kind is reached, once discovery names it: it lags behind the condition Established.
func (c *cluster) served(ctx context.Context, kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	var mapping *meta.RESTMapping
	var missing error
	err := wait.PollUntilContextCancel(ctx, poll, true, func(context.Context) (bool, error) {
		var err error
		mapping, err = c.mapper.RESTMapping(kind, versions...)
		if meta.IsNoMatchError(err) {
			c.mapper.Reset()
			missing = err
			return false, nil
		}
		return err == nil, err
	})
	if wait.Interrupted(err) && missing != nil {
		err = missing
	}
	return mapping, err
}

// waitFor returns once every object has the condition with status True for its present generation; its error names one that has not.
func (c *cluster) waitFor(ctx context.Context, objects []*unstructured.Unstructured, condition string) error {
	for _, o := range objects {
		r, err := c.resource(o)
		if err != nil {
			return err
		}
		var why string
		err = wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
			now, err := r.Get(ctx, o.GetName(), metav1.GetOptions{})
			if err != nil {
				why = err.Error()
				return false, nil //nolint:nilerr // asked again
			}
			var ok bool
			ok, why = holds(now, condition)
			return ok, nil
		})
		if err != nil {
			return fmt.Errorf("%s is not %s: %s: %w", describe(o), condition, why, err)
		}
	}
	return nil
}

// holds tells whether the condition is true of the object as it is now, and if not, why.
func holds(o *unstructured.Unstructured, condition string) (ok bool, why string) {
	if seen, found, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); found && seen != o.GetGeneration() {
		return false, "not looked at yet"
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, _ := c.(map[string]any); c["type"] == condition {
			return c["status"] == "True", fmt.Sprintf("%v: %v", c["reason"], c["message"])
		}
	}
	return false, "no such condition yet"
}

// remove deletes the objects and returns once they are gone, finalizers and all.
func (c *cluster) remove(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range slices.Backward(objects) {
		r, err := c.resource(o)
		if err != nil {
			return err
		}
		if err := r.Delete(ctx, o.GetName(), metav1.DeleteOptions{}); err != nil && !errors.IsNotFound(err) {
			return fmt.Errorf("delete %s: %w", describe(o), err)
		}
	}
	for _, o := range objects {
		r, err := c.resource(o)
		if err != nil {
			return err
		}
		err = wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
			_, err := r.Get(ctx, o.GetName(), metav1.GetOptions{})
			return errors.IsNotFound(err), nil
		})
		if err != nil {
			return fmt.Errorf("%s is still there: %w", describe(o), err)
		}
	}
	return nil
}

func describe(o *unstructured.Unstructured) string {
	name := o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return o.GetKind() + " " + name
}
