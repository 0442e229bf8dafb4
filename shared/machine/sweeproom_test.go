// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is off the record nobody looks into any more, so that it is no more than there is no room for: of those that led to many accounts
// before, down to a number that each may have, then the longest specs. Who is led to now stays on record, however many they are.
func TestNoMoreIsLeftOutThanHasNoRoom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		formers   int // of one Secret, of 25,000 bytes each
		specs     []int
		sightings int // of some 80 bytes
		left      int
		short     []int // which of specs are gone
	}{
		"there is room":                   {formers: 25, specs: []int{30_000}},
		"for few formers there is not":    {formers: 30, left: 3},
		"nor for many":                    {formers: 60, left: 33},
		"sightings have theirs":           {formers: 25, sightings: 5000, left: 2},
		"a spec goes after formers":       {formers: 24, specs: []int{100_000}, left: 1},
		"as many as each may have, stay":  {formers: 20, specs: []int{150_000, 160_000}, short: []int{1}},
		"the longest goes first":          {specs: []int{300_000, 310_000, 290_000}, short: []int{1}},
		"and the next, if there has to":   {specs: []int{600_000, 900_000, 10}, short: []int{1}},
		"each if need be":                 {specs: []int{800_000, 900_000, 10}, short: []int{0, 1}},
		"what is in use is not forgotten": {formers: 22, specs: slices.Repeat([]int{30_000}, 22), left: 2, short: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
	} {
		s := SweepState{Schema: sweepSchema, Accounts: map[string]SweptAccount{}, Sightings: map[string]metav1.Time{}}
		for k := range c.formers {
			s.Accounts[fmt.Sprintf("theirs#%02d", k)] = SweptAccount{Of: "theirs", ClusterID: strings.Repeat("c", 25_000)}
		}
		s.Accounts["mine#before"] = SweptAccount{Of: "mine"}
		for k, n := range c.specs {
			s.Accounts[fmt.Sprintf("in-use-%02d", k)] = SweptAccount{Spec: []byte(`"` + strings.Repeat("s", n) + `"`)}
		}
		for k := range c.sightings {
			s.Sightings[SightingKey("theirs", fmt.Sprintf("%066d", k))] = metav1.Time{}
		}
		before := maps.Clone(s.Accounts)
		next, left := s.Fitted()
		if !maps.EqualFunc(s.Accounts, before, func(a, b SweptAccount) bool { return a.Of == b.Of && len(a.Spec) == len(b.Spec) }) {
			t.Errorf("%s: what was read is another", name)
		}
		var short []int
		for k := range c.specs {
			if a, ok := next.Accounts[fmt.Sprintf("in-use-%02d", k)]; !ok {
				t.Errorf("%s: %d of those in use is forgotten", name, k)
			} else if len(a.Spec) == 0 {
				short = append(short, k)
			}
		}
		if _, ok := next.Accounts["mine#before"]; !ok || len(left) != c.left || len(next.Accounts)+len(left) != len(s.Accounts) || !slices.Equal(short, c.short) {
			t.Errorf("%s: %d are left out, want %d, without specs %v, want %v, mine is on record: %v", name, len(left), c.left, short, c.short, ok)
		}
	}
}
