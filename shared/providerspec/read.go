// SPDX-License-Identifier: Apache-2.0

package providerspec

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// At returns the path of a field of a spec, as findings name it.
func At(names ...string) *field.Path { return at(names...) }

// Read decodes a spec of a kind without judging it. Its error names the field.
func Read[S interface{ kind() string }](raw json.RawMessage, kind string) (S, error) {
	var s S
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &s); err != nil {
		return s, fmt.Errorf("providerSpec.value: %w", err)
	}
	if s.kind() != kind {
		return s, fmt.Errorf("providerSpec.value.kind: %q is not %s", s.kind(), kind)
	}
	return s, nil
}

// ReadValid is Read of a spec that breaks no rule.
func ReadValid[S interface{ kind() string }](raw json.RawMessage, kind string) (S, error) {
	if wrong, _ := Validate(raw, Subject{}); len(wrong) > 0 {
		var none S
		return none, wrong.ToAggregate()
	}
	return Read[S](raw, kind)
}

func (h Head) kind() string { return h.Kind }
