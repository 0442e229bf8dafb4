// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"

	kjson "sigs.k8s.io/json"
)

// ReadRecord decodes what functions keep in annotations and ConfigMaps. Whoever may write there may write anything: an unknown
// field, one that is said twice or in other letters, and whatever follows the record are errors.
func ReadRecord(text string, into any) error {
	wrong, err := kjson.UnmarshalStrict([]byte(text), into)
	return errors.Join(append(wrong, err)...)
}
