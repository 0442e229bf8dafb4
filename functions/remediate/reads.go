// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// reads stops after one Machine and its Node where no check finds the Machine due. Whoever counts, or acts, is a scan: it reads all
// Machines and all Nodes, the budget, what remediates from outside, and the sets whose Machines are ill or being replaced. Where all
// Nodes fall ill together each event would read, and keep, as much.
func reads(s snapshot.Snapshot) snapshot.Scope {
	ask := []snapshot.Query{snapshot.All("MachineHealthCheck")}
	if s.Request.Scan() && !s.Has(ask[0]) { // metrics tell of them where those of before cannot be read
		return snapshot.Scope{Objects: ask}
	}
	ask = append(ask, snapshot.All(legacyKind))
	if len(s.LegacyHealthChecks) > 0 {
		ask = append(ask, rulesQuery)
	}
	checks := len(s.HealthChecks)+len(s.LegacyHealthChecks) > 0
	var more []snapshot.Query
	all, wide := false, false
	switch {
	case s.Request.Scan():
		all = checks
		if !checks && looksBehind(s) {
			more = []snapshot.Query{snapshot.All("Machine")}
		}
	case s.Request.Is("MachineHealthCheck"):
		wide = true
	case s.Request.Is("Machine"):
		more, wide = machineReads(s, checks)
	case s.Request.Is("Node"):
		more, wide = nodeReads(s, checks)
	}
	if wide {
		return snapshot.Scope{Scan: true}
	}
	ask = append(ask, more...)
	if all {
		ask = append(ask, snapshot.All("Machine"), snapshot.All("Node"), budgetQuery)
		sets := templateReads(s)
		for _, h := range s.HealthChecks {
			sets = append(sets, setReads(h.Namespace, h.Annotations)...)
			ask = append(ask, externalReads(h)...)
		}
		for _, h := range s.LegacyHealthChecks {
			sets = append(sets, setReads(h.Namespace, h.Annotations)...)
		}
		ask = append(ask, snapshot.Few(sets, "MachineSet")...)
	}
	return snapshot.Scope{Objects: ask}
}

// leftBehind is how often what checks left behind is looked for once all are gone.
const leftBehind = 10 * time.Minute

// looksBehind reports whether a scan without checks reads all Machines, which may carry verdicts and claims: the event that the last check is gone
// may be lost. The first of a process does, and of the others one in a while, as whoever has no checks shall not pay for them.
func looksBehind(s snapshot.Snapshot) bool {
	return !s.Now.Truncate(leftBehind).Equal(s.Before.Truncate(leftBehind))
}

// machineReads asks for nothing where there is no check: with thousands of Nodes that tell how they are, one more question for
// each keeps the API server from its work.
func machineReads(s snapshot.Snapshot, checks bool) (ask []snapshot.Query, all bool) {
	if !checks {
		return nil, false
	}
	ask = []snapshot.Query{snapshot.One("Machine", s.Request.Namespace, s.Request.Name)}
	m := s.Machine(s.Request.Namespace, s.Request.Name)
	if m == nil {
		return ask, false
	}
	if ref := m.Status.NodeRef; ref != nil {
		node := snapshot.One("Node", "", ref.Name)
		return append(ask, node), s.Has(node) && pressing(s, m)
	}
	return ask, pressing(s, m)
}

func nodeReads(s snapshot.Snapshot, checks bool) (ask []snapshot.Query, all bool) {
	if !checks {
		return nil, false
	}
	ask = []snapshot.Query{snapshot.One("Node", "", s.Request.Name)}
	n := s.Node(s.Request.Name)
	if n == nil {
		return ask, false
	}
	namespace, name, ok := machine.AnnotatedMachine(n)
	if !ok {
		return ask, false
	}
	m := s.Machine(namespace, name)
	return append(ask, snapshot.One("Machine", namespace, name)), m != nil && pressing(s, m)
}

// pressing reports whether more has to be known about m than itself and its Node: also where another Node spoke for it.
func pressing(s snapshot.Snapshot, m *machine.Machine) bool {
	if told := machine.FindCondition(m.Status.Conditions, machine.ConditionHealthy); told != nil && told.Reason == reasonAnother {
		return true
	}
	for _, c := range newDecision(s).checks {
		for _, t := range c.targets {
			if t.m == m && (t.sick(s.Now) || t.sight != "" || c.record.has(m.UID)) {
				return true
			}
		}
	}
	return false
}

// templateReads asks for the sets of Machines that Failed, or were told to be ill: from another template another one may be made.
func templateReads(s snapshot.Snapshot) []snapshot.Query {
	var ask []snapshot.Query
	for _, m := range s.Machines {
		told := machine.FindCondition(m.Status.Conditions, machine.ConditionHealthy)
		ill := machine.Phase(m) == machine.PhaseFailed || told != nil && told.Status == corev1.ConditionFalse
		if set := machine.OwningSet(m); set != nil && ill {
			ask = append(ask, snapshot.One("MachineSet", m.Namespace, set.Name))
		}
	}
	return ask
}

// setReads asks for the sets whose Machines a check has in flight.
func setReads(namespace string, annotations map[string]string) []snapshot.Query {
	r, err := parseRecord(annotations[machine.AnnotationInFlight])
	if err != nil {
		return nil // nothing is done for it
	}
	var ask []snapshot.Query
	for _, f := range r.InFlight {
		if f.Set != "" {
			ask = append(ask, snapshot.One("MachineSet", namespace, f.Set))
		}
	}
	return ask
}
