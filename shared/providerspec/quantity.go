// SPDX-License-Identifier: Apache-2.0

package providerspec

import (
	"encoding/json"
	"errors"
	"regexp"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Quantity is a number with a unit, such as 12Gi. Unlike a resource.Quantity it is read in no time whatever is
// written there: one of those takes hours over 1e-99999999.
type Quantity struct{ resource.Quantity }

// The policies match the same pattern before they convert.
var quantityPattern = regexp.MustCompile(`^[+-]?[0-9]{1,18}([.][0-9]{1,9})?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`)

var errQuantity = errors.New("must be a quantity such as 12Gi")

// UnmarshalJSON reads a string or a number.
func (q *Quantity) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	s := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
	}
	if !quantityPattern.MatchString(s) {
		return errQuantity
	}
	parsed, err := resource.ParseQuantity(s)
	if err != nil {
		return errQuantity
	}
	q.Quantity = parsed
	return nil
}

// positive wants a quantity, if it is given, above nothing.
func (f *findings) positive(p *field.Path, q *Quantity) {
	if q != nil && q.Sign() <= 0 {
		f.fail(field.Invalid(p, q.String(), "must be positive"))
	}
}

// atMostQuantity wants a quantity, if it is given, that is not above most.
func (f *findings) atMostQuantity(p *field.Path, q *Quantity, most resource.Quantity) {
	if q != nil && q.Cmp(most) > 0 {
		f.fail(field.Invalid(p, q.String(), "must be at most "+most.String()))
	}
}
