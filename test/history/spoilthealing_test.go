// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/sim"
)

var deletesWhatIsInFlight = rogue(func(s snapshot.Snapshot) (all []plan.Action) {
	for _, m := range s.Machines {
		for _, h := range s.HealthChecks {
			if strings.Contains(h.Annotations[machine.AnnotationInFlight], string(m.UID)) {
				all = append(all, deleteMachine(s, m))
			}
		}
	}
	return all
}, "Machine", "MachineHealthCheck")

func keepsClaims(f function.Function) function.Function {
	return without(f, func(a plan.Action) bool {
		old, now, is := updated[plan.Object](a)
		return is && old.GetAnnotations()[machine.AnnotationRemediatedBy] != "" && now.GetAnnotations()[machine.AnnotationRemediatedBy] == ""
	})
}

// hypochondriac takes every Node for one that has not been ready since an hour before the beginning.
func hypochondriac(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		for i, n := range s.Nodes {
			next.Nodes[i] = unready(n)
		}
		return next
	})
}

// contagious takes every Node for one that has not been ready since an hour before the beginning, as soon as one is not.
func contagious(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		if !slices.ContainsFunc(s.Nodes, func(n *corev1.Node) bool { return !machine.NodeReady(n) }) {
			return s
		}
		next := s.Clone()
		for i, n := range s.Nodes {
			next.Nodes[i] = unready(n)
		}
		return next
	})
}

// unready returns a Node that has not been ready since an hour before the beginning.
func unready(n *corev1.Node) *corev1.Node {
	c := n.DeepCopy()
	c.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(sim.Start.Add(-time.Hour)),
	}}
	return c
}

// crowds puts everything four times in flight.
var crowds = written(func(_, h *machine.MachineHealthCheck) {
	record := map[string]any{}
	if err := json.Unmarshal([]byte(h.Annotations[machine.AnnotationInFlight]), &record); err != nil {
		return
	}
	flying, _ := record["inFlight"].([]any)
	record["inFlight"] = slices.Concat(flying, flying, flying, flying)
	text, err := json.Marshal(record)
	if err != nil {
		panic(err)
	}
	h.Annotations[machine.AnnotationInFlight] = string(text)
})

// losses lets a cloud lose many instances at once.
func losses(c *sim.Config) { c.Losses = true }

// saysNothing never says why a check replaces nothing.
func saysNothing(f function.Function) function.Function {
	return without(f, func(a plan.Action) bool {
		u, is := a.(plan.UpdateStatus)
		return is && plan.KindOf(u.New) == "MachineHealthCheck"
	})
}

// spoils lets people spoil a template, and mend it late.
func spoils(c *sim.Config) { c.Spoils = true }

// triesAgain takes what can never work for what failed this time.
func triesAgain(f function.Function) function.Function {
	return readMachines(f, func(m *machine.Machine) {
		if m.Status.ErrorReason != nil {
			m.Status.ErrorReason = new(machinev1beta1.CreateMachineError)
		}
	})
}
