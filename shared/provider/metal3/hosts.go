// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/kubeapi"
)

// Hosts is what the driver needs of an API server: the hosts that the baremetal-operator looks after. It is consistent:
// what was written is read.
type Hosts interface {
	// List returns the hosts of a namespace in the order of their names.
	List(ctx context.Context, namespace string) ([]host, error)
	// Get returns a host, or ErrGone.
	Get(ctx context.Context, namespace, name string) (host, error)
	// Patch merges a change into a host if its version is still the one that the patch names, else it answers
	// ErrConflict, or ErrGone. What the patch does not name is kept, also fields that this product does not know.
	Patch(ctx context.Context, namespace, name string, p patch) (host, error)
}

// What Hosts answer beside their own errors.
var (
	ErrGone     = kubeapi.ErrGone
	ErrConflict = kubeapi.ErrConflict
)

// patch is a JSON merge patch; a nil removes.
type patch struct {
	Metadata patchMetadata  `json:"metadata"`
	Spec     map[string]any `json:"spec,omitempty"`
}

type patchMetadata struct {
	ResourceVersion string         `json:"resourceVersion"`
	Annotations     map[string]any `json:"annotations,omitempty"`
}

// pageSize is how many hosts one answer tells of: client-go's number. An inspected host is tens of kilobytes.
const pageSize = 500

// api is the hosts of an API server.
type api struct {
	client *kubeapi.Client
}

// NewHosts returns the hosts of the API server that config describes, without asking it anything.
func NewHosts(config *rest.Config) (Hosts, error) {
	client, err := kubeapi.New(config)
	if err != nil {
		return nil, err
	}
	return &api{client}, nil
}

// List implements [Hosts]: all pages, which are of one revision, or an error.
func (a *api) List(ctx context.Context, namespace string) (all []host, err error) {
	for query := (url.Values{"limit": {strconv.Itoa(pageSize)}}); ; {
		var page metal3v1alpha1.BareMetalHostList
		err := a.call(ctx, kubeapi.Request{Method: http.MethodGet, Query: query}, namespace, "", &page)
		if errors.Is(err, kubeapi.ErrUnserved) && a.client.Lacks(ctx, "metal3.io") {
			return nil, provider.Errorf(provider.Denied, "the API server knows no BareMetalHosts: is the baremetal-operator installed?")
		}
		if err != nil {
			return nil, err
		}
		if all = append(all, page.Items...); page.Continue == "" {
			return all, nil
		}
		query.Set("continue", page.Continue)
	}
}

// Get implements [Hosts].
func (a *api) Get(ctx context.Context, namespace, name string) (h host, err error) {
	err = a.call(ctx, kubeapi.Request{Method: http.MethodGet}, namespace, name, &h)
	return h, err
}

// Patch implements [Hosts].
func (a *api) Patch(ctx context.Context, namespace, name string, p patch) (h host, err error) {
	err = a.call(ctx, kubeapi.Request{Method: http.MethodPatch, Body: p}, namespace, name, &h)
	return h, err
}

func (a *api) call(ctx context.Context, r kubeapi.Request, namespace, name string, out any) error {
	r.Path = []string{"apis", "metal3.io", "v1alpha1", "namespaces", namespace, "baremetalhosts", name}
	err := a.client.Do(ctx, r, out)
	switch {
	case err == nil:
		return nil
	case provider.CodeOf(err) == provider.Unknown && apierrors.IsInvalid(err):
		return provider.Errorf(provider.Invalid, "%w", err)
	}
	return fmt.Errorf("hosts in %s: %w", namespace, err)
}
