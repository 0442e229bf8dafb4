// SPDX-License-Identifier: Apache-2.0

package arm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	computefake "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8/fake"
	networkfake "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9/fake"
)

// The hosts of the public cloud.
const (
	login      = "login.microsoftonline.com"
	management = "management.azure.com"
	port       = ":443" // which the addresses of further pages name
)

// operations are the requests that the cloud knows, by method and path, as the SDK calls them: by that name its fake servers tell them
// apart.
var operations = []struct {
	method string
	path   *regexp.Regexp
	name   string
}{
	{"GET", below(`/subscriptions/[^/]+/providers/Microsoft\.Compute/virtualMachines`), "VirtualMachinesClient.NewListAllPager"},
	{"GET", below(`/subscriptions/[^/]+/providers/Microsoft\.Compute/skus`), "ResourceSKUsClient.NewListPager"},
	{"GET", inGroup(`Microsoft\.Compute/virtualMachines`), "VirtualMachinesClient.NewListPager"},
	{"GET", inGroup(`Microsoft\.Compute/virtualMachines/[^/]+`), "VirtualMachinesClient.Get"},
	{"PUT", inGroup(`Microsoft\.Compute/virtualMachines/[^/]+`), "VirtualMachinesClient.BeginCreateOrUpdate"},
	{"PATCH", inGroup(`Microsoft\.Compute/virtualMachines/[^/]+`), "VirtualMachinesClient.BeginUpdate"},
	{"DELETE", inGroup(`Microsoft\.Compute/virtualMachines/[^/]+`), "VirtualMachinesClient.BeginDelete"},
	{"POST", inGroup(`Microsoft\.Compute/virtualMachines/[^/]+/restart`), "VirtualMachinesClient.BeginRestart"},
	{"POST", inGroup(`Microsoft\.Compute/virtualMachines/[^/]+/start`), "VirtualMachinesClient.BeginStart"},
	{"GET", inGroup(`Microsoft\.Compute/disks`), "DisksClient.NewListByResourceGroupPager"},
	{"GET", inGroup(`Microsoft\.Compute/disks/[^/]+`), "DisksClient.Get"},
	{"DELETE", inGroup(`Microsoft\.Compute/disks/[^/]+`), "DisksClient.BeginDelete"},
	{"GET", inGroup(`Microsoft\.Compute/availabilitySets/[^/]+`), "AvailabilitySetsClient.Get"},
	{"GET", inGroup(`Microsoft\.Network/networkInterfaces`), "InterfacesClient.NewListPager"},
	{"GET", inGroup(`Microsoft\.Network/networkInterfaces/[^/]+`), "InterfacesClient.Get"},
	{"PUT", inGroup(`Microsoft\.Network/networkInterfaces/[^/]+`), "InterfacesClient.BeginCreateOrUpdate"},
	{"DELETE", inGroup(`Microsoft\.Network/networkInterfaces/[^/]+`), "InterfacesClient.BeginDelete"},
	{"GET", inGroup(`Microsoft\.Network/publicIPAddresses`), "PublicIPAddressesClient.NewListPager"},
	{"GET", inGroup(`Microsoft\.Network/publicIPAddresses/[^/]+`), "PublicIPAddressesClient.Get"},
	{"PUT", inGroup(`Microsoft\.Network/publicIPAddresses/[^/]+`), "PublicIPAddressesClient.BeginCreateOrUpdate"},
	{"DELETE", inGroup(`Microsoft\.Network/publicIPAddresses/[^/]+`), "PublicIPAddressesClient.BeginDelete"},
	{"GET", inGroup(`Microsoft\.Network/virtualNetworks/[^/]+/subnets/[^/]+`), "SubnetsClient.Get"},
	{"GET", inGroup(`Microsoft\.Network/networkSecurityGroups/[^/]+`), "SecurityGroupsClient.Get"},
	{"GET", inGroup(`Microsoft\.Network/applicationSecurityGroups/[^/]+`), "ApplicationSecurityGroupsClient.Get"},
	{"GET", inGroup(`Microsoft\.Network/loadBalancers/[^/]+`), "LoadBalancersClient.Get"},
}

func below(path string) *regexp.Regexp { return regexp.MustCompile(`^` + path + `(/fake_page_\d+)?$`) }

func inGroup(path string) *regexp.Regexp {
	return below(`/subscriptions/[^/]+/resourceGroups/[^/]+/providers/` + path)
}

// Operation returns what a request asks for, as the SDK calls it; "login" of a token, and "" of what nobody knows.
func Operation(r *http.Request) string {
	if r.URL.Host == login {
		return "login"
	}
	for _, o := range operations {
		if o.method == r.Method && o.path.MatchString(r.URL.Path) {
			return o.name
		}
	}
	return ""
}

// listing is the parameter by which a page of a list says which list it is of.
const listing = "listing"

// RoundTrip implements [http.RoundTripper].
func (c *Cloud) RoundTrip(r *http.Request) (*http.Response, error) {
	body := []byte(nil)
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	if r.URL.Host == login {
		return c.login(r, body)
	}
	op := Operation(r)
	c.mu.Lock()
	c.calls = append(c.calls, op)
	c.mu.Unlock()
	switch {
	case strings.TrimSuffix(r.URL.Host, port) != management:
		return nil, fmt.Errorf("no host is called %s", r.URL.Host)
	case op == "":
		return answer(r, refuse(http.StatusBadRequest, "InvalidResourceType", "%s %s: The resource type could not be found.", r.Method, r.URL.Path)), nil
	case r.Header.Get("Authorization") != "Bearer "+token:
		return answer(r, refuse(http.StatusUnauthorized, "InvalidAuthenticationToken", "The access token is invalid.")), nil
	case r.URL.Query().Get("api-version") == "":
		return answer(r, refuse(http.StatusBadRequest, "MissingApiVersionParameter", "The api-version query parameter (?api-version=) is required for all requests.")), nil
	case c.Deny != "" && strings.HasPrefix(op, c.Deny):
		return answer(r, refuse(http.StatusForbidden, "AuthorizationFailed", "The client does not have authorization to perform action '%s'.", op)), nil
	case c.gone() && strings.Contains(r.URL.Path, "/resourceGroups/"):
		return answer(r, refuse(http.StatusNotFound, "ResourceGroupNotFound", "Resource group '%s' could not be found.", Group)), nil
	}
	return c.serve(r, op, body)
}

func (c *Cloud) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.without
}

// serve hands a request to the fake server of its service: a new one for each list and each other request, as they remember by path what
// was asked before. None is cut off: that of a network panics then.
func (c *Cloud) serve(r *http.Request, op string, body []byte) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	next := r.Clone(context.WithValue(context.WithoutCancel(r.Context()), runtime.CtxAPINameKey{}, op))
	query := next.URL.Query()
	key := query.Get(listing)
	query.Del(listing)
	next.URL.RawQuery = query.Encode()
	next.Body = io.NopCloser(bytes.NewReader(body))
	ask := &call{cloud: c, request: r, body: body}
	server := c.server(key)
	if server == nil {
		server = ask.server(strings.Contains(r.URL.Path, "/Microsoft.Network/"))
	}
	res, err := server.RoundTrip(next)
	if ask.refused != nil {
		return answer(r, ask.refused), nil
	}
	if err != nil {
		return nil, err
	}
	return c.paged(res, server, key)
}

func (c *Cloud) server(key string) http.RoundTripper {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lists[key]
}

// paged lets the next page of a list be asked of the same server.
func (c *Cloud) paged(res *http.Response, server http.RoundTripper, key string) (*http.Response, error) {
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	var page object
	if json.Unmarshal(text, &page) == nil && page.text("nextLink") != "" {
		c.mu.Lock()
		if key == "" {
			key = fmt.Sprint(len(c.lists) + 1)
		}
		if c.lists == nil {
			c.lists = map[string]http.RoundTripper{}
		}
		c.lists[key] = server
		c.mu.Unlock()
		next, err := url.Parse(page.text("nextLink"))
		if err != nil {
			return nil, err
		}
		query := next.Query()
		query.Set(listing, key)
		next.RawQuery, next.Host = query.Encode(), management+port
		page["nextLink"] = next.String()
		text, _ = json.Marshal(page) // what was JSON
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return res, nil
}

// transport makes a round tripper of what the SDK calls one.
type transport struct {
	do func(*http.Request) (*http.Response, error)
}

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t.do(r) }

// server returns the fake server of a service, whose handlers are the call's.
func (k *call) server(ofNetwork bool) http.RoundTripper {
	if ofNetwork {
		return transport{networkfake.NewServerFactoryTransport(k.network()).Do}
	}
	return transport{computefake.NewServerFactoryTransport(k.compute()).Do}
}

// answer is a refusal in the form of the API.
func answer(r *http.Request, no *refusal) *http.Response {
	text, _ := json.Marshal(object{"error": object{"code": no.code, "message": no.message}}) // strings only
	return reply(r, no.status, text)
}

func reply(r *http.Request, status int, text []byte) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}
}

const token = "eyJ0eXAiOiJKV1QifQ.on-loopback" //nolint:gosec // no secret

// login answers as Microsoft Entra ID does (https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow).
func (c *Cloud) login(r *http.Request, body []byte) (*http.Response, error) {
	at := "https://" + login + "/" + Tenant
	if strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration") {
		text, err := json.Marshal(object{"issuer": at + "/v2.0", "authorization_endpoint": at + "/oauth2/v2.0/authorize", "token_endpoint": at + "/oauth2/v2.0/token"})
		return reply(r, http.StatusOK, text), err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || r.URL.Path != "/"+Tenant+"/oauth2/v2.0/token" {
		return nil, errors.New("no such endpoint")
	}
	c.mu.Lock()
	c.calls = append(c.calls, "login")
	c.mu.Unlock()
	if c.Secret != "" && form.Get("client_secret") != c.Secret {
		text, err := json.Marshal(object{
			"error":             "invalid_client",
			"error_description": "AADSTS7000215: Invalid client secret provided. Ensure the secret being sent in the request is the client secret value. Trace ID: 5a71e8e6 Correlation ID: 0b0f Timestamp: 2026-11-20 10:00:00Z",
		})
		return reply(r, http.StatusUnauthorized, text), err
	}
	text, err := json.Marshal(object{"token_type": "Bearer", "expires_in": 3599, "ext_expires_in": 3599, "access_token": token})
	return reply(r, http.StatusOK, text), err
}
