// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// nature is what kubelets, the node controller, ReplicaSets and the scheduler do by themselves.
func (p *Play) nature() {
	if p.hosts != nil {
		p.hosts.operate()
	}
	instances := p.instances()
	for _, i := range instances {
		if !i.Child && i.State == provider.StateRunning && !p.known(i.ProviderID) && !p.silent[i.ProviderID] && !p.boots(i.ProviderID) {
			p.tracef("node %s registers for %s", i.Name, i.ProviderID)
			p.register(i)
		}
	}
	p.collectGarbage()
	p.succeed()
	nodes := memory.List[*corev1.Node](p.API)
	for _, n := range nodes {
		if n.Spec.ProviderID != "" {
			at := slices.IndexFunc(instances, func(i provider.Instance) bool {
				return i.ProviderID == n.Spec.ProviderID && i.State == provider.StateRunning
			})
			if at >= 0 {
				p.runs[n.UID] = instances[at].ID
			}
			p.pulse(n, at >= 0)
		}
	}
	p.workloads(memory.List[*corev1.Node](p.API))
}

// collectGarbage deletes what got an owner that was gone by then: whatever people want to keep of a set, this goes.
func (p *Play) collectGarbage() {
	set := p.set()
	for _, m := range p.machines() {
		if owner := ownerOf(m); owner != "" && m.DeletionTimestamp == nil && (set == nil || owner != set.UID) && !p.neighbors(m) && !isMaster(m) {
			p.remove("Machine", m.Namespace, m.Name)
		}
	}
}

func (p *Play) known(id string) bool {
	return slices.ContainsFunc(memory.List[*corev1.Node](p.API), func(n *corev1.Node) bool { return n.Spec.ProviderID == id })
}

// register makes a kubelet's Node; one of its name that is another instance's is gone first: instances of one Machine
// have one name.
func (p *Play) register(i provider.Instance) {
	name := i.Name
	if p.hosts != nil {
		name, _, _ = strings.Cut(i.ID, "/")
	}
	if old := memory.Get[*corev1.Node](p.API, "", name); old != nil {
		there := slices.ContainsFunc(p.instances(), func(i provider.Instance) bool { return i.ProviderID == old.Spec.ProviderID })
		if !there { // the cloud's node controller
			p.remove("Node", "", name)
		}
		return
	}
	p.joined(i)
	n := p.nodeNamed(name, i.ProviderID, i.Addresses)
	if m := p.owner(i.UID); m != nil && isMaster(m) {
		n.Labels[machine.LabelMaster] = ""
		n.Spec.Taints = []corev1.Taint{{Key: machine.LabelMaster, Effect: corev1.TaintEffectNoSchedule}}
	}
	p.put(n)
	p.runs[memory.Get[*corev1.Node](p.API, "", name).UID] = i.ID
}

// pulse keeps a Node's Ready condition true to its instance.
func (p *Play) pulse(n *corev1.Node, alive bool) {
	want := corev1.ConditionTrue
	switch {
	case !alive || p.silent[n.Spec.ProviderID] || p.boots(n.Spec.ProviderID):
		want = corev1.ConditionUnknown
	case p.sick[n.Spec.ProviderID]:
		want = corev1.ConditionFalse
	}
	if c := machine.NodeCondition(n, corev1.NodeReady); c != nil && c.Status == want {
		return
	}
	p.tracef("node %s becomes Ready=%s", n.Name, want)
	p.change(n, func(o *corev1.Node) { o.Status.Conditions = p.ready(want) })
}

func (p *Play) ready(s corev1.ConditionStatus) []corev1.NodeCondition {
	return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: s, LastTransitionTime: metav1.NewTime(p.clock.Truncate(1e9))}}
}

func (p *Play) nodeNamed(name, id string, addresses []corev1.NodeAddress) *corev1.Node {
	size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Spec:       corev1.NodeSpec{ProviderID: id},
		Status:     corev1.NodeStatus{Addresses: addresses, Conditions: p.ready(corev1.ConditionTrue), Capacity: size, Allocatable: size},
	}
}

func (p *Play) allPods() []*corev1.Pod { return memory.List[*corev1.Pod](p.API) }

func (p *Play) remove(k plan.Kind, namespace, name string) {
	how := memory.Background
	if k == "Pod" {
		how = memory.Force
	}
	p.removed(k, namespace, name, how)
}

func (p *Play) removed(k plan.Kind, namespace, name string, how memory.Removal) {
	o := p.API.Object(k, namespace, name)
	if err := p.journal(people, nil, o, func() error { return p.API.Remove(k, namespace, name, how) }); err != nil && !errors.Is(err, cluster.ErrGone) {
		panic(err)
	}
}

// change does what people and controllers of Kubernetes do to an object, whatever its version.
func (p *Play) change(o plan.Object, f any) {
	err := p.journal(people, nil, o, func() error {
		switch f := f.(type) {
		case func(*corev1.Node):
			return memory.Patch(p.API, "", o.GetName(), f)
		case func(*corev1.ConfigMap):
			return memory.Patch(p.API, o.GetNamespace(), o.GetName(), f)
		case func(*corev1.Pod):
			return memory.Patch(p.API, o.GetNamespace(), o.GetName(), f)
		case func(*machine.Machine):
			return memory.Patch(p.API, o.GetNamespace(), o.GetName(), f)
		case func(*machine.MachineHealthCheck):
			return memory.Patch(p.API, o.GetNamespace(), o.GetName(), f)
		case func(*machine.MachineSet):
			return memory.Patch(p.API, o.GetNamespace(), o.GetName(), f)
		case func(*autoscaling.ClusterAutoscaler):
			return memory.Patch(p.API, "", o.GetName(), f)
		}
		return nil
	})
	if err != nil && !errors.Is(err, cluster.ErrGone) {
		panic(err)
	}
}
