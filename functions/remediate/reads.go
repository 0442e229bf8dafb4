// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// reads stops after one Machine and its Node where no check finds the Machine due. Whoever counts, or acts, reads all
// Machines and all Nodes, and the sets whose Machines are being replaced.
func reads(s snapshot.Snapshot) snapshot.Scope {
	ask := []snapshot.Query{snapshot.All("MachineHealthCheck")}
	var more []snapshot.Query
	all := false
	switch {
	case s.Request.Scan():
		all = len(s.HealthChecks) > 0
	case s.Request.Is("MachineHealthCheck"):
		all = true
	case s.Request.Is("Machine"):
		more, all = machineReads(s)
	case s.Request.Is("Node"):
		more, all = nodeReads(s)
	}
	ask = append(ask, more...)
	if all {
		ask = append(ask, snapshot.All("Machine"), snapshot.All("Node"))
	}
	if s.Has(snapshot.All("Machine")) {
		ask = append(ask, sets(s)...)
	}
	return snapshot.Scope{Objects: ask}
}

func machineReads(s snapshot.Snapshot) (ask []snapshot.Query, all bool) {
	ask = []snapshot.Query{snapshot.One("Machine", s.Request.Namespace, s.Request.Name)}
	m := s.Machine(s.Request.Namespace, s.Request.Name)
	if m == nil || len(s.HealthChecks) == 0 {
		return ask, false
	}
	if ref := m.Status.NodeRef; ref != nil {
		node := snapshot.One("Node", "", ref.Name)
		return append(ask, node), s.Has(node) && pressing(s, m)
	}
	return ask, pressing(s, m)
}

func nodeReads(s snapshot.Snapshot) (ask []snapshot.Query, all bool) {
	ask = []snapshot.Query{snapshot.One("Node", "", s.Request.Name)}
	n := s.Node(s.Request.Name)
	if n == nil || len(s.HealthChecks) == 0 {
		return ask, false
	}
	namespace, name, ok := machine.AnnotatedMachine(n)
	if !ok {
		return ask, false
	}
	m := s.Machine(namespace, name)
	return append(ask, snapshot.One("Machine", namespace, name)), m != nil && pressing(s, m)
}

// pressing reports whether more has to be known about m than itself and its Node.
func pressing(s snapshot.Snapshot, m *machine.Machine) bool {
	checks, _ := checksOf(s)
	for _, c := range checks {
		for _, t := range c.targets {
			if t.m == m && (t.sick(s.Now) || t.reason == reasonNotFound || c.record.has(m)) {
				return true
			}
		}
	}
	return false
}

func sets(s snapshot.Snapshot) []snapshot.Query {
	var ask []snapshot.Query
	for _, h := range s.HealthChecks {
		r, err := parseRecord(h.Annotations[machine.AnnotationInFlight])
		if err != nil {
			continue // nothing is done for it
		}
		for _, f := range r.InFlight {
			if f.Set != "" {
				ask = append(ask, snapshot.One("MachineSet", h.Namespace, f.Set))
			}
		}
	}
	return ask
}
