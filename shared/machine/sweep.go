// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const sweepSchema = 1

// SweepKey is the key of the state in the ConfigMap of name ConfigMapSweep.
const SweepKey = "state"

// SweepState is what sweep-instances remembers between sweeps, in the ConfigMap of name ConfigMapSweep. It is written
// by compare-and-swap.
type SweepState struct {
	Schema int `json:"schema"`
	// Accounts are the clouds that Machines ever used, by account key, until they are known to be empty.
	Accounts map[string]SweptAccount `json:"accounts,omitempty"`
	// Sightings are the instances that no Machine owns, by [SightingKey]: since when that is known.
	Sightings map[string]metav1.Time `json:"sightings,omitempty"`
}

// SweptAccount says how to open an account again once no Machine names it any more.
type SweptAccount struct {
	Namespace  string          `json:"namespace"`
	ClusterID  string          `json:"clusterID"`
	Spec       json.RawMessage `json:"spec"` // a providerSpec that leads to it
	EmptySince *metav1.Time    `json:"emptySince,omitempty"`
}

// SightingKey identifies an instance of an account in Sightings.
func SightingKey(account, id string) string { return account + " " + id }

// ParseSweepState reads a state; the empty text is a state without memories. It refuses unknown fields and a newer
// schema.
func ParseSweepState(text string) (SweepState, error) {
	if text == "" {
		return SweepState{Schema: sweepSchema}, nil
	}
	var s SweepState
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return SweepState{}, fmt.Errorf("parse sweep state: %w", err)
	}
	if s.Schema != sweepSchema {
		return SweepState{}, fmt.Errorf("parse sweep state: schema %d, want %d", s.Schema, sweepSchema)
	}
	return s, nil
}

// String returns the state as it is stored.
func (s SweepState) String() string {
	b, err := json.Marshal(s)
	if err != nil { // Spec was valid JSON where it came from
		return ""
	}
	return string(b)
}
