// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
)

// Every time that is remembered is bounded, also one that is added to the state one day, and the state that was read stays as it is.
func TestNothingIsRememberedOfTomorrow(t *testing.T) {
	t.Parallel()
	tomorrow := epoch.Add(48 * time.Hour)
	var s autoscaling.State
	filled := fill(reflect.ValueOf(&s).Elem(), tomorrow)
	before := s.String()
	now := bounded(s, epoch)
	if text := now.String(); filled < 16 || strings.Contains(text, tomorrow.Format(time.DateOnly)) {
		t.Errorf("%d times of tomorrow: %s", filled, text)
	}
	if after := s.String(); after != before {
		t.Errorf("the state that was read changed to %s", after)
	}
	var past autoscaling.State
	fill(reflect.ValueOf(&past).Elem(), epoch)
	if got, want := bounded(past, epoch), past; got.String() != want.String() {
		t.Errorf("times of now became %s", got)
	}
}

// fill puts one element into everything, and the time into each field for one. It returns their number.
func fill(v reflect.Value, at time.Time) (n int) {
	if v.Type() == reflect.TypeFor[metav1.Time]() {
		v.Set(reflect.ValueOf(metav1.NewTime(at)))
		return 1
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return fill(v.Elem(), at)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return fill(v.Index(0), at)
	case reflect.Map:
		key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		key.SetString("x")
		n = fill(element, at)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, element)
	case reflect.Struct:
		for i := range v.NumField() {
			n += fill(v.Field(i), at)
		}
	}
	return n
}
