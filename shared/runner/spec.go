// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"encoding/json"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/providerspec"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// specs are providerSpecs as drivers get them, with the defaults of a cluster that has no admission policies (SPEC
// B75, B76, B78). Most Machines ask for what their set's template asks for, so each spec is filled in once.
type specs map[asked]json.RawMessage

type asked struct {
	raw string
	of  providerspec.Subject
}

func (known specs) filled(s snapshot.Snapshot, o plan.Object) json.RawMessage {
	raw, of := s.ProviderSpec(o)
	of.Name = "" // defaults do not depend on it
	if spec, ok := known[asked{string(raw), of}]; ok {
		return spec
	}
	spec := providerspec.Default(raw, of)
	known[asked{string(raw), of}] = spec
	return spec
}
