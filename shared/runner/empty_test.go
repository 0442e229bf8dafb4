// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"testing"
	"time"

	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A manifest that was made of another Machine's has that one's record beside a providerID that was taken away, which may be left as an
// empty text. That names no instance, so nothing is looked for whosever tag it carries: the other's would be found, and recorded (R-S3).
func TestEmptyProviderIDFindsNoOthersInstance(t *testing.T) {
	t.Parallel()
	for _, bulk := range []bool{true, false} {
		cloud := &memory.Cloud{}
		id := cloud.Add(accountOfC, "c", provider.Instance{Name: "worker-a", UID: "worker-a", State: provider.StateRunning})
		api := apiserver.New(time.Now)
		m := machineIn("worker-b", "worker-b")
		m.Spec.ProviderID = new("")
		record := machine.Intent{
			Schema: 1, Attempt: 1, Account: accountOfC, Token: machine.Token("worker-a", 1, accountOfC), Outcome: machine.OutcomeCreated, Instance: id,
		}
		m.Annotations = map[string]string{machine.AnnotationIntent: record.String()}
		if err := api.Put(m); err != nil {
			t.Fatal(err)
		}
		var c snapshot.Cloud
		r := testRunner(function.Function{
			Name: "look",
			Reads: func(s snapshot.Snapshot) snapshot.Scope {
				sc := snapshot.Scope{Objects: []snapshot.Query{snapshot.All("Machine")}}
				if len(s.Machines) > 0 {
					sc.Lookups = []snapshot.Lookup{{UID: "worker-b", Bulk: bulk}}
				}
				return sc
			},
			Decide: func(s snapshot.Snapshot) plan.Plan {
				c = s.Clouds["worker-b"]
				return plan.Plan{}
			},
		}, api.As("look"))
		r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
		if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
			t.Fatal(err)
		}
		if c.Err != nil || len(c.Found) != 0 {
			t.Errorf("in bulk %v: found %+v, %v", bulk, c.Found, c.Err)
		}
	}
}
