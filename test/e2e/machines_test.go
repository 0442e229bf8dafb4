// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/test/local/stack"
)

// The life of Machines and MachineSets on the whole system, as kubectl shows it, each story on a set of its own.
func TestMachines(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the whole system")
	}
	live(t, startYard(t))
}

// live plays the lives of Machines, all at once.
func live(t *testing.T, y yard) {
	t.Helper()
	for name, story := range map[string]func(yard, *testing.T){
		"a set from the first to the last":      yard.wholeLife,
		"a machine by hand":                     yard.byHand,
		"a network that is not there":           yard.mistake,
		"what changes later reaches the node":   yard.edits,
		"machines outlive their set":            yard.outlives,
		"a budget blocks a drain":               yard.budget,
		"a drain that may not take for ever":    yard.limit,
		"an instance vanishes":                  yard.vanishes,
		"stock runs out and comes back":         yard.stock,
		"hooks hold the drain and the instance": yard.hooks,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(y, t)
		})
	}
}

// yard is a running system where many things are built at the same time.
type yard struct {
	kubectl
	*stack.Stack
}

const inMachines = " -n openshift-machine-api"

func startYard(t *testing.T) yard {
	t.Helper()
	s, _ := startSystem(t, 15*time.Minute, stack.Options{})
	return yard{kubectl{plane: s.ControlPlane}, s}
}

// do runs one kubectl command, which must succeed, and returns what it printed.
func (y yard) do(t *testing.T, command string) string {
	t.Helper()
	return strings.TrimSpace(y.must(t, strings.Fields(command)...))
}

// get returns one value of an object of the machine layer.
func (y yard) get(t *testing.T, object, path string) string {
	t.Helper()
	return y.do(t, "get "+object+inMachines+" --ignore-not-found -o jsonpath={"+path+"}")
}

// await waits until holds says "". What takes longest takes two minutes on two idle cores.
func await(t *testing.T, what string, holds func() string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Minute); ; time.Sleep(time.Second) {
		missing := holds()
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited ten minutes in vain: %s: %s", what, missing)
		}
	}
}

// shows waits until a command prints something that matches all of want.
func (y yard) shows(t *testing.T, command string, want ...string) {
	t.Helper()
	await(t, command, func() string {
		got := y.do(t, command)
		for _, w := range want {
			if !regexp.MustCompile(w).MatchString(got) {
				return fmt.Sprintf("no %q in %s", w, got)
			}
		}
		return ""
	})
}

// machines returns the names of a set's Machines, sorted; a selector that a person would use.
func (y yard) machines(t *testing.T, set string) []string {
	t.Helper()
	return strings.Fields(y.do(t, "get machines"+inMachines+" -l machine.openshift.io/cluster-api-machineset="+set+" -o jsonpath={.items[*].metadata.name}"))
}

// running waits until a set has so many Machines and all of them run, and returns their names.
func (y yard) running(t *testing.T, set string, n int) []string {
	t.Helper()
	want := strings.TrimSpace(strings.Repeat("Running ", n))
	await(t, fmt.Sprintf("%d machines of %s run", n, set), func() string {
		got := y.do(t, "get machines"+inMachines+" -l machine.openshift.io/cluster-api-machineset="+set+" -o jsonpath={.items[*].status.phase}")
		if got != want {
			return fmt.Sprintf("%q instead of %q", got, want)
		}
		return ""
	})
	return y.machines(t, set)
}

// instances returns what the cloud has on record of a Machine: "id live".
func (y yard) instances(t *testing.T, uid string) []string {
	t.Helper()
	out := y.do(t, "get configmaps -n kubemark -l kubemark.machine-functions.dev/machine-uid="+uid+
		` -o jsonpath={range.items[*]}{.metadata.name}{"="}{.metadata.labels.kubemark\.machine-functions\.dev/live}{"\n"}{end}`)
	return strings.Fields(out)
}

// recordedGone holds that a Machine had one instance, and waits until it is history: its time is over before the simulated cloud
// writes so.
func (y yard) recordedGone(t *testing.T, uid string) {
	t.Helper()
	await(t, "the instance of "+uid+" is history", func() string {
		if got := y.instances(t, uid); len(got) != 1 || !strings.HasSuffix(got[0], "=false") {
			return fmt.Sprint("on record: ", got)
		}
		return ""
	})
}

// set creates a MachineSet of kubemark Machines; its providerSpec gets spec beside.
func (y yard) set(t *testing.T, name string, replicas int, flavor, annotations string) {
	t.Helper()
	y.mustGiven(t, fmt.Sprintf(setText, name, replicas, name, name, annotations, name, flavor), "create", "-f", "-")
}

const setText = `apiVersion: machine.openshift.io/v1beta1
kind: MachineSet
metadata:
  name: %s
  namespace: openshift-machine-api
  labels: {machine.openshift.io/cluster-api-cluster: cluster-a389-fmxsv}
spec:
  replicas: %d
  selector: {matchLabels: {machine.openshift.io/cluster-api-machineset: %s}}
  template:
    metadata:
      labels: {machine.openshift.io/cluster-api-cluster: cluster-a389-fmxsv, machine.openshift.io/cluster-api-machineset: %s}
      annotations: {%s}
    spec:
      metadata:
        labels: {example.com/set: %s, failure-domain.beta.kubernetes.io/zone: 1a}
      providerSpec:
        value: {apiVersion: kubemark.machine.openshift.io/v1alpha1, kind: KubemarkMachineProviderSpec, flavor: %s}
`

// wholeLife is what one sees of a set between nothing and nothing (S5, S6, S10, S12, S14–S21, S29, S78, B1, B35, B36).
func (y yard) wholeLife(t *testing.T) {
	t.Helper()
	const set = "general"
	y.set(t, set, 0, "4c12g30d", "")
	y.shows(t, "get machineset "+set+inMachines, `(?m)^NAME\s+DESIRED\s+CURRENT\s+READY\s+AVAILABLE\s+AGE$`, `(?m)^general\s+0\s+0\s+\d+s$`)
	y.shows(t, "get machineset "+set+inMachines+" -o jsonpath={.status}", `"observedGeneration":1`, `"replicas":0`, `"labelSelector":"machine.openshift.io/cluster-api-machineset=general"`)
	if got := y.do(t, "scale machineset "+set+inMachines+" --replicas=1"); got != "machineset.machine.openshift.io/general scaled" {
		t.Errorf("scale printed %q", got)
	}
	one := y.running(t, set, 1)[0]
	if !regexp.MustCompile(`^general-[a-z0-9]{5}$`).MatchString(one) {
		t.Errorf("the Machine is called %s", one)
	}
	y.shows(t, "get machine "+one+inMachines, `(?m)^NAME\s+PHASE\s+TYPE\s+REGION\s+ZONE\s+AGE$`, `Running\s+4c12g30d\s+regionOne\s+nova`)
	y.shows(t, "get machine "+one+inMachines+" -o wide", `NODE\s+PROVIDERID\s+STATE`, one+`\s+kubemark://\S+\s+ACTIVE`)
	y.shows(t, "get machine "+one+inMachines+" -o jsonpath={.metadata.finalizers}{.metadata.ownerReferences[0]}", `machine.machine.openshift.io`, `"controller":true`, `"blockOwnerDeletion":true`, `"kind":"MachineSet"`)
	y.shows(t, "get node "+one+" -o jsonpath={.metadata.labels}{.metadata.annotations}", `"failure-domain.beta.kubernetes.io/zone":"1a"`, `"machine.openshift.io/machine":"openshift-machine-api/`+one+`"`)
	y.shows(t, "get machine "+one+inMachines+" -o jsonpath={.status.addresses}", `"InternalDNS"`, one)
	y.shows(t, "get machineset "+set+inMachines, `(?m)^general\s+1\s+1\s+1\s+1\s`)
	y.shows(t, "describe machine "+one+inMachines, `Normal\s+Create\s`, `kubemark_controller`, `machine.openshift.io/instance-state: ACTIVE`)

	uid := y.get(t, "machine/"+one, ".metadata.uid")
	y.do(t, "scale machineset "+set+inMachines+" --replicas=0")
	await(t, "Machine and Node are gone", func() string {
		return y.get(t, "machine/"+one, ".metadata.name") + y.do(t, "get node "+one+" --ignore-not-found -o name")
	})
	y.recordedGone(t, uid)
	y.shows(t, "get events"+inMachines+" --field-selector involvedObject.name="+one, "DrainProceeds", `Deleted\s+machine/\S+\s+Node "`+one+`" drained`, "DrainSucceeded", `Delete\s`)
	y.shows(t, "get machineset "+set+inMachines, `(?m)^general\s+0\s+0\s+\d+[sm]`)
}

// byHand is a Machine that no set makes (S92); beside its spec it needs only the label that names the cluster (S91).
func (y yard) byHand(t *testing.T) {
	t.Helper()
	y.mustGiven(t, `apiVersion: machine.openshift.io/v1beta1
kind: Machine
metadata: {name: alone, namespace: openshift-machine-api, labels: {machine.openshift.io/cluster-api-cluster: cluster-a389-fmxsv}}
spec:
  providerSpec:
    value: {apiVersion: kubemark.machine.openshift.io/v1alpha1, kind: KubemarkMachineProviderSpec, flavor: 4c12g30d}
`, "create", "-f", "-")
	await(t, "the Machine runs", func() string {
		if phase := y.get(t, "machine/alone", ".status.phase"); phase != "Running" {
			return "phase " + phase
		}
		return ""
	})
	y.do(t, "delete machine alone"+inMachines+" --timeout=3m")
	if left := y.do(t, "get node alone --ignore-not-found -o name"); left != "" {
		t.Errorf("%s is left", left)
	}
}

// mistake: a set names a network that does not exist; its Machine stays Provisioning and says so, is not made failed by
// it, and goes at once with its set's replicas (S22–S24, S26).
func (y yard) mistake(t *testing.T) {
	t.Helper()
	const set = "mistaken"
	y.set(t, set, 1, "4c12g30d, network: nowhere", "")
	await(t, "there is a Machine", func() string {
		if len(y.machines(t, set)) == 0 {
			return "none"
		}
		return ""
	})
	one := y.machines(t, set)[0]
	y.shows(t, "get machine "+one+inMachines, `(?m)^`+one+`\s+Provisioning\s+\d+s$`)
	y.shows(t, "describe machine "+one+inMachines, `Warning\s+FailedCreate\s.*kubemark_controller\s.*nowhere`, `Error Reason:\s+CreateError`, `machine.openshift.io/instance-state: ERROR`)
	uid := y.get(t, "machine/"+one, ".metadata.uid")
	y.do(t, "scale machineset "+set+inMachines+" --replicas=0")
	await(t, "the Machine is gone", func() string { return y.get(t, "machine/"+one, ".metadata.name") })
	if got := y.instances(t, uid); len(got) != 0 {
		t.Errorf("instances on record: %v", got)
	}
}

// edits: labels, annotations and taints that are added to a running Machine's spec come to its Node; what a person takes
// off the Node comes back (B2, B3, B64).
func (y yard) edits(t *testing.T) {
	t.Helper()
	const set = "edited"
	y.set(t, set, 1, "4c12g30d", "")
	one := y.running(t, set, 1)[0]
	y.must(t, "patch", "machine", one, "-n", "openshift-machine-api", "--type=merge", "-p",
		`{"spec":{"metadata":{"labels":{"example.com/row":"7"},"annotations":{"example.com/note":"late"}},"taints":[{"key":"example.com/batch","effect":"NoSchedule"}]}}`)
	node := "get node " + one + " -o jsonpath={.metadata.labels}{.metadata.annotations}{.spec.taints}"
	want := []string{`"example.com/row":"7"`, `"example.com/note":"late"`, `"key":"example.com/batch"`}
	y.shows(t, node, want...)
	y.do(t, "label node "+one+" example.com/row-")
	y.do(t, "taint node "+one+" example.com/batch-")
	y.shows(t, node, want...)
}

// outlives: a set deleted with --cascade=orphan leaves its Machines, and the next set takes them as they are; deleted
// in the background it takes them along (B39, RELIABILITY 2a.6, 2a.10).
func (y yard) outlives(t *testing.T) {
	t.Helper()
	const set = "outlived"
	y.set(t, set, 2, "4c12g30d", "")
	before := y.running(t, set, 2)
	uids := y.do(t, "get machines"+inMachines+" -l machine.openshift.io/cluster-api-machineset="+set+" -o jsonpath={.items[*].metadata.uid}")
	y.collected(t, strings.ReplaceAll(strings.TrimSpace(inMachines), " ", ""))
	y.do(t, "delete machineset "+set+inMachines+" --cascade=orphan --timeout=1m")
	time.Sleep(25 * time.Second) // two scans, in which nothing may happen to them
	y.set(t, set, 2, "4c12g30d", "")
	await(t, "the new set owns both", func() string {
		uid := y.get(t, "machineset/"+set, ".metadata.uid")
		owners := y.do(t, "get machines"+inMachines+" -l machine.openshift.io/cluster-api-machineset="+set+" -o jsonpath={.items[*].metadata.ownerReferences[*].uid}")
		if owners != uid+" "+uid {
			return owners
		}
		return ""
	})
	y.shows(t, "get machineset "+set+inMachines, `(?m)^outlived\s+2\s+2\s+2\s+2\s`)
	after := y.do(t, "get machines"+inMachines+" -l machine.openshift.io/cluster-api-machineset="+set+" -o jsonpath={.items[*].metadata.uid}")
	if after != uids {
		t.Errorf("Machines %s became %s", uids, after)
	}
	y.do(t, "annotate machine "+before[1]+inMachines+" machine.openshift.io/delete-machine=yes")
	y.do(t, "scale machineset "+set+inMachines+" --replicas=1")
	await(t, "the marked one goes", func() string {
		if left := y.machines(t, set); len(left) != 1 || left[0] != before[0] {
			return fmt.Sprint(left)
		}
		return ""
	})
	y.do(t, "delete machineset "+set+inMachines)
	await(t, "the set takes its Machine along", func() string { return strings.Join(y.machines(t, set), " ") })
	for uid := range strings.FieldsSeq(uids) {
		y.recordedGone(t, uid)
	}
}

// guarded makes a set of one Machine with a Pod on it that a budget protects, and deletes the Machine.
func (y yard) guarded(t *testing.T, set, annotations string) (machine string) {
	t.Helper()
	y.set(t, set, 1, "4c12g30d", annotations)
	machine = y.running(t, set, 1)[0]
	y.do(t, "create namespace "+set)
	y.mustGiven(t, fmt.Sprintf(guardedText, set, set, set, set), "create", "-f", "-")
	y.shows(t, "get pods -n "+set+" -o jsonpath={.items[*].status.phase}", "^Running$")
	y.shows(t, "get pdb guard -n "+set+" -o jsonpath={.status.currentHealthy}", "^1$")
	y.do(t, "delete machine "+machine+inMachines+" --wait=false")
	return machine
}

const guardedText = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %s}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {example.com/set: %s}
      terminationGracePeriodSeconds: 1
      containers: [{name: web, image: registry.example.com/web}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: guard, namespace: %s}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: nobody, namespace: %s}
`

// budget: a disruption budget holds the drain, and condition and event say which Pod and which budget (B33, W-D8).
func (y yard) budget(t *testing.T) {
	t.Helper()
	const set = "guarded"
	machine := y.guarded(t, set, "")
	drained := "get machine " + machine + inMachines + ` -o jsonpath={.status.conditions[?(@.type=="Drained")]}`
	y.shows(t, drained, `"status":"False"`, `"reason":"DrainError"`, "cannot evict pod guarded/web-", "disruption budget guard")
	y.shows(t, "describe machine "+machine+inMachines, `Warning\s+DrainRequeued`, "cannot evict pod guarded/web-", "disruption budget guard")
	uid := y.get(t, "machine/"+machine, ".metadata.uid")
	if got := y.instances(t, uid); len(got) != 1 || !strings.HasSuffix(got[0], "=true") {
		t.Errorf("instances while the drain is blocked: %v", got)
	}
	y.shows(t, "get machines"+inMachines+" -l machine.openshift.io/cluster-api-machineset="+set+" -o jsonpath={.items[*].status.phase}", "Running", "Deleting") // its replacement does not wait for it
	y.do(t, "delete pdb guard -n "+set)
	await(t, "the Machine goes once the budget is gone", func() string { return y.get(t, "machine/"+machine, ".metadata.name") })
}

// limit: the set's template says how long a drain may take; then the Machine goes with what is left on it.
func (y yard) limit(t *testing.T) {
	t.Helper()
	const set = "limited"
	machine := y.guarded(t, set, "machine.openshift.io/node-drain-timeout: 20s")
	await(t, "the Machine goes in spite of the budget", func() string { return y.get(t, "machine/"+machine, ".metadata.name") })
	y.shows(t, "get events"+inMachines+" --field-selector involvedObject.name="+machine, `Warning\s+DrainTimedOut`, "after 20s there are still pods limited/web-")
}

// vanishes: the cloud loses an instance; its Machine fails for good, and its health check replaces it (B18, B21).
func (y yard) vanishes(t *testing.T) {
	t.Helper()
	const set = "lossy"
	y.mustGiven(t, `apiVersion: machine.openshift.io/v1beta1
kind: MachineHealthCheck
metadata: {name: lossy, namespace: openshift-machine-api}
spec:
  selector: {matchLabels: {machine.openshift.io/cluster-api-machineset: lossy}}
  unhealthyConditions: [{type: Ready, status: "False", timeout: 1h}]
`, "create", "-f", "-")
	y.set(t, set, 1, "4c12g30d", "")
	machine := y.running(t, set, 1)[0]
	id := y.get(t, "machine/"+machine, ".status.providerStatus.instanceId")
	y.do(t, `patch configmap `+id+` -n kubemark --type=merge -p {"data":{"fault":"vanished"}}`)
	y.shows(t, "get machine "+machine+inMachines+" --ignore-not-found -o jsonpath={.status.phase}{.status.errorMessage}", "^(Failed|Deleting)can't find created instance$")
	y.shows(t, "get machine "+machine+inMachines+` --ignore-not-found -o jsonpath={.metadata.annotations.machine\.openshift\.io/instance-state}`, "^(Unknown)?$")
	await(t, "another takes its place", func() string {
		if now := y.machines(t, set); len(now) != 1 || now[0] == machine {
			return fmt.Sprint(now)
		}
		return ""
	})
	y.running(t, set, 1)
}

// stock: the cloud has one instance of a type left where two are wanted; the second Machine says so, is not failed, and
// goes on by itself when there is more (E2, B12).
func (y yard) stock(t *testing.T) {
	t.Helper()
	const set = "scarce"
	y.mustGiven(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cloud, namespace: kubemark}\ndata: {stock: '{2c4g10d: 1}'}\n", "create", "-f", "-")
	y.set(t, set, 2, "2c4g10d", "")
	phases := "get machines" + inMachines + " -l machine.openshift.io/cluster-api-machineset=" + set + " -o jsonpath={range.items[*]}{.status.phase}:{.status.errorReason}{\"\\n\"}{end}"
	y.shows(t, phases, "(?m)^Running:$", "(?m)^Provisioning:InsufficientResources$")
	y.shows(t, "get events"+inMachines, `FailedCreate\s+machine/scarce-\S+\s.*no 2c4g10d is left`)
	y.mustGiven(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cloud, namespace: kubemark}\ndata: {stock: '{2c4g10d: 2}'}\n", "apply", "-f", "-")
	y.running(t, set, 2)
	y.shows(t, phases, "^Running:\nRunning:$")
}

// hooks: preDrain holds the drain, preTerminate the instance, and conditions name both (B6, B17, B26, B29).
func (y yard) hooks(t *testing.T) {
	t.Helper()
	const set = "hooked"
	y.set(t, set, 1, "4c12g30d", "")
	machine := y.running(t, set, 1)[0]
	patch := func(hooks string) {
		t.Helper()
		y.must(t, "patch", "machine", machine, "-n", "openshift-machine-api", "--type=merge", "-p", `{"spec":{"lifecycleHooks":`+hooks+`}}`)
	}
	const drain, terminate = `"preDrain":[{"name":"Backup","owner":"backup-operator"}]`, `"preTerminate":[{"name":"EtcdQuorum","owner":"etcd"}]`
	patch("{" + drain + "," + terminate + "}")
	y.shows(t, "get machine "+machine+inMachines+" -o jsonpath={.status.conditions}", `waits for Backup \(owner backup-operator\)`, `waits for EtcdQuorum \(owner etcd\)`)
	y.do(t, "delete machine "+machine+inMachines+" --wait=false")
	y.shows(t, "get events"+inMachines+" --field-selector involvedObject.name="+machine, `DrainBlocked\s.*Backup \(owner backup-operator\)`)
	if cordoned := y.do(t, "get node "+machine+" -o jsonpath={.spec.unschedulable}"); cordoned != "" {
		t.Errorf("the Node is cordoned before the hook is gone: %s", cordoned)
	}
	patch(`{"preDrain":null,` + terminate + "}")
	y.shows(t, "get machine "+machine+inMachines+` -o jsonpath={.status.conditions[?(@.type=="Drained")].status}`, "^True$")
	uid := y.get(t, "machine/"+machine, ".metadata.uid")
	time.Sleep(15 * time.Second) // a scan, in which the instance may not go
	if got := y.instances(t, uid); len(got) != 1 || !strings.HasSuffix(got[0], "=true") {
		t.Errorf("instances while a hook holds: %v", got)
	}
	patch(`null`)
	await(t, "the Machine goes without hooks", func() string { return y.get(t, "machine/"+machine, ".metadata.name") })
}
