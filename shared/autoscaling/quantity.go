// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"encoding/json"
	"errors"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// endless is a number with more digits, or a longer exponent, than an amount of anything has. To read 1e-99999999, or to compare
// 1e99999999 with another quantity, a resource.Quantity takes hours and all memory: it writes all the digits.
var endless = regexp.MustCompile(`(?:^|[^0-9A-Za-z.+-])[+-]?(?:[0-9.]{65}|[0-9.]+[eE][+-]?[0-9]{3,}(?:$|[^0-9A-Za-z.+-]))`)

var errEndless = errors.New("holds a number that is no amount: more than 64 digits, or an exponent of more than two")

// CheckQuantities returns an error if there is a number in JSON, or in a text, that no resource.Quantity may be read from: one
// that takes for ever. Whoever reads what the API server has not read first asks here.
func CheckQuantities(text []byte) error {
	if endless.Match(text) {
		return errEndless
	}
	return nil
}

// ParseQuantity is that of resource, in no time whatever is written there.
func ParseQuantity(text string) (resource.Quantity, error) {
	if endless.MatchString(text) {
		return resource.Quantity{}, errEndless
	}
	return resource.ParseQuantity(text)
}

// Amounts is a corev1.ResourceList that is read in no time whatever is written there.
type Amounts corev1.ResourceList

// UnmarshalJSON implements [json.Unmarshaler].
func (a *Amounts) UnmarshalJSON(text []byte) error {
	if err := CheckQuantities(text); err != nil {
		return err
	}
	return json.Unmarshal(text, (*corev1.ResourceList)(a))
}
