// SPDX-License-Identifier: Apache-2.0

package test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Where senders prove who they are, the Broker takes replies of the functions' Triggers, every one of them, and of no other
// account.
func TestOnlyTriggersReply(t *testing.T) {
	t.Parallel()
	var want, got []string
	files, err := filepath.Glob("../triggers/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "../triggers/overlays/approve-node/trigger.yaml") {
		for document := range strings.SplitSeq(text(t, file), "\n---\n") {
			var trigger struct {
				Kind     string
				Metadata struct{ Name, Namespace string }
			}
			if err := yaml.Unmarshal([]byte(document), &trigger); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if trigger.Kind == "Trigger" { // its account, as Eventing names it
				want = append(want, "system:serviceaccount:"+trigger.Metadata.Namespace+":"+trigger.Metadata.Name+"-oidc-eventing.knative.dev-trigger")
			}
		}
	}
	var policy struct {
		Spec struct{ From []struct{ Sub string } }
	}
	if err := yaml.Unmarshal([]byte(text(t, "../overlays/oidc/policy.yaml")), &policy); err != nil {
		t.Fatal(err)
	}
	for _, from := range policy.Spec.From {
		if from.Sub != "" {
			got = append(got, from.Sub)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("replies are taken of\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
