// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"strings"
)

// bareMetal is the walk-through of a cluster on hosts (SPEC A.1): the autoscaler takes one from the stock, and gives it
// back.
var bareMetal = []chapter{
	{"The cluster that the installer made (S52, S54)", (*Story).installed},
	{"A host joins the stock (S49-S51)", (*Story).stock},
	{"MachineAutoscaler and ClusterAutoscaler (S55-S57)", (*Story).hostAutoscalers},
	{"220 pods (S58-S61)", (*Story).manyPods},
	{"A host that is power-cycled (E36)", (*Story).powerCycle},
	{"100 pods (S62-S64)", (*Story).fewPods},
	{"What was told (S65-S71)", (*Story).told},
}

const (
	hostSet    = "abi-sb5b6-worker-0"
	hostNode   = "worker-2.abi.hubcluster-1.lab.example.com"
	bmhState   = "get bmh worker-2" + inNamespace + " -o jsonpath={.status.provisioning.state}/{.spec.consumerRef.name}/{.spec.online}"
	hostCounts = "get machineset " + hostSet + inNamespace + " -o jsonpath={.spec.replicas}{.status.replicas}{.status.readyReplicas}{.status.availableReplicas}"
	newMachine = "get machines" + inNamespace + " -l machine.openshift.io/cluster-api-machineset=" + hostSet + " -o jsonpath={.items[?(@.status.nodeRef.name==\"" + hostNode + "\")]"
)

// installed makes what an installer leaves: hosts whose claims know no UID, Machines that record them, Nodes.
func (s *Story) installed() error {
	s.tell("Three masters and two workers on hosts that the operator does not manage. Their Machines record the hosts.\n")
	if err := s.showAll("apply -f "+s.object("metal3/hosts.yaml"),
		"apply -f "+s.object("metal3/nodes.yaml"),
		"apply -f "+s.object("metal3/nodes.yaml")+" --server-side --subresource status --force-conflicts",
		"apply -f "+s.object("metal3/router.yaml")); err != nil {
		return err
	}
	unmanaged := strings.TrimSpace(strings.Repeat("unmanaged ", 5))
	if err := s.await("the operator knows the hosts", soon, s.is("get bmh"+inNamespace+" -o jsonpath={.items[*].status.provisioning.state}", unmanaged)); err != nil {
		return err
	}
	words, err := s.uids()
	if err != nil {
		return err
	}
	if err := s.showFilled("create", s.object("metal3/machines.yaml"), words...); err != nil {
		return err
	}
	if err := s.showAll("create -f " + s.sample("metal3/"+hostSet+".yaml")); err != nil {
		return err
	}
	running := strings.TrimSpace(strings.Repeat("Running ", 5))
	if err := s.await("the Machines are Running, with the Nodes that were there", soon, s.is("get machines"+inNamespace+" -o jsonpath={.items[*].status.phase}", running)); err != nil {
		return err
	}
	if err := s.await("the set has taken its Machines over", soon, s.is(hostCounts, "2222")); err != nil {
		return err
	}
	if err := s.await("the Nodes know their hosts (E34)", soon, s.contains("get nodes -o jsonpath={.items[*].spec.providerID}",
		"baremetalhost:///openshift-machine-api/master-0/", "baremetalhost:///openshift-machine-api/worker-1/")); err != nil {
		return err
	}
	blank := s.is("get machines"+inNamespace+" -o jsonpath={.items[*].metadata.labels.machine\\.openshift\\.io/instance-type}", "")
	if err := s.await("type, region and zone are blank (S54)", soon, blank); err != nil {
		return err
	}
	return s.showAll("get nodes", "get bmh"+inNamespace, "get machinesets"+inNamespace, "get machines"+inNamespace)
}

// uids returns what stands for the hosts' UIDs in object files, each with the UID.
func (s *Story) uids() (words []string, err error) {
	pairs, err := s.ask("get bmh" + inNamespace + " --no-headers -o custom-columns=NAME:.metadata.name,UID:.metadata.uid")
	for pair := range strings.Lines(pairs) {
		if f := strings.Fields(pair); len(f) == 2 {
			words = append(words, "UID-OF-"+f[0], f[1])
		}
	}
	return words, err
}

func (s *Story) stock() error {
	if err := s.showAll("apply -f " + s.object("metal3/worker-2.yaml")); err != nil {
		return err
	}
	if err := s.await("worker-2 is registered and available", soon, s.is(bmhState, "available//true")); err != nil {
		return err
	}
	return s.showAll("get bmh"+inNamespace, "get secrets"+inNamespace)
}

func (s *Story) hostAutoscalers() error {
	s.tell("Hosts have no limits of cores and memory. Six Nodes are three masters, two workers and the one that waits. Only the\ndelays are shortened: to 10, 5 and 10 seconds, and unneededTime from 60 to 10.\n")
	if err := s.showAll("create -f "+s.object("metal3/clusterautoscaler.yaml"), "create -f "+s.sample("metal3/machineautoscaler.yaml")); err != nil {
		return err
	}
	bounds := s.contains("describe machineset "+hostSet+inNamespace, "autoscaling.openshift.io/machineautoscaler: openshift-machine-api/"+hostSet,
		"machine.openshift.io/cluster-api-autoscaler-node-group-max-size: 3", "machine.openshift.io/cluster-api-autoscaler-node-group-min-size: 1")
	if err := s.await("the set carries its bounds (S57)", soon, bounds); err != nil {
		return err
	}
	return s.showAll("describe machineset " + hostSet + inNamespace)
}

func (s *Story) manyPods() error {
	if err := s.showAll("create namespace test", "apply -f "+s.object("metal3/deployment.yaml")); err != nil {
		return err
	}
	if err := s.showAll("scale deployment/test-deployment -n test --replicas=220"); err != nil {
		return err
	}
	if err := s.await("pods wait for a Node", soon, s.contains("get pods -n test --field-selector status.phase=Pending,spec.nodeName= -o name", "pod/")); err != nil {
		return err
	}
	if err := s.await("the set grows 2→3", soon, s.is("get machineset "+hostSet+inNamespace+" -o jsonpath={.spec.replicas}", "3")); err != nil {
		return err
	}
	if err := s.await("the new Machine claims the host, which is provisioned (S53)", soon, s.contains(bmhState, "provisioning/"+hostSet+"-")); err != nil {
		return err
	}
	if err := s.showAll("get bmh"+inNamespace, "get machines"+inNamespace); err != nil {
		return err
	}
	if err := s.await("the host is provisioned", aWhile, s.contains(bmhState, "provisioned/"+hostSet+"-")); err != nil {
		return err
	}
	if err := s.await("its Node is Ready, under the host's own name (S61)", aWhile,
		s.is("get node "+hostNode+" -o jsonpath={.status.conditions[?(@.type==\"Ready\")].status}", "True")); err != nil {
		return err
	}
	if err := s.await("its Machine is Running", soon, s.is(newMachine+".status.phase}", "Running")); err != nil {
		return err
	}
	if err := s.await("the set has three (S61)", soon, s.is(hostCounts, "3333")); err != nil {
		return err
	}
	if err := s.await("all 220 pods run", aWhile, s.is("get deployment test-deployment -n test -o jsonpath={.status.readyReplicas}", "220")); err != nil {
		return err
	}
	if err := s.await("the host was named to its Node (E34)", soon, s.contains("get node "+hostNode+" -o jsonpath={.spec.providerID}", "baremetalhost:///openshift-machine-api/worker-2/")); err != nil {
		return err
	}
	return s.showAll("get machines"+inNamespace, "get bmh"+inNamespace, "get nodes", "get machinesets"+inNamespace, "get deployment -n test")
}

// powerCycle wishes what remediate wishes for a sick Machine.
func (s *Story) powerCycle() error {
	s.tell("The annotation is what a MachineHealthCheck with strategy external-baremetal sets. What the Node carries outlives it.\n")
	former, err := s.ask("get node " + hostNode + " -o jsonpath={.metadata.uid}")
	if err != nil {
		return err
	}
	name, err := s.ask(newMachine + ".metadata.name}")
	if err != nil {
		return err
	}
	if err := s.showAll("label node "+hostNode+" rack=b12", "annotate node "+hostNode+" owner=team-a",
		"annotate machine "+name+inNamespace+" host.metal3.io/external-remediation="); err != nil {
		return err
	}
	anew := func() string {
		if uid, err := s.ask("get node " + hostNode + " -o jsonpath={.metadata.uid}"); err != nil || uid == former {
			return fmt.Sprintf("it is %s, %v", uid, err)
		}
		return s.is("get node "+hostNode+" -o jsonpath={.metadata.labels.rack}/{.metadata.annotations.owner}/{.status.conditions[?(@.type==\"Ready\")].status}", "b12/team-a/True")()
	}
	if err := s.await("its Node went while the host was off, and is back with what it carried", aWhile, anew); err != nil {
		return err
	}
	const told = "get events" + inNamespace + " -o custom-columns=REASON:.reason,SOURCE:.source.component,MESSAGE:.message"
	if err := s.await("host and Machine tell of it", soon, s.contains(told, "PowerOff metal3-baremetal-controller", "PowerOn metal3-baremetal-controller", "PowerCycle baremetal_controller")); err != nil {
		return err
	}
	clean := s.is("get machine "+name+inNamespace+" -o jsonpath={.metadata.annotations.host\\.metal3\\.io/external-remediation}{.metadata.annotations.remediation\\.metal3\\.io/powered-off-for-remediation}{.metadata.annotations.remediation\\.metal3\\.io/node-labels-backup}", "")
	if err := s.await("nothing of it is left on the Machine", soon, clean); err != nil {
		return err
	}
	if err := s.await("all 220 pods run again", aWhile, s.is("get deployment test-deployment -n test -o jsonpath={.status.readyReplicas}", "220")); err != nil {
		return err
	}
	return s.showAll("get nodes", "get bmh"+inNamespace, "get machines"+inNamespace)
}

func (s *Story) fewPods() error {
	if err := s.showAll("scale deployment/test-deployment -n test --replicas=100"); err != nil {
		return err
	}
	if err := s.await("the set shrinks 3→2", untilIdle, s.is("get machineset "+hostSet+inNamespace+" -o jsonpath={.spec.replicas}", "2")); err != nil {
		return err
	}
	if err := s.await("the host is cleaned, off and still claimed (S63)", aWhile, s.contains(bmhState, "deprovisioning/"+hostSet+"-", "/false")); err != nil {
		return err
	}
	if err := s.await("its Node is not ready and takes no pods", soon, s.contains("get node "+hostNode+" --no-headers", "NotReady,SchedulingDisabled")); err != nil {
		return err
	}
	if err := s.showAll("get machinesets"+inNamespace, "get bmh"+inNamespace, "get machines"+inNamespace, "get nodes"); err != nil {
		return err
	}
	if err := s.await("the host is back in the stock, of nobody, and off (S63, S64)", untilIdle, s.is(bmhState, "available//false")); err != nil {
		return err
	}
	gone := func() string {
		out, err := s.ask("get machines,nodes -A -o name")
		if machines := strings.Count(out, "machine.openshift.io/"); err != nil || machines != 5 || strings.Count(out, "node/") != 5 {
			return fmt.Sprintf("%v %s", err, out)
		}
		return ""
	}
	if err := s.await("its Machine and its Node are gone; the installer's are not", aWhile, gone); err != nil {
		return err
	}
	if err := s.await("the set has two, all pods run", soon, s.is(hostCounts, "2222")); err != nil {
		return err
	}
	if err := s.await("100 pods run", soon, s.is("get deployment test-deployment -n test -o jsonpath={.status.readyReplicas}", "100")); err != nil {
		return err
	}
	return s.showAll("get bmh"+inNamespace, "get machines"+inNamespace, "get nodes")
}

func (s *Story) told() error {
	const columns = "get events" + inNamespace + " --sort-by=.lastTimestamp -o custom-columns=LAST_SEEN:.lastTimestamp,KIND:.involvedObject.kind,REASON:.reason,SOURCE:.source.component,MESSAGE:.message"
	if err := s.await("the Machine's drain, the autoscaler's and the operator's decisions were told", soon, s.contains(columns,
		"machine-drain-controller", "ScaledUpGroup", "size set to 3 instead of 2 (max: 3)", "Scale-down", "metal3-baremetal-controller", "ProvisioningComplete", "PowerOff",
	)); err != nil {
		return err
	}
	return s.show(strings.Fields(columns)...)
}
