// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"strings"
)

// azure is a set in one zone of Azure's, scaled up and down by hand (SPEC E38-E40).
var azure = []chapter{
	{"A MachineSet in a zone of Azure's (E38)", (*Story).setAtAzure},
	{"Machine, instance, Node (E40)", (*Story).pairsAtAzure},
	{"And back to one", (*Story).toOneAtAzure},
}

const workersInEastUS2 = "cluster-fz2xk-worker-eastus21"

func (s *Story) setAtAzure() error {
	if err := s.showAll("apply -f "+s.sample("azure/"+workersInEastUS2+".yaml"), "scale machineset "+workersInEastUS2+inNamespace+" --replicas=2"); err != nil {
		return err
	}
	if err := s.await("the set has two", aWhile, s.contains("get machineset "+workersInEastUS2+inNamespace+" --no-headers", workersInEastUS2+" 2 2 2 2")); err != nil {
		return err
	}
	return s.showAll("get machinesets"+inNamespace, "get machines"+inNamespace, "get nodes")
}

// pairsAtAzure finds for every Machine its instance and its Node, and the way back.
func (s *Story) pairsAtAzure() error {
	if err := s.showAll("get machines" + inNamespace + " -o wide"); err != nil {
		return err
	}
	wide := s.contains("get machines"+inNamespace+" -o wide --no-headers", "Running Standard_D4s_v3 eastus2 1", "azure:///subscriptions/", "/virtualMachines/"+workersInEastUS2+"-")
	if err := s.await("type, region, zone, Node, provider id and state are columns", soon, wide); err != nil {
		return err
	}
	machines, err := s.ask("get machines" + inNamespace + " --no-headers -o custom-columns=NODE:.status.nodeRef.name,ID:.spec.providerID")
	if err != nil {
		return err
	}
	if n := strings.Count(machines, "azure:///"); n != 2 || strings.Contains(machines, "<none>") {
		return fmt.Errorf("of 2 Machines, %d have an instance:\n%s", n, machines)
	}
	for pair := range strings.Lines(machines) {
		node := strings.Fields(pair)
		if err := s.await(node[0]+" is the Node of "+node[1], soon, s.is("get node "+node[0]+" -o jsonpath={.spec.providerID}", node[1])); err != nil {
			return err
		}
	}
	return nil
}

func (s *Story) toOneAtAzure() error {
	if err := s.showAll("scale machineset " + workersInEastUS2 + inNamespace + " --replicas=1"); err != nil {
		return err
	}
	gone := func() string {
		out, err := s.ask("get machines,nodes -A -o name")
		if err != nil || strings.Count(out, "machine.openshift.io/") != 1 || strings.Count(out, "node/") != 1 {
			return fmt.Sprintf("%v %s", err, out)
		}
		return ""
	}
	if err := s.await("one Machine is gone, with its Node", aWhile, gone); err != nil {
		return err
	}
	return s.showAll("get machinesets"+inNamespace, "get machines"+inNamespace, "get events"+inNamespace+" --field-selector source=azure_controller")
}
