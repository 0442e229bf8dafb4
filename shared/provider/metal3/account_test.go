// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Once a Machine has a host its spec decides nothing: a rule that came later, or one that OpenShift does not have, neither hides the
// host nor keeps it from being let go. What is wrong is told before one is taken.
func TestSpecOfWhatHasAHostIsNotJudged(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	p, d := Provider(s), open(t, s)
	for _, more := range []string{
		`, "hostSelector": {"matchExpressions": [{"key": "rack", "operator": "notin", "values": ["a b"]}]}`, `, "surprise": 1`, `, "userData": {"name": "u", "namespace": "elsewhere"}`,
	} {
		spec := specOf(image + more)
		if _, _, err := p.Account(spec); err != nil {
			t.Errorf("%s: Account: %v", more, err)
		}
		if _, err := p.InstanceType(spec); err != nil {
			t.Errorf("%s: InstanceType: %v", more, err)
		}
		if _, err := d.Resolve(t.Context(), spec); provider.CodeOf(err) != provider.Invalid {
			t.Errorf("%s: Resolve: %v", more, err)
		}
	}
}
