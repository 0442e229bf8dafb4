// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
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
	await(t, "nothing runs of "+strings.Join(asleep, ", "), func() (running string) {
		for _, name := range asleep {
			running += y.do(t, "get pods -o name"+inMachines+" -l serving.knative.dev/service="+name)
		}
		return running
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

// secondNamespace serves Machines in two namespaces, with the overlay's rights, source and setting. What lies in a third
// one is left alone, and an event about it is refused (DESIGN: MACHINE_NAMESPACES).
func (k knative) secondNamespace(t *testing.T) {
	y := yard{k.kubectl, k.Stack}
	overlay := filepath.Join(k.repo, "overlays", "namespaces")
	k.must(t, "apply", "-f", filepath.Join(overlay, "namespace.yaml"))
	k.must(t, "apply", "-k", filepath.Join(overlay, "rights"))
	const setting = `[{"op":"add","path":"/spec/template/spec/containers/0/env/-","value":{"name":"MACHINE_NAMESPACES","value":"openshift-machine-api,machines-b"}}]`
	for _, name := range []string{"scale-machineset", "provision-machine", "link-node", "drain-node"} {
		k.must(t, "patch", "ksvc", name, "-n", "openshift-machine-api", "--type=json", "-p", setting)
	}
	k.must(t, "patch", "apiserversource", "machines", "-n", "openshift-machine-api", "--type=merge", "-p",
		`{"spec":{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"In","values":["openshift-machine-api","machines-b"]}]}}}`)
	k.ready(t, "ksvc", "apiserversource")
	began := time.Now()
	for _, namespace := range []string{"machines-b", "default"} {
		text := fmt.Sprintf(setText, "elsewhere", 1, "elsewhere", "elsewhere", "", "elsewhere", "4c12g30d")
		k.mustGiven(t, strings.Replace(text, "namespace: openshift-machine-api", "namespace: "+namespace, 1), "create", "-f", "-")
	}
	await(t, "the Machine in machines-b runs", func() string {
		if got := y.do(t, "get machines -n machines-b -o jsonpath={.items[*].status.phase}"); got != "Running" {
			return "phase " + got
		}
		return ""
	})
	k.took("MACHINE_NAMESPACES: a MachineSet in machines-b to Running", began)
	if status, machines := y.do(t, "get machineset elsewhere -n default -o jsonpath={.status}"), y.do(t, "get machines -n default -o name"); status != "" || machines != "" {
		t.Errorf("a set in a namespace that is not served has status %q, Machines %q", status, machines)
	}
	if code := k.event(t, "scale-machineset", "default"); code != http.StatusBadRequest {
		t.Errorf("an event about a namespace that is not served: %d, want 400", code)
	}
	if code := k.event(t, "scale-machineset", "machines-b"); code/100 != 2 {
		t.Errorf("an event about machines-b: %d", code)
	}
	y.do(t, "delete machinesets --all -n default")
	y.do(t, "delete machinesets --all -n machines-b --wait=false")
	await(t, "every Machine is gone", func() string { return y.do(t, "get machines -n machines-b -o name") })
}

// event posts an event about a MachineSet to a function, through Serving's ingress, as Eventing does.
func (k knative) event(t *testing.T, function, namespace string) int {
	t.Helper()
	ingress := strings.TrimSpace(k.must(t, "get", "service", "ingress", "-n", "knative-serving", "-o", "jsonpath={.spec.clusterIP}"))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+ingress+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = function + ".openshift-machine-api.svc.cluster.local"
	for name, value := range map[string]string{
		"Specversion": "1.0", "Id": "1", "Source": "/test", "Type": "dev.knative.apiserver.ref.update",
		"Apiversion": "machine.openshift.io/v1beta1", "Kind": "MachineSet", "Namespace": namespace, "Name": "elsewhere",
	} {
		r.Header.Set("Ce-"+name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Error(err)
	}
	return answer.StatusCode
}
