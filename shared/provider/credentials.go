// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"fmt"
	"io"
)

// Credentials are what a Secret holds, by its keys. Whoever prints, encodes or logs them shows the keys and no value. fmt calls no
// method of what stands in a field that is not exported: what has such a field keeps no credentials there.
type Credentials map[string][]byte

// String returns the keys.
func (c Credentials) String() string { return fmt.Sprint(c.keys()) }

// Format implements [fmt.Formatter]: the same for every verb.
func (c Credentials) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, c.String()) }

// MarshalJSON implements [json.Marshaler], for handlers of slog too. Nothing reads it.
func (c Credentials) MarshalJSON() ([]byte, error) { return json.Marshal(c.keys()) }

func (c Credentials) keys() map[string]string {
	if c == nil {
		return nil
	}
	keys := make(map[string]string, len(c))
	for key := range c {
		keys[key] = "(secret)"
	}
	return keys
}
