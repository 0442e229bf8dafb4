// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"sigs.k8s.io/yaml"

	"github.com/machine-functions/machine-functions/shared/provider"
)

const (
	cloudsKey = "clouds.yaml" // of the Secret, as every OpenStack client reads it
	caKey     = "cacert"      // of the Secret: the certificates that sign the cloud's
)

// cloud is one entry of a clouds.yaml. It holds a password: no text of it ever shows more than its name.
type cloud struct {
	name   string
	auth   gophercloud.AuthOptions
	region string
	faces  string // which of a service's endpoints: public, internal or admin
	tls    *tls.Config
	// insecure is what of the entry lets the cloud not prove who it is, or empty.
	insecure string
}

// String keeps secrets out of every log and message.
func (c *cloud) String() string { return "cloud " + c.name }

// GoString does so for %#v.
func (c *cloud) GoString() string { return c.String() }

// identity names who calls, without what proves it.
func (c *cloud) identity() string {
	a := c.auth
	return strings.Join([]string{a.IdentityEndpoint, a.UserID, a.DomainID, a.DomainName, a.Username, a.TenantID, a.TenantName, a.ApplicationCredentialID, a.ApplicationCredentialName}, "|")
}

// entry is what is read of an entry of clouds.yaml; what else clients know there concerns other services.
type entry struct {
	Auth struct {
		URL               string `json:"auth_url"`
		Token             string `json:"token"`
		Username          string `json:"username"`
		UserID            string `json:"user_id"`
		Password          string `json:"password"`
		ProjectName       string `json:"project_name"`
		ProjectID         string `json:"project_id"`
		TenantName        string `json:"tenant_name"`
		TenantID          string `json:"tenant_id"`
		DomainName        string `json:"domain_name"`
		DomainID          string `json:"domain_id"`
		DefaultDomain     string `json:"default_domain"`
		UserDomainName    string `json:"user_domain_name"`
		UserDomainID      string `json:"user_domain_id"`
		ProjectDomainName string `json:"project_domain_name"`
		ProjectDomainID   string `json:"project_domain_id"`
		AppID             string `json:"application_credential_id"`
		AppName           string `json:"application_credential_name"`
		AppSecret         string `json:"application_credential_secret"`
	} `json:"auth"`
	AuthType     string          `json:"auth_type"`
	Region       string          `json:"region_name"`
	Interface    string          `json:"interface"`
	EndpointType string          `json:"endpoint_type"`
	Verify       *bool           `json:"verify"`
	CACert       string          `json:"cacert"`
	Cert         string          `json:"cert"`
	Profile      json.RawMessage `json:"profile"`
	Cloud        json.RawMessage `json:"cloud"`
}

// readClouds returns the entry that a spec names, of the Secret that it names. No error tells a value that may be
// secret.
func readClouds(secret map[string][]byte, name string) (*cloud, error) {
	text, ok := secret[cloudsKey]
	if !ok {
		return nil, errors.New("has no key " + cloudsKey)
	}
	var file struct {
		Clouds map[string]json.RawMessage `json:"clouds"`
	}
	if provider.Expands(text) {
		return nil, errors.New(cloudsKey + " has more aliases than can be followed")
	}
	if yaml.Unmarshal(text, &file) != nil { // its error quotes the file
		return nil, errors.New(cloudsKey + " is no YAML with clouds")
	}
	raw, ok := file.Clouds[name]
	if !ok {
		return nil, fmt.Errorf("%s has no cloud %q, but %s", cloudsKey, name, strings.Join(slices.Sorted(maps.Keys(file.Clouds)), ", "))
	}
	var e entry
	if json.Unmarshal(raw, &e) != nil {
		return nil, fmt.Errorf("%s: cloud %q cannot be read", cloudsKey, name)
	}
	c, err := e.cloud(name)
	if err == nil {
		c.tls, err = e.tls(secret[caKey])
	}
	if err != nil {
		return nil, fmt.Errorf("%s: cloud %q: %w", cloudsKey, name, err)
	}
	return c, nil
}

func (e entry) cloud(name string) (*cloud, error) {
	a := e.Auth
	at, err := url.Parse(a.URL)
	switch {
	case err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" || at.User != nil:
		return nil, errors.New("auth.auth_url is no http or https URL")
	case e.Cert != "":
		return nil, errors.New("cert names a file, and there are none here")
	case e.Profile != nil || e.Cloud != nil:
		return nil, errors.New("profile and cloud refer to a list of public clouds, and there is none here")
	}
	endpoint := strings.TrimRight(a.URL, "/")
	if !strings.HasSuffix(endpoint, "/v3") {
		endpoint += "/v3" // no other version has been served since 2018
	}
	c := &cloud{name: name, region: e.Region, faces: faces(e.Interface, e.EndpointType), insecure: e.insecure(at.Scheme)}
	if c.auth, err = e.proof(endpoint + "/"); err != nil {
		return nil, err
	}
	return c, nil
}

// proof is who calls and what proves it. An application credential goes before a token, a token before a password.
func (e entry) proof(endpoint string) (gophercloud.AuthOptions, error) {
	a := e.Auth
	o := gophercloud.AuthOptions{IdentityEndpoint: endpoint, TokenID: a.Token, AllowReauth: a.Token == ""}
	switch {
	case a.AppSecret != "":
		o.ApplicationCredentialID, o.ApplicationCredentialName, o.ApplicationCredentialSecret = a.AppID, a.AppName, a.AppSecret
		if a.AppID == "" {
			o.UserID, o.Username = a.UserID, a.Username
			o.DomainID, o.DomainName = userDomain(a.UserID, a.UserDomainID, a.UserDomainName, a.DomainID, a.DomainName, a.DefaultDomain)
		}
	case a.Token != "":
	case a.Password != "" && (a.Username != "" || a.UserID != ""):
		o.UserID, o.Password = a.UserID, a.Password
		if a.UserID == "" {
			o.Username = a.Username
		}
		o.DomainID, o.DomainName = userDomain(a.UserID, a.UserDomainID, a.UserDomainName, a.DomainID, a.DomainName, a.DefaultDomain)
	default:
		return o, errors.New("auth holds neither a user with a password, nor an application credential with its secret, nor a token")
	}
	if a.AppSecret == "" {
		o.Scope = e.scope()
	}
	return o, nil
}

// scope is the project in which everything happens.
func (e entry) scope() *gophercloud.AuthScope {
	a := e.Auth
	id, name := first(a.ProjectID, a.TenantID), first(a.ProjectName, a.TenantName)
	if id != "" {
		return &gophercloud.AuthScope{ProjectID: id}
	}
	s := &gophercloud.AuthScope{ProjectName: name, DomainID: first(a.ProjectDomainID, a.DomainID)}
	if s.DomainID == "" {
		s.DomainName = first(a.ProjectDomainName, a.DomainName)
	}
	if s.DomainID == "" && s.DomainName == "" {
		s.DomainID = first(a.DefaultDomain, "default")
	}
	return s
}

// userDomain returns where a user that is given by name lives; a user id needs no domain.
func userDomain(userID, id, name, domainID, domainName, fallback string) (string, string) {
	switch {
	case userID != "":
		return "", ""
	case id != "":
		return id, ""
	case name != "":
		return "", name
	case domainID != "":
		return domainID, ""
	case domainName != "":
		return "", domainName
	}
	return first(fallback, "default"), ""
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// faces returns which endpoints to call: both keys are in use, with and without "URL" at the end.
func faces(texts ...string) string {
	if f := strings.TrimSuffix(first(texts...), "URL"); f != "" {
		return f
	}
	return "public"
}

// insecure returns what of the entry lets a cloud at a URL of this scheme not prove who it is, or nothing.
func (e entry) insecure(scheme string) string {
	switch {
	case scheme != "https":
		return "auth.auth_url is no https URL"
	case e.unverified():
		return "verify is false"
	}
	return ""
}

// unverified reports whether certificates are not looked at.
func (e entry) unverified() bool { return e.Verify != nil && !*e.Verify }

// tls returns how the cloud proves who it is. The certificates stand in the Secret, because the path in the entry is
// one of the machine that it was written on.
func (e entry) tls(ca []byte) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.unverified() {
		t.InsecureSkipVerify = true //nolint:gosec // whoever may write the Secret may say so, as to every OpenStack client
		return t, nil
	}
	switch {
	case len(ca) > 0:
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("the Secret's key " + caKey + " holds no certificate in PEM")
		}
	case e.CACert != "":
		return nil, errors.New("cacert names a file; put its content into the Secret under the key " + caKey)
	}
	return t, nil
}
