// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/test/local/stack"
)

// Five sets with a check each, on the whole system: the recipe of the walk-through with a check of either group, a
// power-cycle that helps, remediation by somebody else, a storm (S88–S90, B54, B55, B58, D14, D17).
func TestHealing(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the whole system")
	}
	s, _ := startSystem(t, 15*time.Minute, stack.Options{})
	heal(t, s)
}

// heal plays all of healing on a system that has no Machines.
func heal(t *testing.T, s *stack.Stack) {
	t.Helper()
	c := clinic{s}
	c.apply(t, "healing.yaml")
	c.await(t, "ten Machines run", "get machines -o jsonpath={.items[*].status.phase}", times(10, "Running"))
	c.await(t, "all Nodes are Ready", `get nodes -o jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`, times(10, "True"))
	c.await(t, "the check counts them", "get mhc modern -o jsonpath={.status.expectedMachines}/{.status.currentHealthy}", "3/3")
	var stories sync.WaitGroup // they wait most of the time: all at once, whatever -parallel says
	for name, test := range map[string]func(*testing.T){
		"a kubelet stops":      c.replaces("modern", "stopped", 3),
		"legacy check":         c.replaces("legacy", "unready", 1),
		"somebody else's turn": c.handsOver,
		"power-cycle first":    c.powerCycles,
		"storm":                c.weathers,
	} {
		stories.Go(func() { t.Run(name, test) })
	}
	stories.Wait()
}

// clinic is a running system with checks.
type clinic struct{ *stack.Stack }

func (c clinic) kubectl(t *testing.T, command string) string {
	t.Helper()
	out, err := c.Kubectl(t.Context(), append([]string{"-n", "openshift-machine-api"}, strings.Fields(command)...)...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", command, err, out)
	}
	return strings.TrimSpace(out)
}

func (c clinic) apply(t *testing.T, file string) {
	t.Helper()
	c.kubectl(t, "apply -f "+filepath.Join("testdata", file))
}

// await waits until a command prints what is wanted; *this* is wanted within what it prints.
func (c clinic) await(t *testing.T, what, command, want string) {
	t.Helper()
	part, contains := strings.CutPrefix(want, "*")
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Second) {
		got, err := c.Kubectl(t.Context(), append([]string{"-n", "openshift-machine-api"}, strings.Fields(command)...)...)
		got = strings.TrimSpace(got)
		if err == nil && (got == want || contains && strings.Contains(got, strings.TrimSuffix(part, "*"))) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within 5 minutes: %s: kubectl %s says %q (%v), want %q", what, command, got, err, want)
		}
	}
}

// times is what a jsonpath over n objects prints that all say word.
func times(n int, word string) string { return strings.TrimSpace(strings.Repeat(word+" ", n)) }

// sickness makes the kubelet of a set's i-th Machine stop, or say that it is not ready.
func (c clinic) sickness(t *testing.T, set string, i int, how string) (machine, node string) {
	t.Helper()
	at := ".items[" + strconv.Itoa(i) + "]"
	first := c.kubectl(t, "get machines -l set="+set+" -o jsonpath={"+at+".metadata.name}/{"+at+".status.nodeRef.name}")
	machine, node, _ = strings.Cut(first, "/")
	c.kubectl(t, "label node "+node+" machine-functions.dev/kubelet="+how)
	return machine, node
}

// replaces plays the recipe of S90: NotReady, the Machine says since when and until when, it goes, another one comes, and
// its Node is Ready.
func (c clinic) replaces(set, how string, machines int) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		machine, node := c.sickness(t, set, 0, how)
		shown := "get machines -l set=" + set + ` -o jsonpath={.items[*].status.conditions[?(@.type=="HealthCheckSucceeded")].message}`
		c.await(t, "the Machine shows what is wrong", shown, "*node "+node+" has Ready=*")
		c.await(t, "the Machine goes", "get machines --ignore-not-found -o name --field-selector metadata.name="+machine, "")
		c.await(t, "others run", "get machines -l set="+set+" -o jsonpath={.items[*].status.phase}", times(machines, "Running"))
		c.await(t, "the Node is gone", "get nodes --ignore-not-found -o name --field-selector metadata.name="+node, "")
		c.await(t, "the set is whole", "get machineset "+set+" -o jsonpath={.status.readyReplicas}", strconv.Itoa(machines))
		c.await(t, "it was told", "get events --field-selector involvedObject.name="+machine+" -o jsonpath={.items[*].reason}", "*MachineDeleted*")
		checks := map[string]string{"modern": "mhc", "legacy": "legacymhc"}[set]
		c.await(t, "nothing is in flight any more", "get "+checks+" "+set+" -o jsonpath={.metadata.annotations.machine\\.openshift\\.io/in-flight}", "")
		c.await(t, "the check counts them all again", "get "+checks+" "+set+" -o jsonpath={.status.currentHealthy}", strconv.Itoa(machines))
		c.await(t, "the deletion took a slot", "get configmap machine-disruption -o jsonpath={.data.deletions}", "*"+machine+"*")
	}
}

// handsOver shows a check with a remediationTemplate: as long as its kind is neither served nor granted, the check says so
// and all others go on; then the Machine gets a request, which goes when its Node is Ready again.
func (c clinic) handsOver(t *testing.T) {
	t.Helper()
	available := `get mhc template -o jsonpath={.status.conditions[?(@.type=="ExternalRemediationTemplateAvailable")].status}`
	c.await(t, "the template is missed", available, "False")
	c.apply(t, "reboot.yaml")
	c.kubectl(t, "wait --for=condition=Established crd reboots.remediation.example.com reboottemplates.remediation.example.com --timeout=60s")
	c.await(t, "templates are served", "get reboottemplates -o name", "")
	c.apply(t, "template.yaml")
	c.await(t, "the template is found", available, "True")
	machine, node := c.sickness(t, "template", 0, "unready")
	c.await(t, "a request is there", "get reboots "+machine+" -o jsonpath={.spec.seconds}/{.metadata.ownerReferences[0].name}", "30/"+machine)
	c.kubectl(t, "label node "+node+" machine-functions.dev/kubelet-")
	c.await(t, "the request is gone", "get reboots --ignore-not-found -o name", "")
	c.await(t, "the Machine is not", "get machine "+machine+" -o jsonpath={.status.phase}/{.metadata.annotations.machine\\.openshift\\.io/remediated-by}", "Running/")
	c.await(t, "the check says that all is well", `get mhc template -o jsonpath={.status.conditions[?(@.type=="MachinesHealthy")].status}`, "True")
}

// powerCycles shows a check whose first step helps: the provider powers the instance off and on, the Machine stays.
func (c clinic) powerCycles(t *testing.T) {
	t.Helper()
	machine, _ := c.sickness(t, "reboot", 0, "unready")
	told := "get events --field-selector involvedObject.name=" + machine + " -o jsonpath={.items[*].reason}"
	c.await(t, "the instance is power-cycled", told, "*PowerCycle*")
	c.await(t, "the check counts it again", "get mhc reboot -o jsonpath={.status.currentHealthy}", "1")
	left := "get machines -l set=reboot -o jsonpath={.items[*].metadata.name}"
	left += `/{.items[*].metadata.annotations.machine\.openshift\.io/remediated-by}{.items[*].metadata.annotations.host\.metal3\.io/external-remediation}`
	c.await(t, "the Machine stays, nothing is left of it", left, machine+"/")
	if events := c.kubectl(t, told); strings.Contains(events, "MachineDeleted") {
		t.Errorf("the Machine was deleted: %s", events)
	}
}

// weathers shows a storm: half of the Nodes are not Ready at once where a quarter may be. Nothing is deleted, and every sick
// Machine says why; when one of them recovers, the other is replaced after the cool-down, and no more.
func (c clinic) weathers(t *testing.T) {
	t.Helper()
	stays, node := c.sickness(t, "storm", 0, "unready")
	goes, _ := c.sickness(t, "storm", 1, "unready")
	names := "get machines -l set=storm -o jsonpath={.items[*].metadata.name}"
	before := c.kubectl(t, names)
	allowed := `get mhc storm -o jsonpath={.status.conditions[?(@.type=="RemediationAllowed")].`
	c.await(t, "the check says that it is too much", allowed+"reason}", "TooManyUnhealthy")
	why := " -o jsonpath={.status.conditions[?(@.type==\"HealthCheckSucceeded\")].message}"
	for _, machine := range []string{stays, goes} {
		c.await(t, "the Machine says why it is not remediated", "get machine "+machine+why, "*not remediated: machinehealthcheck/storm is restricted: TooManyUnhealthy*")
	}
	if now := c.kubectl(t, names); now != before {
		t.Errorf("the Machines are %s, were %s", now, before)
	}
	c.kubectl(t, "label node "+node+" machine-functions.dev/kubelet-")
	c.await(t, "the check cools down", allowed+"reason}", "StormCooldown")
	c.await(t, "the Machine that is still sick goes", "get machines --ignore-not-found -o name --field-selector metadata.name="+goes, "")
	c.await(t, "another one comes", "get mhc storm -o jsonpath={.status.currentHealthy}/{.status.expectedMachines}", "4/4")
	c.await(t, "remediation is allowed again", allowed+"status}", "True")
	after := strings.Fields(c.kubectl(t, names))
	kept := slices.DeleteFunc(strings.Fields(before), func(name string) bool { return !slices.Contains(after, name) })
	if len(kept) != 3 || slices.Contains(kept, goes) {
		t.Errorf("the Machines are %s, were %s: want all but %s", after, before, goes)
	}
}
