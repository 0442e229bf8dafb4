// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// spec is the providerSpec of an instance here.
type spec struct {
	APIVersion string          `json:"apiVersion,omitempty"`
	Kind       string          `json:"kind,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Type       string          `json:"type"`
	Region     string          `json:"region,omitempty"`
	Zone       string          `json:"zone,omitempty"`
	Network    string          `json:"network,omitempty"`
	Secret     string          `json:"secret,omitempty"` // name of the credentials Secret

	Tags map[string]string `json:"tags,omitempty"`
}

// standardTypes are offered where a Cloud names none.
var standardTypes = []provider.InstanceType{
	{Name: "large", Arch: "amd64", MilliCPU: 8000, Memory: 32 << 30, Disk: 100 << 30, Zones: []string{defaultZone}, PriceHour: 0.4},
	{Name: "small", Arch: "amd64", MilliCPU: 2000, Memory: 8 << 30, Disk: 30 << 30, Zones: []string{defaultZone}, PriceHour: 0.1},
}

const defaultZone = "zone-a"

func parse(raw json.RawMessage) (spec, error) {
	var s spec
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, provider.Errorf(provider.Invalid, "providerSpec.value: %w", err)
	}
	if s.Type == "" {
		return s, provider.Errorf(provider.Invalid, `providerSpec.value.type: "" names no instance type`)
	}
	return s, nil
}

func account(raw json.RawMessage) (region, secret string, err error) {
	s, err := parse(raw)
	return s.Region, s.Secret, err
}

// instanceType returns only the name: the cloud knows the rest.
func instanceType(raw json.RawMessage) (provider.InstanceType, error) {
	s, err := parse(raw)
	return provider.InstanceType{Name: s.Type}, err
}

// types returns what the cloud offers, sorted by name.
func (c *Cloud) types() []provider.InstanceType {
	all := slices.Clone(c.Types)
	if all == nil {
		all = slices.Clone(standardTypes)
	}
	slices.SortFunc(all, func(a, b provider.InstanceType) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// resolve fills in what the spec leaves to the cloud.
func (c *Cloud) resolve(raw json.RawMessage, region string) (spec, error) {
	s, err := parse(raw)
	if err != nil {
		return s, err
	}
	if !slices.ContainsFunc(c.types(), func(t provider.InstanceType) bool { return t.Name == s.Type }) {
		return s, provider.Errorf(provider.Invalid, "providerSpec.value.type: %q names no instance type", s.Type)
	}
	if s.Network != "" && c.Networks != nil && !slices.Contains(c.Networks, s.Network) {
		return s, provider.Errorf(provider.NotFound, "providerSpec.value.network: there is no network %q", s.Network)
	}
	if s.Zone == "" {
		s.Zone = defaultZone
	}
	s.Region = region
	return s, nil
}
