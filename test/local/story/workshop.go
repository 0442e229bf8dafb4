// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"strings"
)

// workshop is the walk-through of a cluster on EC2 (SPEC A.2): three zones with a MachineSet each, one of which is scaled
// up and down by hand.
var workshop = []chapter{
	{"The cluster that the installer made (S74, S75)", (*Story).mastersOnEC2},
	{"One MachineSet for each zone, scaled in turn (S73, S74)", (*Story).zones},
	{"Machine, instance, Node (S75-S77)", (*Story).pairs},
	{"From three to four (S78, S79)", (*Story).toFour},
	{"And back to three (S78)", (*Story).toThree},
}

// Of the workshop: three Machines in the set of the zone that it looks at, one in the others.
const (
	workersIn2b = "cluster-8trtb-rlgsx-worker-us-east-2b"
	ofSet       = " -l machine.openshift.io/cluster-api-machineset="
	nodeNames   = " -o jsonpath={.items[*].status.nodeRef.name}"
)

func (s *Story) mastersOnEC2() error {
	s.tell("Three masters, of no set. Their instances are there; their Machines record them.\n")
	if err := s.showAll("apply -f "+s.object("aws/nodes.yaml"),
		"apply -f "+s.object("aws/nodes.yaml")+" --server-side --subresource status --force-conflicts",
		"apply -f "+s.object("aws/machines.yaml")); err != nil {
		return err
	}
	const masters = "get machines" + inNamespace + " -l machine.openshift.io/cluster-api-machine-role=master -o jsonpath="
	if err := s.await("the masters' Machines are Running", soon, s.is(masters+"{.items[*].status.phase}", "Running Running Running")); err != nil {
		return err
	}
	types := s.is(masters+"{.items[*].metadata.labels.machine\\.openshift\\.io/instance-type}", "c6in.2xlarge c6in.2xlarge c6in.2xlarge")
	if err := s.await("they show type, region and zone (S75)", soon, types); err != nil {
		return err
	}
	return s.showAll("get machines"+inNamespace, "get nodes")
}

// zones makes the sets as an installer does.
func (s *Story) zones() error {
	for _, in := range []struct{ zone, replicas string }{{"us-east-2a", "1"}, {"us-east-2b", "3"}, {"us-east-2c", "1"}} {
		set := "cluster-8trtb-rlgsx-worker-" + in.zone
		if err := s.showAll("apply -f "+s.sample("aws/"+set+".yaml"), "scale machineset "+set+inNamespace+" --replicas="+in.replicas); err != nil {
			return err
		}
	}
	if err := s.await("the set of us-east-2b has three (S74)", aWhile, s.contains("get machineset "+workersIn2b+inNamespace+" --no-headers", workersIn2b+" 3 3 3 3")); err != nil {
		return err
	}
	ready := s.is("get machinesets"+inNamespace+" -o jsonpath={.items[*].status.availableReplicas}", "1 3 1")
	if err := s.await("the others have one each", soon, ready); err != nil {
		return err
	}
	return s.showAll("get machinesets"+inNamespace, "get machines"+inNamespace)
}

// pairs finds for every Machine its instance and its Node, and the way back.
func (s *Story) pairs() error {
	if err := s.showAll("get machines" + inNamespace + " -o wide"); err != nil {
		return err
	}
	wide := s.contains("get machines"+inNamespace+ofSet+workersIn2b+" -o wide --no-headers",
		"Running m5a.4xlarge us-east-2 us-east-2b", "ip-10-0-", ".us-east-2.compute.internal aws:///us-east-2b/i-", "running")
	if err := s.await("type, region, zone, Node, provider id and state are columns (S75, S76)", soon, wide); err != nil {
		return err
	}
	machines, err := s.ask("get machines" + inNamespace + " --no-headers -o custom-columns=NODE:.status.nodeRef.name,ID:.spec.providerID")
	if err != nil {
		return err
	}
	if n := strings.Count(machines, "aws:///"); n != 8 || strings.Contains(machines, "<none>") {
		return fmt.Errorf("of 8 Machines, %d have an instance:\n%s", n, machines)
	}
	for pair := range strings.Lines(machines) {
		node := strings.Fields(pair)
		if err := s.await(node[0]+" is the Node of "+node[1], soon, s.is("get node "+node[0]+" -o jsonpath={.spec.providerID}", node[1])); err != nil {
			return err
		}
	}
	one, err := s.ask("get machines" + inNamespace + ofSet + workersIn2b + " -o jsonpath={.items[0].metadata.name}")
	if err != nil {
		return err
	}
	if err := s.showAll("describe machine " + one + inNamespace); err != nil {
		return err
	}
	return s.await("describing a Machine names its Node, its instance and every name of it (S77)", soon, s.contains("describe machine "+one+inNamespace,
		"Node Ref: Kind: Node Name: ip-10-0-", "Type: Hostname", "Type: InternalDNS", "Instance Id: i-", "Instance State: running", "Update"))
}

func (s *Story) toFour() error {
	cluster, err := s.ask("get infrastructure cluster -o jsonpath={.status.infrastructureName}")
	if err != nil {
		return err
	}
	const zoneLabel = "topology.kubernetes.io/zone"
	zone, err := s.ask("get nodes -l " + zoneLabel + "=us-east-2b -o jsonpath={.items[0].metadata.labels." + strings.ReplaceAll(zoneLabel, ".", "\\.") + "}")
	if err != nil {
		return err
	}
	s.tell("CLUSTERNAME=%s, from the Infrastructure; ZONENAME=%s, from a Node's label.\n", cluster, zone)
	set := cluster + "-worker-" + zone
	if err := s.showAll("scale machineset " + set + inNamespace + " --replicas=4"); err != nil {
		return err
	}
	starting := func() string {
		out, err := s.ask("get machines" + inNamespace + ofSet + set + " -o wide --no-headers")
		for line := range strings.Lines(out) {
			if line = strings.Join(strings.Fields(line), " "); strings.Contains(line, "m5a.4xlarge us-east-2 us-east-2b") && strings.HasSuffix(line, " pending") {
				return ""
			}
		}
		return fmt.Sprintf("%v %s", err, out)
	}
	if err := s.await("the new Machine shows type, region and zone while its instance starts (S78)", soon, starting); err != nil {
		return err
	}
	if err := s.showAll("get machines" + inNamespace + ofSet + set); err != nil {
		return err
	}
	if err := s.await("the set has four", aWhile, s.contains("get machineset "+set+inNamespace+" --no-headers", set+" 4 4 4 4")); err != nil {
		return err
	}
	nodes, err := s.ask("get machines" + inNamespace + ofSet + set + nodeNames)
	if err != nil {
		return err
	}
	if n := strings.Count(nodes, ".us-east-2.compute.internal"); n != 4 {
		return fmt.Errorf("%d of four Machines have a Node under EC2's name: %s", n, nodes)
	}
	return s.showAll("get machinesets"+inNamespace, "get machines"+inNamespace+" -o wide", "get nodes")
}

func (s *Story) toThree() error {
	if err := s.showAll("scale machineset " + workersIn2b + inNamespace + " --replicas=3"); err != nil {
		return err
	}
	gone := func() string {
		out, err := s.ask("get machines,nodes -A -o name")
		if machines := strings.Count(out, "machine.openshift.io/"); err != nil || machines != 8 || strings.Count(out, "node/") != 8 {
			return fmt.Sprintf("%v %s", err, out)
		}
		return ""
	}
	if err := s.await("one Machine is gone, with its Node; the masters and the others are not", aWhile, gone); err != nil {
		return err
	}
	if err := s.await("the set has three", soon, s.contains("get machineset "+workersIn2b+inNamespace+" --no-headers", workersIn2b+" 3 3 3 3")); err != nil {
		return err
	}
	return s.showAll("get machinesets"+inNamespace, "get machines"+inNamespace, "get nodes", "get events"+inNamespace+" --field-selector source=aws_controller")
}
