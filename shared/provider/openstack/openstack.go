// SPDX-License-Identifier: Apache-2.0

// Package openstack is the driver for instances of OpenStack's Nova, with their ports in Neutron, volumes in Cinder.
package openstack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

const (
	// Kind is the kind of providerSpec that is served here (SPEC S9).
	Kind = "OpenstackProviderSpec"
	// horizon is how long a request whose answer was lost may still make something: proxies and workers hold one for up
	// to ten minutes, queues between them for some more (RELIABILITY 2b).
	horizon = 15 * time.Minute
	// callTimeout bounds one method, whatever deadline its caller has (RELIABILITY G6).
	callTimeout = 10 * time.Second
)

// Provider returns the line for OpenStack in the table of drivers.
func Provider() provider.Provider { return line(dial) }

// line lets tests replace the network.
func line(dial dialer) provider.Provider {
	return provider.Provider{
		Name:  "openstack",
		Kinds: []string{Kind},
		Account: func(spec json.RawMessage) (region, secret string, err error) {
			s, err := decode(spec)
			if err == nil && (s.CloudName == "" || s.CloudsSecret.Name == "") {
				_, err = parse(spec, "") // which says so
			}
			return s.CloudName, s.CloudsSecret.Name, err
		},
		InstanceType: func(spec json.RawMessage) (provider.InstanceType, error) {
			s, err := decode(spec)
			return provider.InstanceType{Name: s.Flavor}, err
		},
		Open: func(_ context.Context, a provider.Account) (provider.Driver, error) {
			if a.ClusterID == "" {
				return nil, provider.Errorf(provider.Invalid, "cluster id: missing")
			}
			c, err := readClouds(a.Credentials, a.Region)
			if err != nil {
				return nil, provider.Errorf(provider.Denied, "credentials secret %s/%s: %w", a.Namespace, a.Secret, err)
			}
			s, err := newSession(c, dial)
			if err != nil {
				return nil, provider.Errorf(provider.Denied, "credentials secret %s/%s: %w", a.Namespace, a.Secret, err)
			}
			a.Credentials = nil // which nobody reads again
			return &driver{account: a, session: s, tags: tagsOf(a.ClusterID)}, nil
		},
	}
}

// dialer returns what sends the requests of one cloud.
type dialer func(*cloud) (http.RoundTripper, error)

// driver is one cluster's view of one project.
type driver struct {
	account provider.Account
	session *session
	tags    tags
}

var (
	_ provider.Driver   = (*driver)(nil)
	_ provider.Insecure = (*driver)(nil)
)

// Horizon implements [provider.Driver].
func (*driver) Horizon() time.Duration { return horizon }

// Insecure implements [provider.Insecure]. Of the endpoints in the catalog it says nothing.
func (d *driver) Insecure() string {
	c := d.session.cloud
	if c.insecure == "" {
		return ""
	}
	return fmt.Sprintf("key %s: cloud %q: %s", cloudsKey, c.name, c.insecure)
}

// decode reads a spec without judging it: what has an instance, or had one, may break a rule that is newer.
func decode(raw json.RawMessage) (providerspec.OpenStack, error) {
	s, err := providerspec.Read[providerspec.OpenStack](raw, Kind)
	return s, provider.Refused(provider.Invalid, err)
}

// parse reads a spec of a Machine in a namespace, if that is known.
func parse(raw json.RawMessage, namespace string) (providerspec.OpenStack, error) {
	s, err := decode(raw)
	if err != nil {
		return s, err
	}
	of := providerspec.Subject{Namespace: cmp.Or(namespace, s.CloudsSecret.Namespace)}
	if errs, _ := providerspec.Validate(raw, of); len(errs) > 0 {
		return s, provider.Errorf(provider.Invalid, "%w", errs.ToAggregate())
	}
	return s, nil
}

// connect returns who calls the cloud, and a context for one call to the driver.
func (d *driver) connect(ctx context.Context) (context.Context, context.CancelFunc, caller, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	s, err := d.session.connect(ctx)
	if e, ok := errors.AsType[*provider.Error](err); ok && e.Code == provider.Denied {
		err = provider.ErrorAfter(e.Code, e.RetryAfter, "credentials secret %s/%s: %w", d.account.Namespace, d.account.Secret, e)
	}
	return ctx, cancel, caller{s, d.session}, err
}

// userData returns what an instance boots with, or nil if the spec names no Secret. A missing Secret may come yet.
func (d *driver) userData(ctx context.Context, secret string) ([]byte, error) {
	const most = 65535 / 4 * 3 // Nova's limit is on its base64 text
	values, _, err := d.account.Guest(ctx, secret, most)
	return values[provider.KeyUserData], err
}

func providerID(id string) string { return "openstack:///" + id }

// owner is what the tags of a thing say: whose it is.
type owner struct {
	cluster bool // it is the cluster's
	uid     types.UID
	mark    types.UID // of the one cluster; empty if it carries none
	token   string
}
