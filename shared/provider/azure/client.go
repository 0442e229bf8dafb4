// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/log"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/throttle"
)

// Azure fills the bucket of a subscription's reads with 25 tokens a second and holds 250, those of its changes with 10 and 200
// (https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling). Others share them.
const (
	perSecond = 20
	atOnce    = 100
)

// client speaks to one resource group with one credential. The SDK repeats nothing: a call that failed is judged here.
type client struct {
	http     *http.Client
	arm      *arm.Client
	logins   *logins
	limiter  *throttle.Limiter // of everybody who uses this credential
	apart    []share           // of what Azure counts by itself, besides
	endpoint string            // of one of Azure's own clouds

	subscription, group, location string // in small letters
	network                       string // the resource group of networks, where a spec names none
}

// share is what is asked for too often by itself.
type share struct {
	path    string // a part of it, in small letters
	limiter *throttle.Limiter
}

// The forms of what becomes part of a path, or of a tag's name. Azure's own rules are narrower, but that resource groups may have letters
// of any script.
var (
	names         = regexp.MustCompile(`^[A-Za-z0-9_(][\w.()-]{0,89}$`)
	subscriptions = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	locations     = regexp.MustCompile(`^[a-z][a-z0-9]{1,31}$`)
	tenants       = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.-]{0,252}$`)
)

// The SDK writes what it asks and is answered where its environment says so: nobody switches that on here (RELIABILITY §4).
func init() { log.SetListener(nil) }

// connect reads the credentials; nothing is asked yet. The Secret holds, as OpenShift's does, azure_subscription_id,
// azure_tenant_id, azure_client_id, azure_client_secret, azure_region and azure_resourcegroup; a spec may name another location and
// resource group. In place of azure_client_secret may stand azure_federated_token_file, the path of a service account's token.
func connect(a provider.Account) (*client, error) {
	secret := a.Namespace + "/" + a.Secret
	value := func(key string) string { return strings.TrimSpace(string(a.Credentials[key])) } // echo ends with a newline
	lacks := func(key, why string) error {
		return provider.Errorf(provider.Denied, "credentials secret %s: key %s %s", secret, key, why)
	}
	location, group, _ := strings.Cut(a.Region, "/") // of the spec
	home, homes := normal(value("azure_region")), strings.ToLower(value("azure_resourcegroup"))
	c := &client{subscription: strings.ToLower(value("azure_subscription_id")), location: cmp.Or(location, home)}
	c.group = cmp.Or(group, homes)
	c.network = cmp.Or(homes, c.group)
	switch {
	case !subscriptions.MatchString(c.subscription):
		return nil, lacks("azure_subscription_id", "holds no id of a subscription: set it")
	case !tenants.MatchString(value("azure_tenant_id")):
		return nil, lacks("azure_tenant_id", "holds no tenant: set it")
	case value("azure_client_id") == "":
		return nil, lacks("azure_client_id", "is missing: add it")
	case c.location == "":
		return nil, lacks("azure_region", "is missing: add it, or name the location in the spec")
	case c.group == "":
		return nil, lacks("azure_resourcegroup", "is missing: add it, or name the resource group in the spec")
	case home != "" && !locations.MatchString(home): // the Secret's is mended there: no spec is wrong, and no Machine fails for good
		return nil, lacks("azure_region", fmt.Sprintf("says %q, which is no location", home))
	case realm(home) == unserved:
		return nil, lacks("azure_region", fmt.Sprintf("says %q, which is in a cloud that is not served", home))
	case homes != "" && !names.MatchString(homes):
		return nil, lacks("azure_resourcegroup", fmt.Sprintf("says %q, which is no resource group", homes))
	case !locations.MatchString(c.location):
		return nil, provider.Errorf(provider.Invalid, "%s: %q is no location: name one, or have key azure_region of secret %s name it",
			at("location"), c.location, secret)
	case !names.MatchString(c.group):
		return nil, provider.Errorf(provider.Invalid, "%s: %q is no resource group: name one, or have key azure_resourcegroup of secret %s name it",
			at("resourceGroup"), c.group, secret)
	}
	if realm(c.location) != realm(home) { // else the credentials would go to who runs another
		if home == "" {
			return nil, lacks("azure_region", "is missing: add it, as "+c.location+" is not in the public cloud")
		}
		const says = "%s: %q is in another of Azure's clouds than %s, which key azure_region of secret %s names: mend the one that is wrong"
		return nil, provider.Errorf(provider.Denied, says, at("location"), c.location, home, secret)
	}
	id := []string{a.Kind, value("azure_tenant_id"), c.subscription, value("azure_client_id"), value("azure_client_secret"), value("azure_federated_token_file")}
	c.limiter = throttle.Of(strings.Join(id, " "), perSecond, atOnce)
	for _, path := range []string{c.statesID() + "?", "/providers/microsoft.compute/", "/providers/microsoft.network/"} { // that list others ask for as well
		path = strings.ToLower(path)
		c.apart = append(c.apart, share{path, throttle.Of(strings.Join(append(id, path), " "), perSecond, atOnce)})
	}
	c.http = &http.Client{
		Transport:     c.paced(transport()),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, c.signIn(value, lacks)
}

// pacer sends requests when it is their turn. That one of Azure's services is asked for too often pauses that alone, and of the list of
// states nothing but that list.
type pacer struct {
	throttle.Transport
	of func(*url.URL) *throttle.Limiter
}

// RoundTrip implements [http.RoundTripper].
func (p pacer) RoundTrip(r *http.Request) (*http.Response, error) {
	own := p.of(r.URL)
	if own == p.Limiter {
		return p.Transport.RoundTrip(r)
	}
	if err := p.Limiter.Turn(r.Context()); err != nil { // of all requests it is one
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	return throttle.Transport{Base: p.Base, Limiter: own}.RoundTrip(r)
}

func (c *client) paced(base http.RoundTripper) pacer {
	return pacer{throttle.Transport{Base: base, Limiter: c.limiter}, c.counted}
}

// counted returns the limiter of what is asked for.
func (c *client) counted(at *url.URL) *throttle.Limiter {
	path := strings.ToLower(at.Path) + "?"
	for _, s := range c.apart {
		if strings.Contains(path, s.path) {
			return s.limiter
		}
	}
	return c.limiter
}

// hurried pauses what an answer says is asked for too often: the service that was asked, unless Azure itself, or nobody who can be told
// from it, says so.
func (c *client) hurried(at *url.URL, err error) error {
	code, after := meant(err)
	if code != provider.Throttled {
		return err
	}
	limiter := c.counted(at)
	if r, ok := errors.AsType[*refusal](err); !ok || r.everybody {
		limiter = c.limiter
	}
	limiter.Pause(max(after, breather))
	return err
}

func transport() *http.Transport {
	return &http.Transport{
		DialContext:           throttle.Dialer(deadline).DialContext,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		Proxy:                 http.ProxyFromEnvironment,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   10,
		IdleConnTimeout:       90 * time.Second,
		ResponseHeaderTimeout: deadline,
	}
}

// The clouds that there are, each with logins of its own: no Secret leads anywhere else, and no spec out of the one of its Secret.
const (
	public     = "public"
	china      = "china"
	government = "government"
	unserved   = "unserved" // whoever runs them
)

// realm returns the cloud that a location is in.
func realm(location string) string {
	switch {
	case strings.HasPrefix(location, "china"):
		return china
	case strings.HasPrefix(location, "usgov"), strings.HasPrefix(location, "usdod"):
		return government
	case strings.HasPrefix(location, "ussec"), strings.HasPrefix(location, "usnat"):
		return unserved
	}
	return public
}

func sovereign(location string) cloud.Configuration {
	return map[string]cloud.Configuration{china: cloud.AzureChina, government: cloud.AzureGovernment, public: cloud.AzurePublic}[realm(location)]
}

// tokenFolders are where service accounts' tokens for Azure are mounted. No Secret has any other file sent away.
var tokenFolders = []string{"/var/run/secrets/azure/tokens/", "/var/run/secrets/openshift/serviceaccount/"}

// signIn makes what gets tokens, and what calls with them.
func (c *client) signIn(value func(string) string, lacks func(key, why string) error) error {
	options := policy.ClientOptions{
		Cloud: sovereign(c.location), Transport: c.http, Retry: policy.RetryOptions{MaxRetries: -1}, Telemetry: policy.TelemetryOptions{Disabled: true},
	}
	login := options
	login.Transport = sender{c.http}
	tenant, id, file := value("azure_tenant_id"), value("azure_client_id"), value("azure_federated_token_file")
	var credential azcore.TokenCredential
	var err error
	switch secret := value("azure_client_secret"); {
	case secret != "":
		credential, err = azidentity.NewClientSecretCredential(tenant, id, secret, &azidentity.ClientSecretCredentialOptions{
			ClientOptions: login, DisableInstanceDiscovery: true,
		})
	case file == "":
		return lacks("azure_client_secret", "is missing: add it, or azure_federated_token_file")
	case !mounted(file):
		return lacks("azure_federated_token_file", "is no path below "+strings.Join(tokenFolders, " or "))
	default:
		credential, err = azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
			ClientOptions: login, ClientID: id, TenantID: tenant, TokenFilePath: file, DisableInstanceDiscovery: true,
		})
	}
	if err != nil {
		return lacks("azure_tenant_id", "or one beside it is refused: "+shorten(err.Error()))
	}
	c.logins = &logins{credential: credential, scope: options.Cloud.Services[cloud.ResourceManager].Audience + "/.default"}
	if c.arm, err = arm.NewClient("machine-functions", "v1.0.0", c.logins, &arm.ClientOptions{ClientOptions: options, DisableRPRegistration: true}); err != nil {
		return provider.Errorf(provider.Invalid, "%w", err)
	}
	c.endpoint = strings.TrimSuffix(c.arm.Endpoint(), "/")
	return nil
}

func mounted(file string) bool {
	for _, folder := range tokenFolders {
		if strings.HasPrefix(path.Clean(file), folder) {
			return true
		}
	}
	return false
}
