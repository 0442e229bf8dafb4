// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/test/local/stack"
)

// coldStart pauses the clock: functions that nothing wakes have no pods. One event wakes them all the same, and a Machine
// comes up from nothing.
func (k knative) coldStart(t *testing.T) {
	y := yard{k.kubectl, k.Stack}
	scan := filepath.Join(k.repo, "triggers", "scan.yaml")
	k.must(t, "delete", "-f", scan)
	t.Cleanup(func() {
		k.must(t, "apply", "-f", scan)
		k.ready(t, "pingsource")
	})
	began := time.Now()
	asleep := []string{"scale-machineset", "link-node", "drain-node", "sweep-instances"}
	await(t, "nothing runs of "+strings.Join(asleep, ", "), func() string {
		return y.do(t, "get pods -o name"+inMachines+" -l serving.knative.dev/service in ("+strings.Join(asleep, ",")+")")
	})
	k.took("scaled to zero after the clock stopped: "+strings.Join(asleep, " "), began)
	for _, name := range []string{"evaluate-autoscale", "provision-machine", "remediate"} {
		if y.do(t, "get pods -o name"+inMachines+" -l serving.knative.dev/service="+name) == "" {
			t.Errorf("%s sleeps, its min-scale is 1", name)
		}
	}
	y.set(t, "cold", 0, "4c12g30d", "")
	await(t, "the set is seen", func() string {
		if y.get(t, "machineset/cold", ".status.observedGeneration") != "1" {
			return "not yet"
		}
		return ""
	})
	k.took("cold: a new MachineSet has a status", began)
	await(t, "nothing runs of scale-machineset again", func() string {
		return y.do(t, "get pods -o name"+inMachines+" -l serving.knative.dev/service=scale-machineset")
	})
	began = time.Now()
	y.do(t, "scale machineset cold --replicas=1"+inMachines)
	for len(y.machines(t, "cold")) == 0 {
		if time.Since(began) > time.Minute {
			t.Fatal("no Machine after a minute")
		}
		time.Sleep(50 * time.Millisecond)
	}
	k.took("cold: kubectl scale to the Machine's creation", began)
	y.running(t, "cold", 1)
	k.took("cold: kubectl scale to Running", began)
	began = time.Now()
	y.do(t, "scale machineset cold --replicas=2"+inMachines)
	for len(y.machines(t, "cold")) < 2 {
		if time.Since(began) > time.Minute {
			t.Fatal("no second Machine after a minute")
		}
		time.Sleep(20 * time.Millisecond)
	}
	k.took("warm: kubectl scale to the Machine's creation", began)
	y.running(t, "cold", 2)
	k.took("warm: kubectl scale to Running", began)
}

// root deploys the repository itself as one function, which FUNCTION makes link-node's like.
func (k knative) root(t *testing.T) {
	began := time.Now()
	k.make(t, "deploy", "FN=machine-functions")
	k.ready(t, "ksvc/machine-functions")
	k.took("make deploy FN=machine-functions: all functions in one image", began)
	k.make(t, "undeploy", "FN=machine-functions")
}

// undeploy takes all functions away.
func (k knative) undeploy(t *testing.T) {
	k.make(t, "undeploy")
	if left := strings.TrimSpace(k.must(t, "get", "ksvc", "-n", "openshift-machine-api", "-o", "name")); left != "" {
		t.Errorf("left after make undeploy of %d functions: %s", len(stack.Functions), left)
	}
}
