// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// Kind is that of the providerSpec (SPEC E38).
const Kind = "AzureMachineProviderSpec"

func at(names ...string) *field.Path { return providerspec.At(names...) }

// decode reads a spec without judging it.
func decode(raw json.RawMessage) (providerspec.Azure, error) {
	s, err := providerspec.Read[providerspec.Azure](raw, Kind)
	return s, provider.Refused(provider.Invalid, err)
}

// parse reads a spec that can be resolved, of a Machine in a namespace.
func parse(raw json.RawMessage, namespace string) (providerspec.Azure, error) {
	if wrong, _ := providerspec.Validate(raw, providerspec.Subject{Namespace: namespace}); len(wrong) > 0 {
		return providerspec.Azure{}, provider.Errorf(provider.Invalid, "%w", wrong.ToAggregate())
	}
	return decode(raw)
}

// regionOf is where a spec wants its instance: a location and, unless it is the Secret's, the resource group. What is in two of
// them is never the same; what is in one is listed at once.
func regionOf(s providerspec.Azure) string {
	region := normal(s.Location)
	if s.ResourceGroup != "" {
		region += "/" + strings.ToLower(s.ResourceGroup)
	}
	return region
}

// normal is the name of a location as the API tells it: "East US 2" is eastus2.
func normal(location string) string {
	return strings.ToLower(strings.ReplaceAll(location, " ", ""))
}
