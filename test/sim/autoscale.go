// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

const (
	mostReplicas = 4
	workload     = "work"
)

// mostNodes is how many Nodes people allow in all.
func (c *Config) mostNodes() int {
	if c.Nodes > 0 {
		return c.Nodes
	}
	if c.Scaled {
		return numMasters + mostReplicas + mostBeside
	}
	return numMasters + mostReplicas + c.Neighbor // which the bounds of the set alone hold
}

// masters counts the Nodes of the control plane: a backup may be of a time before them.
func (p *Play) masters() (n int) {
	for _, node := range memory.List[*corev1.Node](p.API) {
		if machine.IsControlPlane(node) {
			n++
		}
	}
	return n
}

// autoscaling returns what makes the set be resized: settings without long delays, and bounds.
func (p *Play) autoscaling() []plan.Object {
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: workload, Name: "app", UID: "app"}}
	rs.Spec.Replicas = new(int32(1))
	switch p.pods = 1; {
	case p.Shorts:
		p.pods = fewestShort
	case p.Volumes:
		p.pods = 3
	}
	all := append(p.scaledUp(), p.settings(), autoscalerOf(setName, setName, mostReplicas), rs, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workload}})
	if p.Rivals {
		all = append(all, autoscalerOf(rivals[1].name, setName, rivals[1].most))
	}
	if p.hosts == nil && p.Nodes == 0 && !p.Rivals { // where there are but few hosts, or Nodes allowed, nobody can keep all Pods and lose one
		all = append(all, budget())
	}
	return all
}

// settings are those of the autoscaler, without long delays.
func (p *Play) settings() *autoscaling.ClusterAutoscaler {
	ca := &autoscaling.ClusterAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: autoscaling.Name}}
	short := "20s"
	ca.Spec.ResourceLimits = &autoscaling.ResourceLimits{MaxNodesTotal: new(int32(p.mostNodes()))}
	ca.Spec.ScaleDown = &autoscaling.ScaleDown{Enabled: true, DelayAfterAdd: &short, DelayAfterDelete: &short, DelayAfterFailure: &short, UnneededTime: &short}
	p.choose(&ca.Spec)
	return ca
}

// spoiltSettings reports whether they are such as nobody can follow.
func spoiltSettings(ca *autoscaling.ClusterAutoscaler) bool {
	return slices.Contains(ca.Spec.Expanders, spoiltExpander)
}

// editSettings deletes the autoscaler's settings, or makes them such as nobody can follow; then whoever did takes it back.
func (p *Play) editSettings(spoil bool) {
	ca := memory.Get[*autoscaling.ClusterAutoscaler](p.API, "", autoscaling.Name)
	switch {
	case ca == nil:
		p.tracef("people make the autoscaler's settings anew")
		p.put(p.settings())
	case spoiltSettings(ca):
		p.tracef("people mend the autoscaler's settings")
		p.change(ca, func(o *autoscaling.ClusterAutoscaler) { p.choose(&o.Spec) })
	case spoil:
		p.tracef("people spoil the autoscaler's settings")
		p.change(ca, func(o *autoscaling.ClusterAutoscaler) { o.Spec.Expanders = []autoscaling.Expander{spoiltExpander} })
	default:
		p.tracef("people delete the autoscaler's settings")
		p.remove("ClusterAutoscaler", "", autoscaling.Name)
	}
}

// budget is people's word that one Pod may be missing at a time.
func budget() *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: workload, Name: "app", Generation: 1}}
	b.Spec.MaxUnavailable = new(intstr.FromInt32(1))
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}}
	return b
}

// allow is the disruption controller: it counts who runs, and forgets whom it heard the end of.
func (p *Play) allow() {
	b := memory.Get[*policyv1.PodDisruptionBudget](p.API, workload, "app")
	if b == nil {
		return
	}
	healthy := 0
	for _, pod := range p.allPods() {
		if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
			healthy++
		}
	}
	wanted := max(0, p.pods-1)
	status := policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: b.Generation, ExpectedPods: int32(p.pods), CurrentHealthy: int32(healthy), DesiredHealthy: int32(wanted), DisruptionsAllowed: int32(max(0, healthy-wanted)),
	}
	if !equality.Semantic.DeepEqual(b.Status, status) {
		next := b.DeepCopy()
		next.Status = status
		p.put(next)
	}
}

// podNamed returns a Pod that takes most of a Node.
func (p *Play) podNamed(i int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: workload, Name: fmt.Sprintf("app-%d", i), Labels: map[string]string{"app": "app"}}}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "app", UID: types.UID("app"), Controller: new(true)}}
	pod.Spec.TerminationGracePeriodSeconds = new(int64(5))
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourceMemory: resource.MustParse("1Gi"),
	}}}}
	pod.Status.Phase = corev1.PodPending
	return pod
}

// ended reports whether a Pod's grace is over. A kubelet counts it by its own clock: one that is longer than it was given is of an API
// server whose clock was set back.
func (p *Play) ended(pod *corev1.Pod) bool {
	at, grace := pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds
	return at != nil && (!p.clock.Before(at.Time) || grace != nil && at.Sub(p.clock) > time.Duration(*grace)*time.Second)
}

// workloads is what ReplicaSets, kubelets and the scheduler do: there are as many Pods as are wanted, those that shall
// end do, and each that waits is bound to the first Node with room.
func (p *Play) workloads(nodes []*corev1.Node) {
	if p.Level < Scaling {
		return
	}
	alive, on := map[string]bool{}, map[string]int{}
	for _, pod := range p.allPods() {
		if p.ended(pod) {
			p.remove("Pod", pod.Namespace, pod.Name)
			continue
		}
		if pod.Spec.NodeName != "" && p.node(nodes, pod.Spec.NodeName) == nil { // the Pod garbage collector
			p.remove("Pod", pod.Namespace, pod.Name)
			continue
		}
		alive[pod.Name] = true
		if pod.Spec.NodeName != "" {
			on[pod.Spec.NodeName]++
		}
	}
	for i := range p.pods {
		if pod := p.podNamed(i); !alive[pod.Name] {
			p.put(pod)
		}
	}
	p.attach(nodes)
	for _, pod := range p.allPods() {
		if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil {
			p.schedule(pod, nodes, on)
		}
	}
	p.allow()
}

func (p *Play) schedule(pod *corev1.Pod, nodes []*corev1.Node, on map[string]int) {
	for _, n := range nodes {
		if n.Spec.Unschedulable || len(n.Spec.Taints) > 0 || on[n.Name] > 0 || !machine.NodeReady(n) {
			continue
		}
		on[n.Name]++
		p.change(pod, func(o *corev1.Pod) {
			o.Spec.NodeName, o.Status.Phase, o.Status.Conditions = n.Name, corev1.PodRunning, nil
		})
		return
	}
	if len(pod.Status.Conditions) == 0 {
		p.change(pod, func(o *corev1.Pod) {
			o.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(p.clock.Truncate(1e9)),
			}}
		})
	}
}

func (p *Play) node(nodes []*corev1.Node, name string) *corev1.Node {
	for _, n := range nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// load wants so many Pods.
func (p *Play) load(n int) {
	p.pods = n
	for _, pod := range p.allPods() {
		var i int
		if _, err := fmt.Sscanf(pod.Name, "app-%d", &i); err == nil && i >= n {
			p.remove("Pod", pod.Namespace, pod.Name)
		}
	}
	p.tracef("people want %d pods", n)
}
