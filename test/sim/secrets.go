// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/plan"
)

// canaries are what the canary looks like: itself, within what is encoded in base64, wherever it begins there, and byte for byte, as fmt
// and JSON write bytes: in numbers, in hexadecimal digits, and as Go does.
var canaries = func() []string {
	numbers := strings.Trim(fmt.Sprint([]byte(Canary)), "[]")
	_, asGo, _ := strings.Cut(strings.TrimSuffix(fmt.Sprintf("%#v", []byte(Canary)), "}"), "{")
	all := []string{Canary, numbers, strings.ReplaceAll(numbers, " ", ","), hex.EncodeToString([]byte(Canary)), asGo}
	for before := range 3 {
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat(".", before) + Canary))
		all = append(all, text[(before*8+5)/6:len(text)-1]) // characters that stand for nothing else
	}
	return all
}()

// hasCanary reports whether text tells the canary.
func hasCanary(text string) bool {
	return len(text) >= len(Canary) && slices.ContainsFunc(canaries, func(c string) bool { return strings.Contains(text, c) })
}

// told holds R-S13 for what people are told, and clouds.
func (p *Play) told(message string) {
	if hasCanary(message) {
		p.violate("R-S13", "a secret is told: %s", message)
	}
}

// watchSecrets holds R-S13 for what a write sends, of whatever kind, and whatever is answered.
func (p *Play) watchSecrets(q *proc, a plan.Action) {
	var sent plan.Object
	switch a := a.(type) {
	case plan.Create:
		sent = a.Object
	case plan.Update:
		sent = a.New
	case plan.UpdateStatus:
		sent = a.New
	case plan.Approve:
		sent = a.Approved()
	case plan.Delete, plan.Evict, plan.CreateInstance, plan.DeleteInstance, plan.UpdateInstance, plan.PowerCycle:
		return
	}
	if tells(reflect.ValueOf(sent)) {
		p.violate("R-S13", "%s stores a secret: %s", q, a.Key())
	}
}

// tells reports whether the canary is anywhere in v.
func tells(v reflect.Value) bool {
	switch v.Kind() { // the others hold no text
	case reflect.String:
		return hasCanary(v.String())
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && tells(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Time]() {
			return false
		}
		for i := range v.NumField() {
			if tells(v.Field(i)) {
				return true
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 && v.Kind() == reflect.Slice {
			return hasCanary(string(v.Bytes()))
		}
		for i := range v.Len() {
			if tells(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		for at := v.MapRange(); at.Next(); {
			if tells(at.Key()) || tells(at.Value()) {
				return true
			}
		}
	}
	return false
}
