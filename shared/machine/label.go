// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// LabelValue returns text as the value of a label: every run of characters that none may have is one hyphen, what it must
// not begin or end with is cut off, and so is what is too long. A text that can be a value is returned as it is. Of a text
// without a letter or digit of ASCII nothing is left: "".
func LabelValue(text string) string {
	var b strings.Builder
	replaced := false
	for _, r := range text {
		plain := alphanumeric(r) || strings.ContainsRune("-_.", r)
		if plain {
			b.WriteRune(r)
		} else if !replaced {
			b.WriteByte('-')
		}
		replaced = !plain
	}
	value := strings.TrimLeftFunc(b.String(), inner)
	return strings.TrimRightFunc(value[:min(len(value), validation.LabelValueMaxLength)], inner)
}

func inner(r rune) bool { return !alphanumeric(r) }

func alphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// maxWord is how much of a cloud's word is kept: clouds allow 255 characters, and all annotations share 256 KiB.
const maxWord = 1024

// SetWord writes on m what its cloud calls the type, the region or the zone of its instance: into the label, as far as a
// label can hold it, and in the cloud's own words into the annotation of the same key where those are others. A label that
// somebody set stays.
func SetWord(m *Machine, label, word string) {
	value := LabelValue(word)
	if value != "" {
		metav1.SetMetaDataLabel(&m.ObjectMeta, label, value)
	}
	if value != word {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, label, strings.ToValidUTF8(word[:min(len(word), maxWord)], ""))
	}
}

// LacksWord reports whether SetWord would change m, whose label nobody set.
func LacksWord(m *Machine, label, word string) bool {
	if _, set := m.Labels[label]; set || word == "" {
		return false
	}
	_, told := m.Annotations[label]
	return LabelValue(word) != "" || !told
}

// Word returns what the cloud of m calls the type, the region or the zone of its instance, in its own words if they are
// known, else what the label says.
func Word(m *Machine, label string) string {
	if exact, ok := m.Annotations[label]; ok && LabelValue(exact) == m.Labels[label] {
		return exact
	}
	return m.Labels[label]
}
