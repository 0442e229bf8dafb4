// SPDX-License-Identifier: Apache-2.0

package providerspec

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// BareMetal is the spec of a host that Metal3 provisions (SPEC E29).
type BareMetal struct {
	Head
	Image        BareMetalImage        `json:"image,omitzero"`
	CustomDeploy BareMetalCustomDeploy `json:"customDeploy,omitzero"`
	UserData     SecretRef             `json:"userData,omitzero"`
	HostSelector BareMetalHostSelector `json:"hostSelector,omitzero"`
}

// BareMetalImage is written to the host's disk. Checksum is the sum itself or a URL of it.
type BareMetalImage struct {
	URL      string `json:"url,omitempty"`
	Checksum string `json:"checksum,omitempty"`
}

// BareMetalCustomDeploy is a way of deploying that the host's ramdisk knows.
type BareMetalCustomDeploy struct {
	Method string `json:"method,omitempty"`
}

// BareMetalHostSelector chooses among the hosts by their labels; all must agree. An empty one takes any.
type BareMetalHostSelector struct {
	MatchLabels      map[string]string      `json:"matchLabels,omitempty"`
	MatchExpressions []BareMetalRequirement `json:"matchExpressions,omitempty"`
}

// BareMetalRequirement is one condition on a label. Operator is one of selection.Operator, in any case.
type BareMetalRequirement struct {
	Key      string   `json:"key,omitempty"`
	Operator string   `json:"operator,omitempty"`
	Values   []string `json:"values,omitempty"`
}

var hasScheme = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*://.`)

// check holds the rules of SPEC E29; that unknown fields are errors is said where the kind is.
func (s *BareMetal) check(f *findings, of Subject) {
	switch url := s.Image.URL; {
	case url != "":
		f.need(at("image", "checksum"), s.Image.Checksum, "image.url is given")
		if !hasScheme.MatchString(url) {
			f.fail(field.Invalid(at("image", "url"), url, "must be a URL"))
		}
	case s.CustomDeploy.Method == "":
		f.fail(field.Required(at("image", "url"), "give image or customDeploy"))
	}
	f.ownNamespace(at("userData"), s.UserData, of)
	p := at("hostSelector")
	f.labels(p.Child("matchLabels"), s.HostSelector.MatchLabels)
	for i, r := range s.HostSelector.MatchExpressions {
		r.check(f, p.Child("matchExpressions").Index(i))
	}
}

// integer is a number that is the value of a label, and that every reader of one takes.
var integer = regexp.MustCompile(`^[0-9]{1,18}$`)

func (r BareMetalRequirement) check(f *findings, p *field.Path) {
	f.labelKey(p.Child("key"), r.Key)
	values := p.Child("values")
	switch operator := strings.ToLower(r.Operator); operator {
	case "in", "notin":
		if len(r.Values) == 0 {
			f.fail(field.Required(values, "must have at least one value"))
		}
		r.checkValues(f, values)
	case "=", "==", "!=", "gt", "lt":
		switch {
		case len(r.Values) != 1:
			f.fail(field.Invalid(values, strings.Join(r.Values, ", "), "must be exactly one value"))
		case operator != "gt" && operator != "lt":
			r.checkValues(f, values)
		case !integer.MatchString(r.Values[0]):
			f.fail(field.Invalid(values, r.Values[0], "must be an integer"))
		}
	case "exists", "!":
		if len(r.Values) > 0 {
			f.fail(field.Invalid(values, strings.Join(r.Values, ", "), "must be empty"))
		}
	default:
		f.fail(field.NotSupported(p.Child("operator"), r.Operator, []string{"in", "notin", "exists", "!", "=", "==", "!=", "gt", "lt"}))
	}
}

// checkValues wants what a label can be: no host would ever match.
func (r BareMetalRequirement) checkValues(f *findings, p *field.Path) {
	if slices.ContainsFunc(r.Values, func(v string) bool { return len(validation.IsValidLabelValue(v)) > 0 }) {
		f.fail(field.Invalid(p, strings.Join(r.Values, ", "), "must be values of a label"))
	}
}
