// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// Kind is that of the providerSpec (SPEC E5).
const Kind = "AWSMachineProviderConfig"

func at(names ...string) *field.Path { return providerspec.At(names...) }

// decode reads a spec without judging it.
func decode(raw json.RawMessage) (providerspec.AWS, error) {
	s, err := providerspec.Read[providerspec.AWS](raw, Kind)
	return s, provider.Refused(provider.Invalid, err)
}

// parse reads a spec that can be resolved.
func parse(raw json.RawMessage) (providerspec.AWS, error) {
	s, err := providerspec.ReadValid[providerspec.AWS](raw, Kind)
	return s, provider.Refused(provider.Invalid, err)
}
