// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
)

// That a type is unknown takes a set's capacity away, so only a list that lacks it may say so (E4, G5).
func TestListThatIsNotThereKnowsNoType(t *testing.T) {
	t.Parallel()
	listed := []provider.InstanceType{{Name: "large", MilliCPU: 8000}}
	gone := provider.Errorf(provider.NotFound, "404 page not found")
	for _, c := range []struct {
		name, asked string
		err         error
		want        provider.Code
	}{
		{"the list lacks it", "small", nil, provider.NotFound},
		{"there is no list", "large", gone, provider.Unknown},
		{"asked too often", "large", provider.Errorf(provider.Throttled, "slow down"), provider.Throttled},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clouds := NewClouds([]provider.Provider{{
				Name: "memory", Kinds: []string{memory.Kind},
				InstanceType: func(json.RawMessage) (provider.InstanceType, error) { return provider.InstanceType{Name: c.asked}, nil },
			}}, nil)
			a := account{types: func(context.Context, struct{}) ([]provider.InstanceType, error) { return listed, c.err }}
			got, err := clouds.instanceType(t.Context(), a, fmt.Appendf(nil, `{"kind":%q}`, memory.Kind))
			if got != nil || provider.CodeOf(err) != c.want {
				t.Errorf("%v, %v: %v, want %v", got, err, provider.CodeOf(err), c.want)
			}
		})
	}
}
