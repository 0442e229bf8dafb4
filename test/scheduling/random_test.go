// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// dice makes situations. The odds are such that each filter has something to look at often, and is often the only one
// that says no.
type dice struct {
	*rand.Rand
	*situation
	pods int // made so far
}

// throw returns the situation of a seed: the same one each time.
func throw(seed uint64) *situation {
	d := &dice{Rand: rand.New(rand.NewPCG(seed, 17)), situation: &situation{}}
	d.namespaces()
	for i := range 2 + d.IntN(4) {
		d.Nodes = append(d.Nodes, d.node(i))
	}
	d.storage()
	for _, n := range d.Nodes {
		for range d.IntN(4) {
			p := d.pod("running")
			p.Spec.NodeName = n.Name
			if d.odds(10) {
				p.DeletionTimestamp = &metav1.Time{}
				p.DeletionTimestamp.Time = epoch
			}
			if d.odds(10) {
				d.resizing(p)
			}
			d.Pods = append(d.Pods, p)
		}
		if d.odds(8) {
			p := d.pod("nominated")
			p.Status.NominatedNodeName = n.Name
			d.Pods = append(d.Pods, p)
		}
	}
	for range 8 {
		p := d.pod("waiting")
		if d.odds(13) {
			p.Spec.NodeName = pick(d, d.Nodes...).Name
		}
		d.Waiting = append(d.Waiting, p)
	}
	return d.situation
}

// odds is true in so many of a hundred cases.
func (d *dice) odds(percent int) bool { return d.IntN(100) < percent }

func pick[T any](d *dice, from ...T) T { return from[d.IntN(len(from))] }

func some[T any](d *dice, from ...T) (all []T) {
	for _, x := range from {
		if d.odds(50) {
			all = append(all, x)
		}
	}
	return all
}

func (d *dice) namespaces() {
	for name, set := range map[string]map[string]string{"shop": {"team": "web", "env": "prod"}, "blog": {"team": "web"}, "lab": nil} {
		d.Namespaces = append(d.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set}})
	}
	slices.SortFunc(d.Namespaces, func(a, b *corev1.Namespace) int { return cmp.Compare(a.Name, b.Name) })
}

// Topology keys: those of volumes too, and one that only some Nodes have.
const (
	host = corev1.LabelHostname
	zone = corev1.LabelTopologyZone
	rack = "example.com/rack"
	gpu  = "nvidia.com/gpu"
	fpga = "example.com/fpga"
)

func (d *dice) node(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i), Labels: map[string]string{}}}
	n.Labels[host] = n.Name
	if d.odds(92) {
		n.Labels[zone] = pick(d, "a", "a", "b", "c")
	}
	if d.odds(30) {
		n.Labels[corev1.LabelFailureDomainBetaZone] = pick(d, "a", "b")
	}
	if d.odds(60) {
		n.Labels[corev1.LabelTopologyRegion] = pick(d, "north", "north", "south")
	}
	if d.odds(80) {
		n.Labels[rack] = pick(d, "1", "2")
	}
	n.Labels["disk"] = pick(d, "ssd", "ssd", "hdd")
	n.Labels["size"] = strconv.Itoa(d.IntN(9))
	if d.odds(12) {
		n.Spec.Taints = append(n.Spec.Taints, d.taint())
	}
	if d.odds(8) {
		n.Spec.Taints = append(n.Spec.Taints, d.taint())
	}
	n.Spec.Unschedulable = d.odds(15)
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(pick(d, "4", "6", "8")), corev1.ResourceMemory: resource.MustParse(pick(d, "6Gi", "9Gi", "16Gi")),
		corev1.ResourcePods: resource.MustParse(pick(d, "5", "20", "20", "110")),
	}
	if d.odds(70) {
		n.Status.Allocatable[corev1.ResourceEphemeralStorage] = resource.MustParse("10Gi")
	}
	if d.odds(50) {
		n.Status.Allocatable[gpu] = resource.MustParse(pick(d, "1", "4"))
	}
	if d.odds(30) {
		n.Status.Allocatable[fpga] = resource.MustParse("2")
	}
	if d.odds(30) {
		n.Status.Allocatable["hugepages-2Mi"] = resource.MustParse("64Mi")
	}
	n.Status.Capacity = n.Status.Allocatable
	return n
}

func (d *dice) taint() corev1.Taint {
	effect := pick(d, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule)
	return pick(d,
		corev1.Taint{Key: "dedicated", Value: pick(d, "infra", "ml"), Effect: effect},
		corev1.Taint{Key: "wear", Value: pick(d, "3", "7", "high"), Effect: effect},
		corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
		corev1.Taint{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule},
	)
}

// pod returns a Pod with a few wishes of every kind.
func (d *dice) pod(name string) *corev1.Pod {
	d.pods++
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pick(d, "shop", "shop", "blog", "lab"), Name: fmt.Sprintf("%s-%d", name, d.pods)}}
	p.UID = uidOf(p.Name)
	p.Labels = map[string]string{"app": pick(d, "web", "db", "job")}
	if d.odds(50) {
		p.Labels["version"] = pick(d, "1", "2")
	}
	d.size(p)
	if d.odds(60) {
		d.ports(p)
	}
	if d.odds(35) {
		p.Spec.Tolerations = d.tolerations()
	}
	if d.odds(52) {
		d.wantsNode(p)
	}
	if d.odds(40) {
		d.wantsPods(p)
	}
	if d.odds(60) {
		d.spreads(p)
	}
	if d.odds(60) {
		d.mounts(p)
	}
	if d.odds(30) {
		p.Spec.Priority = new(pick(d, int32(-10), 100, 1000))
	}
	return p
}

func (d *dice) list() corev1.ResourceList {
	list := corev1.ResourceList{}
	if d.odds(70) {
		list[corev1.ResourceCPU] = resource.MustParse(pick(d, "0", "100m", "300m", "1"))
	}
	if d.odds(70) {
		list[corev1.ResourceMemory] = resource.MustParse(pick(d, "64Mi", "200M", "1Gi", "2Gi"))
	}
	return list
}

// size gives a Pod containers, sidecars, init containers, overhead and requests as a whole.
func (d *dice) size(p *corev1.Pod) {
	always := corev1.ContainerRestartPolicyAlways
	for i := range 1 + d.IntN(2) {
		c := corev1.Container{Name: fmt.Sprintf("c%d", i)}
		c.Resources.Requests = d.list()
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	first := p.Spec.Containers[0].Resources.Requests
	if d.odds(6) {
		first[gpu] = resource.MustParse(pick(d, "0", "1", "2"))
	}
	if d.odds(3) {
		first[fpga] = resource.MustParse("1")
	}
	if d.odds(3) {
		first["hugepages-2Mi"] = resource.MustParse("32Mi")
	}
	if d.odds(6) {
		first[corev1.ResourceEphemeralStorage] = resource.MustParse(pick(d, "1Gi", "4Gi"))
	}
	if d.odds(25) {
		for i := range 1 + d.IntN(3) {
			c := corev1.Container{Name: fmt.Sprintf("i%d", i)}
			c.Resources.Requests = d.list()
			if d.odds(50) {
				c.RestartPolicy = &always
			}
			if d.odds(10) {
				c.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: corev1.ProtocolTCP}}
			}
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		}
	}
	if d.odds(15) {
		p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("120Mi")}
	}
	if d.odds(10) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: d.list()}
	}
}

// resizing makes a Pod one whose containers are being resized in place.
func (d *dice) resizing(p *corev1.Pod) {
	for _, c := range p.Spec.Containers {
		st := corev1.ContainerStatus{Name: c.Name, Resources: &corev1.ResourceRequirements{Requests: d.list()}}
		if d.odds(50) {
			st.AllocatedResources = d.list()
		}
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, st)
	}
	if p.Spec.Resources != nil {
		p.Status.Resources, p.Status.AllocatedResources = &corev1.ResourceRequirements{Requests: d.list()}, d.list()
	}
	if d.odds(30) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible})
	}
}

func (d *dice) ports(p *corev1.Pod) {
	for range 1 + d.IntN(2) {
		p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{
			ContainerPort: 80, HostPort: pick(d, int32(0), 80, 443), Protocol: pick(d, "", corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP),
			HostIP: pick(d, "", "", "0.0.0.0", "10.0.0.1", "10.0.0.2", "::"),
		})
	}
}

func (d *dice) tolerations() []corev1.Toleration {
	return some(d,
		corev1.Toleration{Key: "dedicated", Value: pick(d, "infra", "ml"), Operator: pick(d, "", corev1.TolerationOpEqual), Effect: pick(d, "", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)},
		corev1.Toleration{Key: "wear", Operator: pick(d, corev1.TolerationOpLt, corev1.TolerationOpGt), Value: pick(d, "5", "3", "none")},
		corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists},
		corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: pick(d, corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule)},
	)
}

func (d *dice) wantsNode(p *corev1.Pod) {
	if d.odds(40) {
		p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	}
	if d.odds(50) {
		return
	}
	s := &corev1.NodeSelector{}
	for range 1 + d.IntN(2) {
		s.NodeSelectorTerms = append(s.NodeSelectorTerms, d.nodeTerm())
	}
	affinityOf(p).NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: s}
}

func affinityOf(p *corev1.Pod) *corev1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	return p.Spec.Affinity
}

func (d *dice) nodeTerm() (t corev1.NodeSelectorTerm) {
	if d.odds(8) {
		t.MatchFields = []corev1.NodeSelectorRequirement{{
			Key: "metadata.name", Operator: pick(d, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), Values: []string{pick(d, d.Nodes...).Name},
		}}
	}
	require := func(key string, op corev1.NodeSelectorOperator, values ...string) {
		t.MatchExpressions = append(t.MatchExpressions, corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values})
	}
	switch d.IntN(8) {
	case 0:
		require("size", corev1.NodeSelectorOpGt, pick(d, "1", "2", "none"))
	case 1:
		require("size", corev1.NodeSelectorOpLt, "7")
	case 2:
		require(rack, corev1.NodeSelectorOpExists)
	case 3:
		require(zone, corev1.NodeSelectorOpNotIn, "c")
	case 4:
		require(zone, corev1.NodeSelectorOpIn, "a", "b")
	case 5:
		require("nothing", corev1.NodeSelectorOpDoesNotExist)
	case 6:
		require(host, corev1.NodeSelectorOpNotIn, pick(d, d.Nodes...).Name)
	}
	return t
}

// selector means some Pods; rarely all, or none.
func (d *dice) selector() *metav1.LabelSelector {
	if d.odds(4) {
		return nil
	}
	if d.odds(4) {
		return &metav1.LabelSelector{}
	}
	if d.odds(30) {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{pick(d,
			metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "db"}},
			metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"web"}},
			metav1.LabelSelectorRequirement{Key: "version", Operator: metav1.LabelSelectorOpExists},
			metav1.LabelSelectorRequirement{Key: "version", Operator: metav1.LabelSelectorOpDoesNotExist},
		)}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(d, "web", "db", "job")}}
}

func (d *dice) wantsPods(p *corev1.Pod) {
	if d.odds(18) {
		affinityOf(p).PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: d.podTerms(p)}
	}
	if d.odds(48) {
		affinityOf(p).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: d.podTerms(p)}
	}
}

func (d *dice) podTerms(p *corev1.Pod) (terms []corev1.PodAffinityTerm) {
	for range 1 + d.IntN(2)*d.IntN(2) {
		t := corev1.PodAffinityTerm{LabelSelector: d.selector(), TopologyKey: pick(d, host, host, host, host, host, host, zone, rack)}
		if d.odds(20) {
			t.Namespaces = some(d, "shop", "blog", "lab")
		}
		if d.odds(20) {
			t.NamespaceSelector = pick(d, &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"team": "web"}},
				&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: metav1.LabelSelectorOpDoesNotExist}}})
		}
		if d.odds(20) && t.LabelSelector != nil {
			d.keys(p, &t)
		}
		terms = append(terms, t)
	}
	return terms
}

// keys adds label keys that must, or must not, be like the Pod's own. The API server writes them into the selector.
func (d *dice) keys(p *corev1.Pod, t *corev1.PodAffinityTerm) {
	op := metav1.LabelSelectorOpIn
	if d.odds(50) {
		t.MatchLabelKeys = []string{"version"}
	} else {
		t.MismatchLabelKeys = []string{"version"}
		op = metav1.LabelSelectorOpNotIn
	}
	if v, ok := p.Labels["version"]; ok {
		t.LabelSelector.MatchExpressions = append(t.LabelSelector.MatchExpressions, metav1.LabelSelectorRequirement{Key: "version", Operator: op, Values: []string{v}})
	}
}

func (d *dice) spreads(p *corev1.Pod) {
	for range 1 + d.IntN(2) {
		c := corev1.TopologySpreadConstraint{
			MaxSkew: pick(d, int32(1), 1, 1, 2), TopologyKey: pick(d, host, zone, zone, rack), LabelSelector: d.selector(),
			WhenUnsatisfiable: pick(d, corev1.DoNotSchedule, corev1.DoNotSchedule, corev1.DoNotSchedule, corev1.DoNotSchedule, corev1.ScheduleAnyway),
		}
		if d.odds(20) && c.WhenUnsatisfiable == corev1.DoNotSchedule {
			c.MinDomains = new(pick(d, int32(1), 2, 4))
		}
		if d.odds(25) {
			c.NodeAffinityPolicy = new(pick(d, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore))
		}
		if d.odds(25) {
			c.NodeTaintsPolicy = new(pick(d, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore))
		}
		if d.odds(20) && c.LabelSelector != nil {
			c.MatchLabelKeys = []string{"version"}
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}

func uidOf(name string) types.UID { return types.UID("uid-of-" + name) }
