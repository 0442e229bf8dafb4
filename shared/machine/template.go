// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// TemplateOf returns a digest of what set makes its Machines from.
func TemplateOf(set *MachineSet) string {
	text, err := json.Marshal(set.Spec.Template.Spec)
	if err != nil { // what was decoded can be encoded
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))[:8]
}

// SameSpec reports whether m asks its cloud for what the next Machine of set will ask for.
func SameSpec(set *MachineSet, m *Machine) bool {
	a, b := raw(set.Spec.Template.Spec.ProviderSpec.Value), raw(m.Spec.ProviderSpec.Value)
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func raw(v *runtime.RawExtension) []byte {
	if v == nil {
		return nil
	}
	return v.Raw
}
