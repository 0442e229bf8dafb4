// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/events"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// What a cloud left unclear about an object is looked at again soon: the event is answered with 503, and comes again. The clock
// comes again by itself, and an answer that is clear is the end of it, also where it is a no (RELIABILITY 2g).
func TestWhatIsUnclearIsDeliveredAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault error
		kind  string // of the event
		want  int
	}{
		{"unclear", provider.Errorf(provider.Unknown, "502 bad gateway"), events.TypeRefPrefix + "update", http.StatusServiceUnavailable},
		{"unclear to the clock", provider.Errorf(provider.Unknown, "502 bad gateway"), events.TypePing, http.StatusAccepted},
		{"refused", provider.Errorf(provider.Denied, "403 forbidden"), events.TypeRefPrefix + "update", http.StatusAccepted},
		{"answered", nil, events.TypeRefPrefix + "update", http.StatusAccepted},
	} {
		cloud := &memory.Cloud{Fault: func(_ context.Context, call memory.Call) error {
			if call.Op == memory.OpFind {
				return c.fault
			}
			return nil
		}}
		cloud.Add(accountOfC, "c", provider.Instance{Name: "worker-0", UID: "worker-0", State: provider.StateRunning})
		api := apiserver.New(time.Now)
		if err := api.Put(machineIn("worker-0", "worker-0")); err != nil {
			t.Fatal(err)
		}
		r := testRunner(function.Function{
			Name:   "look",
			Reads:  lookups,
			Decide: func(snapshot.Snapshot) plan.Plan { return plan.Plan{} },
		}, api.As("look"))
		r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
		w, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil)
		for key, value := range map[string]string{"Specversion": "1.0", "Id": "1", "Source": "x", "Type": c.kind,
			"Apiversion": "machine.openshift.io/v1beta1", "Kind": "Machine", "Namespace": machine.Namespace, "Name": "worker-0"} {
			req.Header.Set("Ce-"+key, value)
		}
		if NewServer(r, []string{machine.Namespace}).Handle(w, req); w.Code != c.want {
			t.Errorf("%s: %d, want %d", c.name, w.Code, c.want)
		}
	}
}
