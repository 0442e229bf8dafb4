// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The AWS workshop against an endpoint that speaks EC2's protocol: masters of no set, a set for each zone, one of them
// scaled up and down. In the end EC2 has the Machines' instances and no other (S73–S79, E5, E11, E12).
func TestStoryOnAWS(t *testing.T) {
	t.Parallel() // it waits more than it works
	if testing.Short() {
		t.Skip("starts the whole system")
	}
	s := playOn(t, "aws")
	t.Run("instances", func(t *testing.T) {
		out, err := s.Kubectl(t.Context(), strings.Fields("get machines"+inMachines+" -o jsonpath={.items[*].spec.providerID}")...)
		if err != nil {
			t.Fatal(err, out)
		}
		var want []string
		for id := range strings.FieldsSeq(out) {
			want = append(want, id[strings.LastIndexByte(id, '/')+1:])
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(s.EC2.Live()))); diff != "" {
			t.Errorf("instances (-of Machines +of EC2):\n%s", diff)
		}
	})
}
