// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// The kinds of resources, as their ids spell them, each with the version of its API. All of them are in the sovereign clouds too.
const (
	instanceKind = "Microsoft.Compute/virtualMachines"
	diskKind     = "Microsoft.Compute/disks"
	setKind      = "Microsoft.Compute/availabilitySets"
	skuKind      = "Microsoft.Compute/skus"
	cardKind     = "Microsoft.Network/networkInterfaces"
	addressKind  = "Microsoft.Network/publicIPAddresses"
	networkKind  = "Microsoft.Network/virtualNetworks"
	groupKind    = "Microsoft.Network/networkSecurityGroups"
	appGroupKind = "Microsoft.Network/applicationSecurityGroups"
	balancerKind = "Microsoft.Network/loadBalancers"
	identityKind = "Microsoft.ManagedIdentity/userAssignedIdentities"
)

// versionOf returns which version of the API is asked about an id. The first that makes instances create-only is 2024-03-01.
func versionOf(id string) string {
	switch {
	case within(id, diskKind):
		return "2023-10-02"
	case within(id, skuKind):
		return "2021-07-01"
	case within(id, "Microsoft.Network/"):
		return "2023-11-01"
	}
	return "2024-03-01"
}

// within reports whether an id is of a kind. Azure may spell it in other letters.
func within(id, kind string) bool {
	return strings.Contains(strings.ToLower(id), "/"+strings.ToLower(kind))
}

// idIn returns the id of a resource in a resource group of the subscription.
func (c *client) idIn(group, kind, name string) string {
	return "/subscriptions/" + c.subscription + "/resourceGroups/" + group + "/providers/" + kind + "/" + name
}

// id returns the id of one in the driver's own.
func (c *client) id(kind, name string) string { return c.idIn(c.group, kind, name) }

// ask is one request of the API.
type ask struct {
	method string
	id     string // of a resource, or of a list
	query  map[string]string
	header map[string]string
	body   any
}

// ids are those that a path can be made of, whoever told them.
var ids = regexp.MustCompile(`^(/[A-Za-z0-9_(][\w.()-]*)+$`)

// do makes a request and reads the answer into what is given, if that is not nil. What is no answer of Azure's is an error that says
// nothing about what was asked for (RELIABILITY G5).
func (c *client) do(ctx context.Context, a ask, into any) error {
	if !ids.MatchString(a.id) {
		return provider.Errorf(provider.Unknown, "%q is no id", shorten(a.id))
	}
	query := url.Values{"api-version": {versionOf(a.id)}}
	for key, value := range a.query {
		query.Set(key, value)
	}
	return c.send(ctx, a, c.endpoint+a.id+"?"+query.Encode(), into)
}

func (c *client) send(ctx context.Context, a ask, to string, into any) error {
	if err := c.logins.ready(ctx); err != nil {
		return err
	}
	req, err := runtime.NewRequest(ctx, a.method, to)
	if err != nil {
		return err
	}
	req.Raw().Header.Set("Accept", "application/json")
	for key, value := range a.header {
		req.Raw().Header.Set(key, value)
	}
	if a.body != nil {
		if err := runtime.MarshalAsJSON(req, a.body); err != nil {
			return err
		}
	}
	res, err := c.arm.Pipeline().Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok { // the address, with all that was asked for, helps nobody
		return e.Err
	}
	if err != nil {
		return err
	}
	text, err := runtime.Payload(res)
	if err != nil {
		return err
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case !slices.Contains([]int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent}, res.StatusCode):
		return c.hurried(req.Raw().URL, refusalOf(res, text))
	case kind == "text/html":
		return strange(res, kind)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%w: %w", strange(res, kind), err)
	}
	return nil
}

var errStrange = errors.New("what is no answer of Azure's: is a proxy between, or another service behind this name")

func strange(res *http.Response, kind string) error {
	return fmt.Errorf("HTTP status %s with %w (%s)", res.Status, errStrange, kind)
}

// page is a part of a list.
type page[T any] struct {
	Value *[]T   `json:"value"`
	Next  string `json:"nextLink"`
}

// all reads a list to its end. A page that does not come is an error; one that lies elsewhere is not asked for, as the token would go
// there.
func all[T any](ctx context.Context, c *client, a ask) (found []T, err error) {
	var p page[T]
	err = c.do(ctx, a, &p)
	for {
		if err != nil {
			return nil, err
		}
		if p.Value == nil {
			return nil, errStrange
		}
		found = append(found, *p.Value...)
		if p.Next == "" {
			return found, nil
		}
		next, elsewhere := c.further(p.Next)
		if elsewhere != nil {
			return nil, elsewhere
		}
		p = page[T]{}
		err = c.send(ctx, ask{method: http.MethodGet}, next, &p)
	}
}

// further returns where a list goes on, as it can be asked for. Azure may name the port there, and leave spaces as they are.
func (c *client) further(next string) (string, error) {
	there, err := url.Parse(next)
	if err != nil || there.User != nil || !strings.EqualFold(there.Scheme+"://"+strings.TrimSuffix(there.Host, ":443"), c.endpoint) {
		return "", provider.Errorf(provider.Unknown, "the list goes on at %q, which is not Azure's", shorten(next))
	}
	return runtime.EncodeQueryParams(next)
}

// get reads one resource.
func get[T interface{ told() bool }](ctx context.Context, c *client, id string, query map[string]string) (T, error) {
	var t T
	err := c.do(ctx, ask{method: http.MethodGet, id: id, query: query}, &t)
	if err == nil && !t.told() {
		err = errStrange
	}
	return t, err
}

// put makes a resource, or changes it.
func put[T interface{ told() bool }](ctx context.Context, c *client, id string, body T, header map[string]string) (T, error) {
	var t T
	err := c.do(ctx, ask{method: http.MethodPut, id: id, body: body, header: header}, &t)
	if err == nil && !t.told() {
		err = errStrange
	}
	return t, err
}

// drop begins the removal of a resource. One that is gone is removed.
func (c *client) drop(ctx context.Context, id string) error {
	err := c.do(ctx, ask{method: http.MethodDelete, id: id}, nil)
	if gone(err) {
		return nil
	}
	return err
}
