// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"encoding/json"
)

// Stocked is implemented by drivers whose instances are taken from a stock that people fill (SPEC E37).
type Stocked interface {
	// Stock returns what is there for Machines of a spec. It writes nothing; an error proves nothing.
	Stock(ctx context.Context, spec json.RawMessage) (Stock, error)
}

// Stock is what a cloud holds ready for one spec, in one reading.
type Stock struct {
	Free  int      `json:"free,omitempty"`  // what a Machine of the spec could have now
	Taken []string `json:"taken,omitempty"` // the Machines of the account's namespace that have one, whatever their spec; sorted
}
