// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	// caSource is the component that Events on the ClusterAutoscaler come from (SPEC S66).
	caSource = "cluster_autoscaler_controller"
	// conditionValid says whether the settings are in effect; with settings that are not, nothing is scaled.
	conditionValid = "Valid"
)

// report tells in the ClusterAutoscaler's status whether its settings are in effect, once for every change of them.
func report(s snapshot.Snapshot, ca *autoscaling.ClusterAutoscaler) []plan.Sequence {
	t, changed := validity(s, ca)
	if !changed {
		return nil
	}
	return []plan.Sequence{t.sequence(s)}
}

// validity is what is to be told of the settings, and whether the status does not say so yet.
func validity(s snapshot.Snapshot, ca *autoscaling.ClusterAutoscaler) (t telling, changed bool) {
	c := metav1.Condition{Type: conditionValid, Status: metav1.ConditionTrue, Reason: "SuccessfulUpdate", ObservedGeneration: ca.Generation}
	effect := machine.Namespace + "/cluster-autoscaler-" + ca.Name
	note := plan.Normal(ca, "SuccessfulUpdate", "Updated ClusterAutoscaler deployment: "+effect)
	errs := ca.Validate()
	switch {
	case len(errs) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "FailedValidation", errs.ToAggregate().Error()
		note = plan.Warning(ca, c.Reason, c.Message)
	case meta.FindStatusCondition(ca.Status.Conditions, conditionValid) == nil:
		note = plan.Normal(ca, "SuccessfulCreate", "Created ClusterAutoscaler deployment: "+effect)
	}
	t.notes = []plan.Note{note.From(caSource)}
	if warnings := strings.Join(ca.Warnings(), "; "); len(errs) == 0 && warnings != "" {
		c.Message = warnings
		t.notes = append(t.notes, plan.Warning(ca, "FailedValidation", warnings).From(caSource))
	}
	next := ca.DeepCopy()
	changed = setCondition(&next.Status.Conditions, c, s)
	t.c, t.source, t.write = c, caSource, plan.UpdateStatus{Old: ca, New: next, Why: c.Reason}
	return t, changed
}
