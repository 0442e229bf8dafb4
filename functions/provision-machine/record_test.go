// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// Whatever a cloud calls the type, the region and the zone of an instance, the API server takes the write that records its
// id (E20, B5, R-S2).
func TestRecordCanAlwaysBeWritten(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"", "m5.large", "SCS-4V:16:100", "8 GB General Purpose v1", "Data Center 1", "東京", ":", "\xff", strings.Repeat("x:", 1<<20)} {
		s, _, err := scenario.Load("testdata/words-that-are-no-labels-are-fitted.txtar")
		if err != nil {
			t.Fatal(err)
		}
		for k, o := range s.World.Outcomes {
			o.Instance.Type, o.Instance.Region, o.Instance.Zone = word, word, word
			s.World.Outcomes[k] = o
		}
		seen, _, err := scenario.Observe(Function, s)
		if err != nil {
			t.Fatal(err)
		}
		u, is := Decide(seen).Actions()[0].(plan.Update)
		if !is {
			t.Fatalf("%.20q: nothing is recorded", word)
		}
		if wrong := validation.ValidateObjectMetaAccessor(u.New, true, validation.NameIsDNSSubdomain, field.NewPath("metadata")); len(wrong) > 0 {
			t.Errorf("%.20q: %v", word, wrong.ToAggregate())
		}
	}
}
