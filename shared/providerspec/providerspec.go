// SPDX-License-Identifier: Apache-2.0

// Package providerspec holds what a Machine may ask of its cloud: fields, defaults, rules of every kind of providerSpec.
package providerspec

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Subject is what defaults and rules look at beside the spec: the Machine that it belongs to.
type Subject struct {
	Name         string
	Namespace    string
	ClusterID    string
	Region       string // of the cluster; empty if nobody says
	Tags         string // of all that the cluster has on AWS, a list of [AWSTag] in JSON; empty if nobody says
	Arch         string // of the Node; amd64 if empty
	ControlPlane bool
}

// Head is what every kind of spec begins with.
type Head struct {
	APIVersion string         `json:"apiVersion,omitempty"`
	Kind       string         `json:"kind,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"` // manifests carry one; nobody reads it
}

// LocalRef names an object in the Machine's own namespace.
type LocalRef struct {
	Name string `json:"name,omitempty"`
}

// SecretRef names a Secret. Its namespace, if given, is the Machine's own.
type SecretRef struct {
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// Known reports whether the rules of a kind of spec stand here. What other kinds may say is for their driver to judge.
func Known(kind string) bool {
	_, ok := kindOf(kind)
	return ok
}

// KindOf returns the kind that a spec names, or "".
func KindOf(raw json.RawMessage) string {
	var head struct {
		Kind any `json:"kind"`
	}
	if decodeInto(raw, &head) != nil {
		return ""
	}
	kind, _ := head.Kind.(string)
	return kind
}

// Validate returns what is wrong with a spec, each error with its field and value, and what is strange about it but
// works. The spec has its defaults already. It never panics, and of a kind that is not [Known] it finds nothing.
func Validate(raw json.RawMessage, of Subject) (field.ErrorList, []string) {
	k, ok := kindOf(KindOf(raw))
	if !ok {
		return nil, nil
	}
	var f findings
	s := k.empty()
	if f.bound(raw); len(f.errs) > 0 {
		return f.errs, nil
	}
	f.decode(raw, s, k.strict)
	if len(f.errs) > 0 {
		return f.errs, f.warnings // a field that cannot be read is not also missing
	}
	if v := s.version(); !slices.Contains(k.versions, v) {
		f.warn(at("apiVersion"), "%q is not %s", v, k.versions[0])
	}
	s.check(&f, of)
	return f.errs, f.warnings
}

// Default returns the spec with what it leaves open filled in as far as the cluster determines it (SPEC B75, B76, B78).
// Fields that nobody knows are kept. A spec that cannot be read, or of a kind that is not [Known], is returned as it is.
func Default(raw json.RawMessage, of Subject) json.RawMessage {
	k, ok := kindOf(KindOf(raw))
	if !ok || k.fill == nil {
		return raw
	}
	d, ok := draftOf(raw)
	if !ok {
		return raw
	}
	k.fill(d, of)
	return d.result(raw)
}

// spec is one kind of spec, read.
type spec interface {
	version() string
	check(f *findings, of Subject)
}

func (h Head) version() string { return h.APIVersion }

// kind is how one kind of spec is read.
type kind struct {
	versions []string // of the API; another one is worth a warning (B72)
	strict   bool     // a field that nobody knows is an error, not a warning (E29)
	empty    func() spec
	fill     func(d *draft, of Subject)
}

func kindOf(name string) (kind, bool) {
	switch name {
	case "AWSMachineProviderConfig":
		return kind{openshift("awsproviderconfig"), false, func() spec { return new(AWS) }, fillAWS}, true
	case "AzureMachineProviderSpec":
		return kind{openshift("azureproviderconfig"), false, func() spec { return new(Azure) }, fillAzure}, true
	case "VSphereMachineProviderSpec":
		return kind{openshift("vsphereprovider"), false, func() spec { return new(VSphere) }, fillVSphere}, true
	case "OpenstackProviderSpec":
		versions := []string{"machine.openshift.io/v1alpha1", "openstackproviderconfig.openshift.io/v1alpha1"}
		return kind{versions, false, func() spec { return new(OpenStack) }, fillOpenStack}, true
	case "BareMetalMachineProviderSpec":
		return kind{[]string{"baremetal.cluster.k8s.io/v1alpha1"}, true, func() spec { return new(BareMetal) }, nil}, true
	case "OvirtMachineProviderSpec":
		versions := []string{"ovirtproviderconfig.machine.openshift.io/v1beta1"}
		return kind{versions, false, func() spec { return new(Ovirt) }, fillOvirt}, true
	case "LibvirtMachineProviderConfig":
		versions := []string{"libvirtproviderconfig.openshift.io/v1beta1", "libvirtproviderconfig.openshift.io/v1alpha1"}
		return kind{versions, false, func() spec { return new(Libvirt) }, fillLibvirt}, true
	case "KubemarkMachineProviderSpec":
		return kind{[]string{"kubemark.machine.openshift.io/v1alpha1"}, true, func() spec { return new(Kubemark) }, nil}, true
	}
	return kind{}, false
}

// openshift returns the versions of a spec that moved to OpenShift's own group.
func openshift(older string) []string {
	older += ".openshift.io"
	return []string{"machine.openshift.io/v1beta1", "machine.openshift.io/v1", older + "/v1beta1", older + "/v1"}
}
