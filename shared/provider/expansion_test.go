// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A file whose aliases repeat much is known by its text, however they are set apart; what people write is not (2c).
func TestExpands(t *testing.T) {
	t.Parallel()
	regions := "auth: &a {auth_url: https://keystone:5000/v3, username: machines, password: canary}\nclouds:\n"
	for _, r := range strings.Split("abcdefghijklmnopqrst", "") {
		regions += "  " + r + ": {auth: *a, region_name: " + r + "}\n"
	}
	nested := "a: &a [x, x]\n"
	for _, l := range strings.Split("bcdefghijklmnopqrst", "") {
		nested += l + ": &" + l + " [*" + string(l[0]-1) + ", *" + string(l[0]-1) + "]\n"
	}
	long := "a: &a " + strings.Repeat("e", 30000) + "\n"
	tenants := "tls: &tls {verify: true, interface: public}\nbase: &base\n  <<: *tls\n  auth_type: password\n" +
		"one: &one {auth_url: https://keystone-1:5000/v3, username: machines, password: canary}\n" +
		"two: &two {auth_url: https://keystone-2:5000/v3, username: machines, password: canary}\nclouds:\n"
	for _, r := range strings.Split("abcdefghijklmnopqrst", "") {
		tenants += "  one-" + r + ": {<<: *base, region_name: one, auth: {<<: *one, project_name: " + r + "}}\n"
		tenants += "  two-" + r + ": {<<: *base, region_name: two, auth: {<<: *two, project_name: " + r + "}}\n"
	}
	keystore := make([]byte, 16<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(keystore) // never fails
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"regions":     {regions, false},
		"no aliases":  {strings.Repeat("password: a&b*c & *\n", 10000), false},
		"merges":      {"a: &a {x: 1}\nb: {<<: *a, y: 2}\nc:\n  <<: *a\n", false},
		"tenants":     {tenants, false},
		"no anchor":   {strings.Repeat("- .*-spot-.*\n", 10000), false},
		"no text":     {string(keystore), false},
		"a script":    {strings.Repeat("case $1 in *) a && b;; esac\n", 30), false},
		"one long":    {long + "token: [" + strings.Repeat("*a, ", 4000) + "*a]\n", true},
		"other lines": {long + "token: [" + strings.Repeat("\u0085*a,", 4000) + "*a]\n", true},
		"nested":      {nested, true},
		"many small":  {"a: &a [" + strings.Repeat("x,", 10000) + "x]\nb: [" + strings.Repeat("*a,", 38) + "*a]\nc: &c\nd: &d\ne: &e\nf: &f\n", true},
		"a large one": {tenants + strings.Repeat("# a comment\n", 10000), true},
	} {
		if got := Expands([]byte(c.text)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if c.want {
			continue
		}
		if written, err := yaml.YAMLToJSON([]byte(c.text)); err == nil && len(written) > mostExpanded {
			t.Errorf("%s becomes %d bytes", name, len(written))
		}
	}
}

// A few lines that repeat themselves are an error before they take the memory of a function (2c).
func TestFilesThatExpandAreNotRead(t *testing.T) {
	t.Parallel()
	into := map[int][]string{}
	if err := ReadYAML("1: [&a \""+strings.Repeat("e", 20000)+"\""+strings.Repeat(",*a", 5000)+"]\n", &into); !errors.Is(err, ErrExpands) || len(into) > 0 {
		t.Error(err)
	}
	if err := ReadYAML("1: [&a x, *a]\n2: ['.*']\n", &into); err != nil || len(into[1]) != 2 || into[2][0] != ".*" {
		t.Errorf("%v: %v", into, err)
	}
	if err := ReadYAML("1: [x]\n1: [y]\n", &into); err == nil {
		t.Error("a field that is said twice is read")
	}
}
