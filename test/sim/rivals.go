// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// rivals are the MachineAutoscalers that may want the set, and the most that each allows.
var rivals = []struct {
	name string
	most int32
}{{setName, mostReplicas}, {setName + "-too", mostReplicas - 2}}

func autoscalerOf(name, set string, most int32) *autoscaling.MachineAutoscaler {
	ma := &autoscaling.MachineAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: name}}
	ma.Spec.MinReplicas, ma.Spec.MaxReplicas = 1, most
	ma.Spec.ScaleTargetRef.APIVersion, ma.Spec.ScaleTargetRef.Kind, ma.Spec.ScaleTargetRef.Name = "machine.openshift.io/v1beta1", "MachineSet", set
	return ma
}

// compete has people delete one of two MachineAutoscalers of the set, or make it anew.
func (p *Play) compete(i int) {
	if p.Level < Scaling {
		return
	}
	switch ma := memory.Get[*autoscaling.MachineAutoscaler](p.API, machine.Namespace, rivals[i].name); {
	case ma == nil:
		p.tracef("people make machineautoscaler %s anew", rivals[i].name)
		p.remade = p.born
		p.put(autoscalerOf(rivals[i].name, setName, rivals[i].most))
	case ma.DeletionTimestamp == nil:
		p.tracef("people delete machineautoscaler %s", ma.Name)
		p.remove("MachineAutoscaler", ma.Namespace, ma.Name)
	}
}

// makeRivals has people make anew which of them is gone.
func (p *Play) makeRivals() {
	for i := range rivals {
		if p.Rivals && memory.Get[*autoscaling.MachineAutoscaler](p.API, machine.Namespace, rivals[i].name) == nil {
			p.compete(i)
		}
	}
}

// watchOwner holds that of two MachineAutoscalers that want one set it is the one's that has it for as long as that is there (B87). One that
// was made anew since q began is not the one that q read.
func (p *Play) watchOwner(q *proc, old, now *machine.MachineSet) {
	was, is := old.Annotations[machine.AnnotationAutoscaler], now.Annotations[machine.AnnotationAutoscaler]
	if was == is || q.id <= p.remade {
		return
	}
	for _, ma := range memory.List[*autoscaling.MachineAutoscaler](p.API) {
		if was == ma.Namespace+"/"+ma.Name && ma.DeletionTimestamp == nil {
			p.violate("B87", "%s gives the set of %s to %q", q, was, is)
		}
	}
}

// mostOf is how many replicas whoever has the set allows.
func mostOf(set *machine.MachineSet) int {
	n, err := strconv.Atoi(set.Annotations[machine.AnnotationMaxSize])
	if err != nil {
		return 0
	}
	if set.Name == neighborName {
		return min(n, mostBeside)
	}
	return min(n, mostReplicas)
}
