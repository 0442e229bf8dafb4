// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// applied is how long a kind that config/ defines may take to be served once it is applied, which may have been a moment ago.
const applied = 30 * time.Second

// watched returns the namespaced resources that the sources watch, once all of them are served: a receive adapter looks only once which
// kinds there are. An error names a kind that is not served for a while.
func (c *cluster) watched(ctx context.Context, objects []*unstructured.Unstructured) ([]schema.GroupResource, error) {
	ctx, cancel := context.WithTimeout(ctx, applied)
	defer cancel()
	var resources []schema.GroupResource
	for _, source := range ofKind(objects, "ApiServerSource") {
		list, _, err := unstructured.NestedSlice(source.Object, "spec", "resources")
		if err != nil {
			return nil, err
		}
		for _, item := range list {
			r, _ := item.(map[string]any)
			kind := schema.FromAPIVersionAndKind(fmt.Sprint(r["apiVersion"]), fmt.Sprint(r["kind"]))
			mapping, err := c.served(ctx, kind.GroupKind(), kind.Version)
			if err != nil {
				return nil, fmt.Errorf("%s watches a kind that is not served, apply config/ first: %w", describe(source), err)
			}
			if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
				resources = append(resources, mapping.Resource.GroupResource())
			}
		}
	}
	return resources, nil
}

// watchLine matches one count of open watches in the API server's metrics.
var watchLine = regexp.MustCompile(`(?m)^apiserver_longrunning_requests\{(.*)\} [1-9]`)

// waitWatches returns once somebody watches each of the resources in a namespace, as only a source does: Kubernetes' own controllers watch
// whole clusters. A source calls itself ready before it watches, and what happens until then is never told.
func (c *cluster) waitWatches(ctx context.Context, resources []schema.GroupResource) error {
	var missing schema.GroupResource
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		metrics, err := c.discovery.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		if err != nil {
			return false, err
		}
		open := map[schema.GroupResource]bool{}
		for _, line := range watchLine.FindAllSubmatch(metrics, -1) {
			labels := string(line[1])
			if label(labels, "verb") == "WATCH" && label(labels, "scope") == "namespace" {
				open[schema.GroupResource{Group: label(labels, "group"), Resource: label(labels, "resource")}] = true
			}
		}
		for _, r := range resources {
			if !open[r] {
				missing = r
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("nobody watches %s: %w", missing, err)
	}
	return nil
}

// label returns the value of one label of a metric.
func label(labels, name string) string {
	_, after, _ := strings.Cut(","+labels, ","+name+`="`)
	value, _, _ := strings.Cut(after, `"`)
	return value
}

// waitServing returns once the server at the address says that it is healthy.
func waitServing(ctx context.Context, address string) error {
	client := &http.Client{Timeout: time.Second}
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
		if err != nil {
			return false, err
		}
		r.Header.Set("User-Agent", "kube-probe/") // Knative answers its probes by this name
		response, err := client.Do(r)
		if err != nil {
			return false, nil //nolint:nilerr // asked again
		}
		response.Body.Close()
		return response.StatusCode < 300, nil
	})
	if err != nil {
		return fmt.Errorf("nobody serves %s: %w", address, err)
	}
	return nil
}
