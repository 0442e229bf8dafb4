// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/machine-functions/machine-functions/shared/plan"
)

// Ready asks for the server's version, which every account may read. Until that succeeded once, Machines may have to be listed in every
// namespace that is served as well: whoever may not, in one of them, can look at none, and the error names it. It waits for no other
// request: to be busy is no reason to be taken out of service.
func (c *Cluster) Ready(ctx context.Context) error {
	if !c.admitted.Load() {
		if err := c.mayList(ctx); err != nil {
			return err
		}
	}
	_, err := c.callNow(ctx, http.MethodGet, versionPath, nil, "", nil, typeJSON)
	if err == nil {
		c.admitted.Store(true)
	}
	return err
}

// mayList fails if the server forbids to list Machines in a namespace that is served. Whatever else is wrong proves nothing.
func (c *Cluster) mayList(ctx context.Context) error {
	r, _ := plan.ResourceOf("Machine")
	for _, namespace := range c.Namespaces {
		path, err := address{group: r.Group, plural: r.Plural, namespace: namespace}.path()
		if err == nil {
			_, err = c.callNow(ctx, http.MethodGet, path, url.Values{"limit": {"1"}}, "", nil, typeJSON)
		}
		if apierrors.IsForbidden(err) {
			return fmt.Errorf("namespace %s of MACHINE_NAMESPACES cannot be served: %w", namespace, err)
		}
	}
	return nil
}
