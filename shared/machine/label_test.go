// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// What real clouds call their types, regions and zones is kept as far as a label can hold it.
func TestLabelValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"m5.large":                      "m5.large",
		"nova":                          "nova",
		"":                              "",
		"SCS-4V:16:100":                 "SCS-4V-16-100",
		"8 GB General Purpose v1":       "8-GB-General-Purpose-v1",
		"Data Center 1":                 "Data-Center-1",
		"az (east), rack 7":             "az-east-rack-7",
		"_under_":                       "under",
		"(all in brackets)":             "all-in-brackets",
		"東京":                            "",
		"東京-1":                          "1",
		strings.Repeat("a", 63):         strings.Repeat("a", 63),
		strings.Repeat("a", 80):         strings.Repeat("a", 63),
		strings.Repeat("a", 62) + ". b": strings.Repeat("a", 62),
	} {
		if got := machine.LabelValue(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// Whatever a cloud says, what is made of it is the value of a label; what can be one stays as it is.
func FuzzLabelValue(f *testing.F) {
	for _, text := range []string{"a", "SCS-4V:16:100", "-", "\xff\xfe", "a\x00b", strings.Repeat("é.", 100)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := machine.LabelValue(text)
		if wrong := validation.IsValidLabelValue(got); len(wrong) > 0 {
			t.Errorf("%q becomes %q: %v", text, got, wrong)
		}
		if len(validation.IsValidLabelValue(text)) == 0 && got != text {
			t.Errorf("%q can be a value, but becomes %q", text, got)
		}
		if again := machine.LabelValue(got); again != got {
			t.Errorf("%q becomes %q, then %q", text, got, again)
		}
	})
}

// The cloud's own word is known as long as the label is what was made of it.
func TestWord(t *testing.T) {
	t.Parallel()
	const label = machine.LabelZone
	m := &machine.Machine{}
	if !machine.LacksWord(m, label, "Data Center 1") || machine.LacksWord(m, label, "") {
		t.Error("a word is missing as long as it is not written, unless there is none")
	}
	machine.SetWord(m, label, "Data Center 1")
	if got := machine.Word(m, label); got != "Data Center 1" || m.Labels[label] != "Data-Center-1" {
		t.Errorf("word %q, label %q", got, m.Labels[label])
	}
	if machine.LacksWord(m, label, "Data Center 1") {
		t.Error("what is written is still missing")
	}
	m.Labels[label] = "1a"
	if got := machine.Word(m, label); got != "1a" {
		t.Errorf("somebody set another label: %q", got)
	}
	nameless := &machine.Machine{}
	machine.SetWord(nameless, label, "東京")
	if _, set := nameless.Labels[label]; set || machine.Word(nameless, label) != "東京" || machine.LacksWord(nameless, label, "東京") {
		t.Errorf("no label can hold it, the annotation does: %v %v", nameless.Labels, nameless.Annotations)
	}
	plain := &machine.Machine{}
	machine.SetWord(plain, label, "nova")
	if len(plain.Annotations) != 0 || plain.Labels[label] != "nova" {
		t.Errorf("a word that is a label needs no annotation: %v", plain.Annotations)
	}
	long := &machine.Machine{}
	machine.SetWord(long, label, strings.Repeat("é", 300_000))
	if n := len(long.Annotations[label]); n > 1024 || n < 1000 {
		t.Errorf("%d bytes of a word are kept", n)
	}
}
