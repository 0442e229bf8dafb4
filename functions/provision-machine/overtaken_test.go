// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// A refusal names the time of the next attempt until that has come, or the attempt was made. That costs one write.
func TestTimeOfTheNextAttemptIsTakenOff(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Load("testdata/refusal-shows-in-the-status.txtar")
	if err != nil {
		t.Fatal(err)
	}
	const refused = "no network was found: net-x"
	told, wrote := statusWrites(t, s)
	if c := machine.FindCondition(told.Status.Conditions, machine.ConditionCreated); wrote != 1 || c.Message != refused+" (next attempt after 2026-01-01T00:01:00Z)" {
		t.Fatalf("%d writes of %v", wrote, c)
	}
	for name, tt := range map[string]struct {
		cloud  snapshot.Cloud
		change func(*machine.Intent)
		want   string
	}{
		"denied since": {
			snapshot.Cloud{Err: &snapshot.Refusal{Code: provider.Denied, Message: refused}},
			func(i *machine.Intent) { i.Code = "Denied" }, refused,
		},
		"cannot be asked since": {
			snapshot.Cloud{Err: &snapshot.Refusal{Message: "connection reset"}}, func(*machine.Intent) {}, refused,
		},
		"a step was made": {
			snapshot.Cloud{Account: "kubemark", Tokens: true},
			func(i *machine.Intent) {
				*i = i.Released(machine.OutcomePartial, time.Time{})
				i.Code, i.Message = "", ""
			}, refused,
		},
		"waits": {
			snapshot.Cloud{},
			func(i *machine.Intent) { i.NotBefore.Time = s.World.Now.Add(machine.LongestPause) }, refused + " (next attempt after 2026-01-01T00:10:30Z)",
		},
	} {
		m, writes := told.DeepCopy(), 0
		i, err := machine.ParseIntent(m)
		if err != nil {
			t.Fatal(err)
		}
		tt.change(i)
		m.Annotations[machine.AnnotationIntent] = i.String()
		for n := range 50 {
			w := aloneIn(s, m)
			w.World.Now, w.World.Request = s.World.Now.Add(time.Minute+time.Duration(n)*scanPeriod), snapshot.Request{}
			w.World.Clouds = map[types.UID]snapshot.Cloud{m.UID: tt.cloud}
			var wrote int
			m, wrote = written(m, Decide(w.World))
			writes += wrote
		}
		c := machine.FindCondition(m.Status.Conditions, machine.ConditionCreated)
		if c.Message != tt.want || writes != 1 {
			t.Errorf("%s: %d writes, %q, want %q", name, writes, c.Message, tt.want)
		}
	}
}
