// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/scenario"
)

func TestScenarios(t *testing.T) {
	t.Parallel()
	scenario.Run(t, Function)
}

func TestProperties(t *testing.T) {
	t.Parallel()
	scenario.Properties(t, Function)
}

func TestTagIsNamedOnlyWhereNothingKeptCarriesIt(t *testing.T) {
	t.Parallel()
	in := provider.Instance{ID: "i-1", ProviderID: "x://i-1", UID: "u", Name: "worker-a"}
	if got := (find{in: in}).deletion().Ref; got.UID != "u" || got.ID != "i-1" || got.ProviderID != "x://i-1" {
		t.Errorf("orphan: %+v", got)
	}
	if got := (find{in: in, shared: true}).deletion().Ref; got.UID != "" || got.ID != "i-1" {
		t.Errorf("duplicate: %+v", got)
	}
}
