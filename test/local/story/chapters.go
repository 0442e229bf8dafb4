// SPDX-License-Identifier: Apache-2.0

package story

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

const inNamespace = " -n openshift-machine-api"

// How long each thing may take on a machine that is busy with something else.
const (
	soon      = 90 * time.Second
	aWhile    = 4 * time.Minute
	untilIdle = 8 * time.Minute
)

var chapters = []chapter{
	{"What an earlier play left", (*Story).cleanUp},
	{"The cluster before the Machine API", (*Story).before},
	{"A MachineSet with a mistake (S22-S26)", (*Story).mistake},
	{"Two zones, one Machine each (S27-S29)", (*Story).twoZones},
	{"The hand-made worker goes (S30)", (*Story).handMade},
	{"MachineAutoscalers and the ClusterAutoscaler (S31-S37)", (*Story).autoscalers},
	{"Fifty pods (S38-S41)", (*Story).fiftyPods},
	{"The Job is done (S42, S43)", (*Story).shrink},
}

// cleanUp removes what the story makes, so that it can be played again, and after trying things by hand.
func (s *Story) cleanUp() error {
	left, err := s.ask("get machinesets,machines,machineautoscalers,clusterautoscalers,nodes -A -o name")
	if err != nil {
		return err
	}
	if left == "" {
		s.tell("Nothing.\n")
		return nil
	}
	if err := s.showAll(
		"delete clusterautoscalers --all",
		"delete machineautoscalers --all"+inNamespace,
		"delete machinesets --all"+inNamespace,
		"delete namespace work-queue openshift-console --ignore-not-found",
	); err != nil {
		return err
	}
	if err := s.await("every Machine is gone", aWhile, s.is("get machines"+inNamespace+" -o name", "")); err != nil {
		return err
	}
	return s.showAll("delete nodes --all")
}

func (s *Story) before() error {
	s.tell("Three masters, a worker that somebody made by hand, and the DaemonSets that every OpenShift node runs.\n")
	for _, args := range [][]string{
		{"apply", "-f", s.object("nodes.yaml")},
		{"apply", "-f", s.object("nodes.yaml"), "--server-side", "--subresource", "status", "--force-conflicts"},
		{"apply", "-f", s.object("daemonsets.yaml")},
		{"apply", "-f", s.object("downloads.yaml")},
	} {
		if err := s.show(args...); err != nil {
			return err
		}
	}
	if err := s.await("all four nodes are Ready", soon, s.is("get nodes -o jsonpath={.items[*].status.conditions[?(@.type==\"Ready\")].status}", "True True True True")); err != nil {
		return err
	}
	if err := s.await("the console's downloads run on the worker", soon, s.is("get pods -n openshift-console -o jsonpath={.items[*].status.phase}", "Running Running")); err != nil {
		return err
	}
	return s.showAll("get nodes", "get machinesets"+inNamespace)
}

func (s *Story) mistake() error {
	s.tell("The set names a network, or on oVirt an affinity group, that does not exist. Its Machine stays Provisioning, and says why.\n")
	const set = "cluster-a389-fmxsv-worker"
	if err := s.showSet("apply", s.broken()); err != nil {
		return err
	}
	if err := s.showAll("scale machineset "+set+" --replicas=1"+inNamespace, "get machinesets"+inNamespace); err != nil {
		return err
	}
	describe := "describe machines" + inNamespace + " -l machine.openshift.io/cluster-api-machineset=" + set
	cause := s.contains(describe, "FailedCreate", s.controller(), "cluster-a389-fmxsv-nodes", "Phase: Provisioning", "machine.openshift.io/instance-state: ERROR")
	if err := s.await("the Machine says which network is missing", soon, cause); err != nil {
		return err
	}
	if err := s.showAll("get machines"+inNamespace, describe, "scale machineset "+set+" --replicas=0"+inNamespace); err != nil {
		return err
	}
	if err := s.await("the Machine that never had an instance is gone", soon, s.is("get machines"+inNamespace+" -o name", "")); err != nil {
		return err
	}
	return s.showAll("get machines"+inNamespace, "delete machineset "+set+inNamespace)
}

func (s *Story) twoZones() error {
	for _, set := range []string{"general-purpose-1a", "general-purpose-1b", "infra-1a"} {
		if err := s.showSet("create", s.sample(cmp.Or(s.Cloud, "kubemark")+"/"+set+".yaml")); err != nil {
			return err
		}
	}
	if err := s.showAll("get machinesets" + inNamespace); err != nil {
		return err
	}
	for _, set := range []string{"general-purpose-1a", "general-purpose-1b", "infra-1a"} {
		if err := s.showAll("scale machineset " + set + " --replicas=1" + inNamespace); err != nil {
			return err
		}
	}
	if err := s.await("three Machines are Running", aWhile, s.is("get machines"+inNamespace+" -o jsonpath={.items[*].status.phase}", "Running Running Running")); err != nil {
		return err
	}
	if err := s.await("the sets count them as available", soon, s.is("get machinesets"+inNamespace+" -o jsonpath={.items[*].status.availableReplicas}", "1 1 1")); err != nil {
		return err
	}
	if err := s.await("the Nodes carry the role of the set's template", soon, s.contains("get nodes", "general-use,worker")); err != nil {
		return err
	}
	return s.showAll("get machines"+inNamespace, "get machinesets"+inNamespace, "get nodes",
		"get nodes -l node-role.kubernetes.io/general-use -L failure-domain.beta.kubernetes.io/zone")
}

func (s *Story) handMade() error {
	s.tell("Nobody's Machine stands behind this node: the system leaves it alone, kubectl takes it away.\n")
	const worker = "cluster-a389-fmxsv-worker-0"
	if err := s.showAll("cordon "+worker, "get nodes "+worker,
		"drain "+worker+" --ignore-daemonsets --delete-emptydir-data --force", "delete node "+worker); err != nil {
		return err
	}
	moved := s.is("get pods -n openshift-console -o jsonpath={.items[*].status.phase}", "Running Running")
	if err := s.await("what ran on it runs elsewhere", soon, moved); err != nil {
		return err
	}
	return s.showAll("get nodes")
}

func (s *Story) autoscalers() error {
	if err := s.show("create", "-f", s.sample("machineautoscalers.yaml")); err != nil {
		return err
	}
	if err := s.showAll("get machineautoscalers" + inNamespace); err != nil {
		return err
	}
	s.tell("\nThe walk-through's ClusterAutoscaler. Only its delays of five minutes are shortened: to 10, 5 and 10 seconds, and\nunneededTime from 60 to 10.\n")
	if err := s.show("create", "-f", s.object("autoscaler.yaml")); err != nil {
		return err
	}
	bounds := s.is("get machineset general-purpose-1a"+inNamespace+
		" -o jsonpath={.metadata.annotations.machine\\.openshift\\.io/cluster-api-autoscaler-node-group-min-size}"+
		"-{.metadata.annotations.machine\\.openshift\\.io/cluster-api-autoscaler-node-group-max-size}"+
		"-{.metadata.annotations.autoscaling\\.openshift\\.io/machineautoscaler}", "1-4-openshift-machine-api/ma-general-purpose-1a")
	if err := s.await("the sets carry their bounds (S36)", soon, bounds); err != nil {
		return err
	}
	return s.showAll("describe clusterautoscaler default", "describe machineset general-purpose-1a"+inNamespace)
}

func (s *Story) fiftyPods() error {
	job, patience := s.object("job.yaml"), soon
	if s.Unhurried {
		job, patience = s.sample("job.yaml"), aWhile
	} else {
		s.tell("The walk-through's Job, but its pods work for 60 seconds instead of 300.\n")
	}
	if err := s.showAll("create namespace work-queue"); err != nil {
		return err
	}
	if err := s.show("create", "-n", "work-queue", "-f", job); err != nil {
		return err
	}
	const replicas = "get machinesets" + inNamespace + " -o jsonpath={.items[*].spec.replicas}"
	if err := s.await("the sets grow 1→3 and 1→3, balanced, and infra-1a stays (S39)", patience, s.is(replicas, "3 3 1")); err != nil {
		return err
	}
	if err := s.showAll("get machines" + inNamespace); err != nil {
		return err
	}
	running := s.is("get pods -n work-queue -o jsonpath={.items[?(@.status.phase==\"Pending\")].metadata.name}", "")
	if err := s.await("all fifty pods run", aWhile, running); err != nil {
		return err
	}
	if err := s.showAll("get machines"+inNamespace, "get nodes", "get jobs -n work-queue"); err != nil {
		return err
	}
	return s.await("the Job is complete", untilIdle, s.is("get jobs -n work-queue -o jsonpath={.items[0].status.succeeded}", "50"))
}

func (s *Story) shrink() error {
	const replicas = "get machinesets" + inNamespace + " -o jsonpath={.items[*].spec.replicas}"
	cordoned, whole := s.contains("get nodes", "SchedulingDisabled"), s.is(replicas, "3 3 1")
	leaving := func() string { // on a slow machine the first one may have left already
		if missing := cordoned(); missing != "" && whole() == "" {
			return missing
		}
		return ""
	}
	if err := s.await("a Node that nobody needs is cordoned", untilIdle, leaving); err != nil {
		return err
	}
	if err := s.showAll("get nodes", "get machines"+inNamespace); err != nil {
		return err
	}
	if err := s.await("the sets are back at 1 and 1", untilIdle, s.is(replicas, "1 1 1")); err != nil {
		return err
	}
	gone := func() string {
		out, err := s.ask("get machines,nodes -A -o name")
		if machines := strings.Count(out, "machine.openshift.io/"); err != nil || machines != 3 || strings.Count(out, "node/") != 6 {
			return fmt.Sprintf("%v %s", err, out)
		}
		return ""
	}
	if err := s.await("their Machines and Nodes are gone; infra-1a and the masters are not", aWhile, gone); err != nil {
		return err
	}
	if err := s.showAll("get nodes", "get machines"+inNamespace, "get machinesets"+inNamespace,
		"get events"+inNamespace+" --field-selector involvedObject.kind=ConfigMap"); err != nil {
		return err
	}
	events := s.contains("get events"+inNamespace+" --field-selector involvedObject.kind=ConfigMap -o custom-columns=R:.reason,M:.message",
		"ScaledUpGroup", "size set to 3 instead of 1 (max: 4)", "ScaleDownEmpty")
	return s.await("every decision was told (S67-S69)", soon, events)
}
