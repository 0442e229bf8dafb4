// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// The bill names the product with what every function's process is built of, the runtime that serves it and Go's own library among it,
// each module once, with the hash that go.sum has; and nothing that only tests need.
func TestBillIsWhatIsBuilt(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	if err := run(&text); err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(text.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, p := range d.Packages {
		if names[p.Name] {
			t.Errorf("%s is there twice", p.Name)
		}
		names[p.Name] = true
		sum := strings.TrimPrefix(p.Comment, "go.sum: ")
		if p.Name != product && p.Name != library && !strings.Contains(string(sums), p.Name+" "+p.Version+" "+sum) {
			t.Errorf("%s %s: go.sum has no hash %q", p.Name, p.Version, sum)
		}
		if p.ID == "" || strings.ContainsAny(p.ID, "/_@") || p.Version == "" {
			t.Errorf("%+v", p)
		}
	}
	for _, want := range []string{product, "k8s.io/api", "github.com/openshift/api", "github.com/cloudevents/sdk-go/v2", "knative.dev/func-go"} {
		if !names[want] {
			t.Errorf("%s is missing", want)
		}
	}
	if at := slices.IndexFunc(d.Packages, func(p part) bool { return p.Name == library }); at < 0 || "go"+d.Packages[at].Version != runtime.Version() ||
		d.Packages[at].Refs[0].Locator != "pkg:golang/stdlib@"+d.Packages[at].Version {
		t.Errorf("Go's own library, of %s, is not in it", runtime.Version())
	}
	if names["github.com/google/go-cmp"] {
		t.Error("what only tests need is in it")
	}
	self := slices.IndexFunc(d.Packages, func(p part) bool { return p.Name == product })
	if len(d.Relationships) != len(d.Packages) || d.Relationships[0].To != d.Packages[self].ID {
		t.Errorf("%d relationships of %d parts, the first is %+v", len(d.Relationships), len(d.Packages), d.Relationships[0])
	}
}
