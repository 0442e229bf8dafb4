// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// Kind is that of the providerSpec (SPEC E5).
const Kind = "AWSMachineProviderConfig"

// at returns the path of a field of the spec, as findings name it.
func at(names ...string) *field.Path {
	return field.NewPath("providerSpec", "value").Child(names[0], names[1:]...)
}

// decode reads a spec without judging it.
func decode(raw json.RawMessage) (providerspec.AWS, error) {
	var s providerspec.AWS
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &s); err != nil {
		return s, provider.Errorf(provider.Invalid, "providerSpec.value: %w", err)
	}
	if s.Kind != Kind {
		return s, provider.Errorf(provider.Invalid, "providerSpec.value.kind: %q is not %s", s.Kind, Kind)
	}
	return s, nil
}

// parse reads a spec that can be resolved.
func parse(raw json.RawMessage) (providerspec.AWS, error) {
	if wrong, _ := providerspec.Validate(raw, providerspec.Subject{}); len(wrong) > 0 {
		return providerspec.AWS{}, provider.Errorf(provider.Invalid, "%w", wrong.ToAggregate())
	}
	return decode(raw)
}
