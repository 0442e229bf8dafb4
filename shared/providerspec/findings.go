// SPDX-License-Identifier: Apache-2.0

package providerspec

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// root is where a spec stands in its Machine. The policies in config/policy say the same words about the same paths.
var root = field.NewPath("providerSpec", "value")

func at(names ...string) *field.Path { return root.Child(names[0], names[1:]...) }

// findings collects what is wrong with a spec, and what is strange.
type findings struct {
	errs     field.ErrorList
	warnings []string
}

func (f *findings) fail(err *field.Error) { f.errs = append(f.errs, err) }

func (f *findings) warn(p *field.Path, format string, args ...any) {
	f.warnings = append(f.warnings, p.String()+": "+fmt.Sprintf(format, args...))
}

// What is said of a spec quotes it, and comes to stand in each Machine that has it, and in the log.
const (
	maxSaid     = 1000 // bytes, of one error or warning
	maxWarnings = 10
)

// Brief returns the first of some errors with the number of all, or "" if there is none.
func Brief(errs field.ErrorList) string {
	switch len(errs) {
	case 0:
		return ""
	case 1:
		return clip(errs[0].Error())
	}
	return fmt.Sprintf("%s (errors in all: %d)", clip(errs[0].Error()), len(errs))
}

// Few returns the first of some warnings with the number of the others.
func Few(warnings []string) []string {
	var few []string
	for _, w := range warnings[:min(len(warnings), maxWarnings)] {
		few = append(few, clip(w))
	}
	if more := len(warnings) - maxWarnings; more > 0 {
		few = append(few, fmt.Sprintf("%s: %d more", root, more))
	}
	return few
}

// clip bounds a text that quotes a spec.
func clip(text string) string {
	if len(text) <= maxSaid {
		return text
	}
	return strings.ToValidUTF8(text[:maxSaid-len("…")], "") + "…"
}

// need wants a value to be given.
func (f *findings) need(p *field.Path, value, what string) {
	if value == "" {
		f.fail(field.Required(p, what))
	}
}

// oneOf wants one of the values, or none at all.
func (f *findings) oneOf(p *field.Path, value string, values ...string) {
	if value != "" && !slices.Contains(values, value) {
		f.fail(field.NotSupported(p, value, values))
	}
}

// between wants a number in a range.
func (f *findings) between(p *field.Path, n, lowest, highest int64) {
	if n < lowest || n > highest {
		f.fail(field.Invalid(p, n, fmt.Sprintf("must be between %d and %d", lowest, highest)))
	}
}

// atLeast wants a number that is large enough.
func (f *findings) atLeast(p *field.Path, n, lowest int64) {
	if n < lowest {
		f.fail(field.Invalid(p, n, "must be at least "+strconv.FormatInt(lowest, 10)))
	}
}

// atMost wants a list that is short enough.
func (f *findings) atMost(p *field.Path, n, most int) {
	if n > most {
		f.fail(field.TooMany(p, n, most))
	}
}

// labels wants labels as a Node or a host may have them.
func (f *findings) labels(p *field.Path, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		f.labelKey(p, key)
		f.labelValue(p.Key(key), labels[key])
	}
}

func (f *findings) labelKey(p *field.Path, key string) {
	if len(validation.IsQualifiedName(key)) > 0 {
		f.fail(field.Invalid(p, key, "must be the key of a label"))
	}
}

func (f *findings) labelValue(p *field.Path, value string) {
	if len(validation.IsValidLabelValue(value)) > 0 {
		f.fail(field.Invalid(p, value, "must be the value of a label"))
	}
}

// secret wants a Secret to be named, in the Machine's own namespace: nothing else may be read for it.
func (f *findings) secret(p *field.Path, ref SecretRef, of Subject) {
	f.need(p.Child("name"), ref.Name, "must name a Secret")
	f.ownNamespace(p, ref, of)
}

func (f *findings) ownNamespace(p *field.Path, ref SecretRef, of Subject) {
	if ref.Namespace != "" && ref.Namespace != of.Namespace {
		f.fail(field.Invalid(p.Child("namespace"), ref.Namespace, "must be the Machine's own namespace "+of.Namespace))
	}
}

// unique remembers names of a list and refuses those that stand there twice.
type unique[T comparable] map[T]bool

func (u unique[T]) add(f *findings, p *field.Path, name T) {
	if u[name] {
		f.fail(field.Duplicate(p, name))
	}
	u[name] = true
}
