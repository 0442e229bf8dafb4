// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"strconv"
	"strings"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// The keys of the Secret, as OpenShift's installer writes them (SPEC E43).
const (
	keyURL      = "ovirt_url"
	keyUser     = "ovirt_username"
	keyPassword = "ovirt_password" //nolint:gosec // the key's name
	keyBundle   = "ovirt_ca_bundle"
	keyFile     = "ovirt_cafile"
	keyInsecure = "ovirt_insecure"
)

// credentials are what the Secret says. They hold a password: nothing prints them.
type credentials struct {
	api            *url.URL
	user, password string
	tls            *tls.Config
	insecure       string // how it says that the engine need not prove who it is, or empty
}

// read returns the credentials of a Secret; nothing is asked yet.
func read(a provider.Account) (*credentials, error) {
	secret := a.Namespace + "/" + a.Secret
	value := func(key string) string { return strings.TrimRight(string(a.Credentials[key]), "\r\n") } // echo ends with one
	for _, key := range []string{keyURL, keyUser, keyPassword} {
		if value(key) == "" {
			return nil, provider.Errorf(provider.Denied, "credentials secret %s has no key %s: add it", secret, key)
		}
	}
	c := &credentials{user: value(keyUser), password: value(keyPassword), tls: &tls.Config{MinVersion: tls.VersionTLS12}}
	var err error
	if c.api, err = endpoint(value(keyURL)); err != nil {
		return nil, provider.Errorf(provider.Denied, "credentials secret %s: key %s %w", secret, keyURL, err)
	}
	if text := value(keyInsecure); text != "" {
		insecure, err := strconv.ParseBool(text)
		if err != nil {
			return nil, provider.Errorf(provider.Denied, "credentials secret %s: key %s is neither true nor false", secret, keyInsecure)
		}
		if insecure {
			c.insecure = "key " + keyInsecure + " is true: the engine need not prove who it is"
			c.tls.InsecureSkipVerify = true //nolint:gosec // whoever may write the Secret says so, and is told of (provider.Insecure)
			return c, nil
		}
	}
	c.tls.RootCAs, err = authorities(secret, value(keyBundle), value(keyFile))
	return c, err
}

// endpoint reads where the API is.
func endpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return nil, provider.Errorf(provider.Denied, "is no URL such as https://engine.example.com/ovirt-engine/api") // what else it says may be a secret
	case u.Scheme != "https":
		return nil, provider.Errorf(provider.Denied, "does not begin with https://, and the password would be read on its way")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, provider.Errorf(provider.Denied, "has more than a host and a path: take the user, the query and the fragment out of it")
	}
	at := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimRight(u.Path, "/")}
	if at.Path == "" {
		at.Path = "/ovirt-engine/api"
	}
	if !strings.HasSuffix(at.Path, "/api") {
		return nil, provider.Errorf(provider.Denied, "does not end with /api, as in https://engine.example.com/ovirt-engine/api")
	}
	return at, nil
}

// authorities returns who may have signed the engine's certificate; nil stands for those of the system. A file lies where OpenShift's
// installer ran: a function would read one of its own in its place, and reads none.
func authorities(secret, bundle, file string) (*x509.CertPool, error) {
	key, text := keyBundle, bundle
	if text == "" && strings.Contains(file, "-----BEGIN") {
		key, text = keyFile, file
	}
	switch {
	case text == "" && file != "":
		return nil, provider.Errorf(provider.Denied, "credentials secret %s: key %s names a file, which is not read: put what is in it into key %s", secret, keyFile, keyBundle)
	case text == "":
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(text)) {
		return nil, provider.Errorf(provider.Denied, "credentials secret %s: key %s holds no certificate in PEM", secret, key)
	}
	return pool, nil
}
