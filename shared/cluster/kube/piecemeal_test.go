// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// TestOneBadHealthCheckHidesNoOther: the CRD's patterns admit durations that Go cannot read.
func TestOneBadHealthCheckHidesNoOther(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{
		`{"nodeStartupTimeout":"0abc"}`, `{"nodeStartupTimeout":"x5m"}`,
		`{"unhealthyConditions":[{"type":"Ready","status":"False","timeout":"9999999999h"}]}`,
	} {
		list := `{"kind":"MachineHealthCheckList","apiVersion":"machine.openshift.io/v1beta1","metadata":{},"items":[
			{"metadata":{"name":"bad","namespace":"ns","uid":"1","resourceVersion":"7"},"spec":` + spec + `,"status":{"expectedMachines":3}},
			{"metadata":{"name":"good","namespace":"ns"},"spec":{"nodeStartupTimeout":"5m"}}]}`
		_, c := serve(t, reply(200, typeJSON, list))
		s, err := c.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{snapshot.All("MachineHealthCheck")})
		if err != nil || len(s.HealthChecks) != 2 {
			t.Fatalf("%s: %d checks, error %v", spec, len(s.HealthChecks), err)
		}
		bad, good := s.HealthChecks[0], s.HealthChecks[1]
		why := bad.Annotations[machine.AnnotationUnreadable]
		if bad.Name != "bad" || bad.ResourceVersion != "7" || bad.Status.ExpectedMachines == nil || !strings.Contains(why, "duration") {
			t.Errorf("%s: the bad one is %+v", spec, bad)
		}
		if good.Spec.NodeStartupTimeout == nil || len(good.Annotations) > 0 {
			t.Errorf("%s: the good one is %+v", spec, good)
		}
		next := bad.DeepCopy()
		next.Status.RemediationsAllowed = 1
		if body, err := plan.MergePatch(bad, next, true); err != nil || strings.Contains(string(body), "unreadable") || strings.Contains(string(body), `"spec"`) {
			t.Errorf("%s: its status is written as %s, error %v", spec, body, err)
		}
	}
}

// TestNothingIsLeftOut: instances without a Machine are deleted, so a Machine that cannot be read is an error that names it.
func TestNothingIsLeftOut(t *testing.T) {
	t.Parallel()
	list := `{"kind":%q,"apiVersion":"machine.openshift.io/v1beta1","metadata":{},"items":[{"metadata":{"name":"good","namespace":"ns"}},%s]}`
	for kind, bad := range map[plan.Kind]string{
		"Machine":            `{"metadata":{"name":"bad","namespace":"ns"},"spec":{"taints":1}}`,
		"MachineHealthCheck": `{"metadata":{"name":"bad","namespace":"ns"},"status":{"conditions":1}}`,
	} {
		_, c := serve(t, reply(200, typeJSON, fmt.Sprintf(list, kind+"List", bad)))
		s, err := c.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{snapshot.All(kind)})
		if err == nil || !strings.Contains(err.Error(), "bad") || len(s.Machines)+len(s.HealthChecks) > 0 {
			t.Errorf("%s: %v and %v, error %v", kind, s.Machines, s.HealthChecks, err)
		}
	}
}
