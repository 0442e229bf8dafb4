// SPDX-License-Identifier: Apache-2.0

// Package metal3 is the driver for bare metal: an instance is a BareMetalHost that a Machine has claimed.
package metal3

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

const (
	// Kind is the kind of providerSpec that is served here (SPEC E29).
	Kind = "BareMetalMachineProviderSpec"

	// horizon is an invocation's time: the API server's reads do not lag behind its writes, and the host that a Machine names is
	// claimed at the version that was seen (RELIABILITY G6).
	horizon = 24 * time.Second
	// restock is when a Machine that found no host looks again (SPEC E31).
	restock = 30 * time.Second
)

// host is what the cloud is made of.
type host = metal3v1alpha1.BareMetalHost

// Provider returns the line for bare metal in the table of drivers; the hosts are those of the Machine's namespace.
func Provider(hosts Hosts) provider.Provider {
	return provider.Provider{
		Name:  "baremetal",
		Kinds: []string{Kind},
		Account: func(spec json.RawMessage) (region, secret string, err error) {
			_, err = decode(spec)
			return "", "", err
		},
		// A host's capacity is known once it was inspected, not before it was chosen (SPEC E37).
		InstanceType: func(spec json.RawMessage) (provider.InstanceType, error) {
			_, err := decode(spec)
			return provider.InstanceType{}, err
		},
		Open: func(_ context.Context, a provider.Account) (provider.Driver, error) {
			if a.ClusterID == "" {
				return nil, provider.Errorf(provider.Invalid, "cluster id %q: hosts cannot be told from another cluster's", a.ClusterID)
			}
			return &driver{hosts: hosts, cluster: a.ClusterID, mark: a.ClusterUID, namespace: a.Namespace, secret: a.UserData}, nil
		},
	}
}

// driver is one cluster's view of the hosts in a namespace.
type driver struct {
	hosts              Hosts
	cluster, namespace string
	mark               types.UID // goes into the one write that claims a host, so it is in no frozen request
	secret             func(ctx context.Context, name string) (map[string][]byte, string, error)
}

var _ provider.Driver = (*driver)(nil)

// decode reads a spec without judging it: what has a host, or had one, may break a rule that is newer.
func decode(raw json.RawMessage) (providerspec.BareMetal, error) {
	var s providerspec.BareMetal
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, provider.Errorf(provider.Invalid, "providerSpec.value: %w", err)
	}
	if s.Kind != Kind {
		return s, provider.Errorf(provider.Invalid, "providerSpec.value.kind: %q is not %s", s.Kind, Kind)
	}
	return s, nil
}

// parse reads a spec of a Machine in a namespace, if that is known; an unknown field is an error (SPEC E29).
func parse(raw json.RawMessage, namespace string) (providerspec.BareMetal, error) {
	s, err := decode(raw)
	if err != nil {
		return s, err
	}
	of := providerspec.Subject{Namespace: cmp.Or(namespace, s.UserData.Namespace)}
	if errs, _ := providerspec.Validate(raw, of); len(errs) > 0 {
		return s, provider.Errorf(provider.Invalid, "%w", errs.ToAggregate())
	}
	return s, nil
}

// Resolve implements [provider.Driver]. Which host it will be is chosen in Create, under the intent.
func (d *driver) Resolve(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	s, err := parse(raw, d.namespace)
	if err != nil {
		return nil, err
	}
	if s.UserData.Name != "" {
		values, _, err := d.secret(ctx, s.UserData.Name)
		if err != nil {
			return nil, provider.Errorf(provider.CodeOf(err), "providerSpec.value.userData.name: %q: %w", s.UserData.Name, err)
		}
		if _, ok := values[provider.KeyUserData]; !ok && values["value"] == nil { // what the operator reads, once the host is taken
			return nil, provider.Errorf(provider.NotFound, "providerSpec.value.userData.name: %q: the Secret has no key userData: add it", s.UserData.Name)
		}
	}
	frozen, err := json.Marshal(s)
	return frozen, provider.Coded(err)
}

// Find implements [provider.Driver].
func (d *driver) Find(ctx context.Context, r provider.Ref) ([]provider.Instance, error) {
	hosts, err := d.named(ctx, r)
	if err != nil {
		return nil, provider.Coded(err)
	}
	all := d.instances(hosts)
	for k, h := range hosts {
		if !d.ours(h) && r.ProviderID != "" { // it is called as its Machine records it, also when the host was made anew
			all[k].ProviderID = r.ProviderID
		}
	}
	return all, nil
}

// List implements [provider.Driver]. What OpenShift's actuator gave to a Machine of this API server is the cluster's as well.
func (d *driver) List(ctx context.Context) ([]provider.Instance, error) {
	all, err := d.hosts.List(ctx, d.namespace)
	if err != nil {
		return nil, provider.Coded(err)
	}
	return d.instances(slices.DeleteFunc(all, func(h host) bool { return !d.ours(h) && !unsigned(h) })), nil
}

// InstanceTypes implements [provider.Driver]: hosts are of no type (SPEC S54).
func (d *driver) InstanceTypes(context.Context) ([]provider.InstanceType, error) { return nil, nil }

// Horizon implements [provider.Driver].
func (d *driver) Horizon() time.Duration { return horizon }

// named returns the hosts that r means: those that its Machine claimed, or what carries no claim of ours and has the Machine
// for its consumer. By the consumer's name alone that is said of no host but the recorded one, as the Machine may be made anew,
// unless it records none: then OpenShift was about to give it this one (SPEC E30).
func (d *driver) named(ctx context.Context, r provider.Ref) ([]host, error) {
	var all []host
	switch name := nameOf(r); {
	case r.UID != "":
		listed, err := d.hosts.List(ctx, d.namespace)
		if err != nil {
			return nil, err
		}
		all = listed
	case name != "":
		h, err := d.hosts.Get(ctx, d.namespace, name)
		if errors.Is(err, ErrGone) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		all = []host{h}
	}
	return slices.DeleteFunc(all, func(h host) bool { return !d.means(r, h) }), nil
}

func (d *driver) means(r provider.Ref, h host) bool {
	ref := h.Spec.ConsumerRef
	switch {
	case r.Attempt && h.Annotations[annotationToken] != r.Token:
		return false
	case d.ours(h) && r.UID == "":
		return r.ID == id(h)
	case d.ours(h):
		return ref.UID == r.UID
	}
	// Who claims without a UID names its Machine. A host is called the same by its next consumer, and has another UID when it
	// was made anew.
	recorded := nameOf(provider.Ref{ProviderID: r.ProviderID}) == h.Name
	given := r.UID != "" && r.ProviderID == ""
	return unsigned(h) && ref.Name == r.Name && (ref.Namespace == "" || ref.Namespace == h.Namespace) && (given || recorded)
}

// unsigned reports whether a Machine has claimed h through another actuator, which names it and writes no UID.
func unsigned(h host) bool {
	return isOurs(h.Spec.ConsumerRef, "") && h.Annotations[annotationCluster] == ""
}

// ours reports whether a Machine of this cluster claimed h through this driver, which alone writes a consumer's UID. An
// annotation that somebody took away says nothing; that of another cluster does.
func (d *driver) ours(h host) bool {
	ref, of := h.Spec.ConsumerRef, h.Annotations[annotationCluster]
	return isMachine(ref) && ref.UID != "" && (of == "" || of == d.cluster)
}

// nameOf returns the name of the host that r records, or "".
func nameOf(r provider.Ref) string {
	if name, _, ok := strings.Cut(r.ID, "/"); ok {
		return name
	}
	if rest, ok := strings.CutPrefix(r.ProviderID, machine.SchemeBareMetal); ok {
		if parts := strings.Split(rest, "/"); len(parts) == 3 {
			return parts[1]
		}
	}
	return ""
}

// providerIDOf is how the Node of a host is named (SPEC E34).
func providerIDOf(h host) string {
	return fmt.Sprintf("%s%s/%s/%s", machine.SchemeBareMetal, h.Namespace, h.Name, h.UID)
}
