// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// removing reports whether a scale-down may be under way.
func (p *Play) removing() bool { return len(p.removals()) > 0 }

// removals are those that the autoscaler has on record.
func (p *Play) removals() []autoscaling.Removal {
	cm := memory.Get[*corev1.ConfigMap](p.API, machine.Namespace, machine.ConfigMapStatus)
	if cm == nil || !strings.Contains(cm.Data[autoscaling.StateKey], "removals") {
		return nil
	}
	s, err := autoscaling.ParseState(cm.Data[autoscaling.StateKey])
	if err != nil {
		return nil
	}
	return s.Removals
}

// onRecord names a removal that is on record.
func (p *Play) onRecord() string {
	for _, r := range p.removals() {
		return fmt.Sprintf("R-S11: the removal of node %s is on record", r.Node)
	}
	return ""
}

// outwaited reports whether the autoscaler's records say that a request which is open has timed out.
func (p *Play) outwaited() bool {
	cm := memory.Get[*corev1.ConfigMap](p.API, machine.Namespace, machine.ConfigMapStatus)
	if cm == nil || !strings.Contains(cm.Data[autoscaling.StateKey], "timedOut") {
		return false
	}
	s, err := autoscaling.ParseState(cm.Data[autoscaling.StateKey])
	for _, g := range s.Groups {
		if err == nil && g.Request != nil && g.Request.TimedOut {
			return true
		}
	}
	return false
}

// removes reports whether a removal of this Node is on record.
func (p *Play) removes(n *corev1.Node) bool {
	return slices.ContainsFunc(p.removals(), func(r autoscaling.Removal) bool { return r.NodeUID == n.UID })
}
