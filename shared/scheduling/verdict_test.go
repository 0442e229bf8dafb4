// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func boundTo(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName = node }
}

func nominatedFor(node string, priority int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.NominatedNodeName, p.Spec.Priority = node, &priority }
}

func claiming(names ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, name := range names {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
			}})
		}
	}
}

func avoiding(t corev1.PodAffinityTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{t}}}
	}
}

const driver = "block.example.com"

// boundClaim returns a claim with the volume that it is bound to.
func boundClaim(name string, more ...func(*corev1.PersistentVolume)) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "of-" + name, Labels: map[string]string{}}}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}
	for _, m := range more {
		m(v)
	}
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{bindCompleted: "yes"}}}
	c.Spec.VolumeName = v.Name
	return c, v
}

func factsOf(claims ...func(*Facts)) *Facts {
	f := &Facts{Namespaces: []*corev1.Namespace{
		{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, {ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "web"}}},
	}}
	for _, c := range claims {
		c(f)
	}
	return f
}

func knowing(name string, more ...func(*corev1.PersistentVolume)) func(*Facts) {
	return func(f *Facts) {
		c, v := boundClaim(name, more...)
		f.Claims, f.Volumes = append(f.Claims, c), append(f.Volumes, v)
	}
}

func limiting(node string, count int32) func(*Facts) {
	return func(f *Facts) {
		c := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}}
		c.Spec.Drivers = []storagev1.CSINodeDriver{{Name: driver, Allocatable: &storagev1.VolumeNodeResources{Count: &count}}}
		f.CSINodes = append(f.CSINodes, c)
	}
}

// waitingClaim is one that is bound when its Pod has a Node.
func waitingClaim(name, provisioner string, topologies ...corev1.TopologySelectorTerm) func(*Facts) {
	return func(f *Facts) {
		wait := storagev1.VolumeBindingWaitForFirstConsumer
		f.Classes = append(f.Classes, &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &wait, AllowedTopologies: topologies,
		})
		f.Claims = append(f.Claims, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &name}})
	}
}

func tolerating(key string, by corev1.TolerationOperator, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: key, Operator: by, Value: value}}
	}
}

func inZoneOnly(zone string) corev1.TopologySelectorTerm {
	return corev1.TopologySelectorTerm{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: zoneKey, Values: []string{zone}}}}
}

// TestRefused has one case for each thing in which the scheduler is not as one would think, and for each kind of volume.
// That all of it is as the scheduler has it, test/scheduling proves.
func TestRefused(t *testing.T) {
	t.Parallel()
	everything := &metav1.LabelSelector{}
	for _, tt := range []struct {
		name  string
		node  Node
		pod   *corev1.Pod
		facts *Facts
		want  string
	}{
		{"a number with a leading zero is none", aNode("n", "9", "9Gi", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "level", Value: "05", Effect: corev1.TaintEffectNoSchedule}}
		}), aPod("p", "1", "1Gi", tolerating("level", corev1.TolerationOpGt, "3")), nil, "node(s) had untolerated taint {level: 05}"},
		{"a number that is greater", aNode("n", "9", "9Gi", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "level", Value: "5", Effect: corev1.TaintEffectNoSchedule}}
		}), aPod("p", "1", "1Gi", tolerating("level", corev1.TolerationOpGt, "3")), nil, ""},
		{"a number that is no less", aNode("n", "9", "9Gi", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "level", Value: "3", Effect: corev1.TaintEffectNoSchedule}}
		}), aPod("p", "1", "1Gi", tolerating("level", corev1.TolerationOpLt, "3")), nil, "node(s) had untolerated taint {level: 3}"},
		{"a full node takes a Pod that asks for nothing", holding(aNode("n", "1", "1Gi"), aPod("x", "2", "1Gi", boundTo("n"))), aPod("p", "0", "0"), nil, ""},
		{"a spread over everything counts nothing that runs", holding(aNode("n", "9", "9Gi"), aPod("x", "1", "1Gi", boundTo("n")), aPod("y", "1", "1Gi", boundTo("n"))),
			aPod("p", "1", "1Gi", spreadBy(zoneKey, 1), func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints[0].LabelSelector = everything }), nil, ""},
		{"fewer domains than wanted hold all down", holding(aNode("n", "9", "9Gi"), aPod("p", "1", "1Gi", boundTo("n"))),
			aPod("p", "1", "1Gi", spreadBy(zoneKey, 1), func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints[0].MinDomains = new(int32(2)) }), nil, ReasonSpread},
		{"what a resize in place was promised counts", holding(aNode("n", "3", "9Gi"), aPod("x", "1", "1Gi", boundTo("n"), func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Resources: &corev1.ResourceRequirements{Requests: resources("1", "1Gi")}, AllocatedResources: resources("2500m", "1Gi")}}
		})), aPod("p", "1", "1Gi"), nil, "Insufficient cpu"},
		{"a term means the namespaces that it selects", holding(aNode("n", "9", "9Gi"), aPod("x", "1", "1Gi", boundTo("n"))),
			aPod("p", "1", "1Gi", avoiding(corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: everything, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "web"}}})), factsOf(), ""},
		{"a term of a Pod that waits means all if it selects by a label that is not there", holding(aNode("n", "9", "9Gi"), aPod("x", "1", "1Gi", boundTo("n"), func(p *corev1.Pod) { p.Namespace = "shop" })),
			aPod("p", "1", "1Gi", avoiding(corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: everything, NamespaceSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpDoesNotExist}}}})), factsOf(), ReasonFar},
		{"a term means namespaces that are not known", holding(aNode("n", "9", "9Gi"), aPod("x", "1", "1Gi", boundTo("n"), func(p *corev1.Pod) { p.Namespace = "shop" })),
			aPod("p", "1", "1Gi", avoiding(corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: everything, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "web"}}})), &Facts{}, ReasonFar},
		{"a spread over those of its revision", holding(aNode("n", "9", "9Gi"), aPod("p", "1", "1Gi", boundTo("n"))),
			aPod("p", "1", "1Gi", spreadBy(zoneKey, 1), func(p *corev1.Pod) {
				p.Labels = map[string]string{"app": "p", "revision": "2"}
				p.Spec.TopologySpreadConstraints[0].MatchLabelKeys, p.Spec.TopologySpreadConstraints[0].MinDomains = []string{"revision"}, new(int32(2))
			}), nil, ""},
		{"a nominated Pod takes room from those that are no more important", holding(aNode("n", "2", "9Gi"), aPod("x", "2", "1Gi", nominatedFor("n", 5))), aPod("p", "1", "1Gi"), nil, "Insufficient cpu"},
		{"a nominated Pod takes none from those that are", holding(aNode("n", "2", "9Gi"), aPod("x", "2", "1Gi", nominatedFor("n", -5))), aPod("p", "1", "1Gi"), nil, ""},
		{"nobody looks at the rules of a nominated Pod against one without rules", holding(aNode("n", "9", "9Gi"),
			aPod("x", "1", "1Gi", nominatedFor("n", 5), avoiding(corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: everything}))), aPod("p", "1", "1Gi"), nil, ""},
		{"a volume elsewhere", aNode("n", "9", "9Gi"), aPod("p", "1", "1Gi", claiming("data")), factsOf(knowing("data", func(v *corev1.PersistentVolume) {
			v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zoneKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}}}}}}}
		})), ReasonVolume},
		{"a volume with the label of another zone", aNode("n", "9", "9Gi"), aPod("p", "1", "1Gi", claiming("data")),
			factsOf(knowing("data", func(v *corev1.PersistentVolume) { v.Labels[zoneKey] = "b__c" })), ReasonVolumeZone},
		{"a claim that nobody bound", aNode("n", "9", "9Gi"), aPod("p", "1", "1Gi", claiming("data")),
			factsOf(knowing("data"), func(f *Facts) { f.Claims[0].Annotations = nil }), ReasonUnbound},
		{"a claim that is not there", aNode("n", "9", "9Gi"), aPod("p", "1", "1Gi", claiming("data")), factsOf(), `persistentvolumeclaim "data" not found`},
		{"a volume is made where the class makes some", aNode("n", "9", "9Gi"), aPod("p", "1", "1Gi", claiming("data")), factsOf(waitingClaim("data", driver, inZoneOnly("a"))), ""},
		{"a volume is made nowhere else", aNode("n", "9", "9Gi"), aPod("p", "1", "1Gi", claiming("data")), factsOf(waitingClaim("data", driver, inZoneOnly("b"))), ReasonBinding},
		{"volumes that nobody makes have to be there", aNode("n", "9", "9Gi"), aPod("p", "1", "1Gi", claiming("data")), factsOf(waitingClaim("data", noProvisioner)), ReasonBinding},
		{"one that is there will do", aNode("n", "9", "9Gi"), aPod("p", "1", "1Gi", claiming("data")), factsOf(waitingClaim("data", noProvisioner), func(f *Facts) {
			f.Volumes = []*corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{StorageClassName: "data"}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}}}
		}), ""},
		{"a claim whose node was chosen", aNode("n", "9", "9Gi"), aPod("p", "1", "1Gi", claiming("data")), factsOf(waitingClaim("data", driver), func(f *Facts) {
			f.Claims[0].Annotations = map[string]string{selectedNode: "m"}
		}), ReasonBinding},
		{"as many volumes as can be attached", holding(aNode("n", "9", "9Gi"), aPod("x", "1", "1Gi", boundTo("n"), claiming("other"))), aPod("p", "1", "1Gi", claiming("data")),
			factsOf(knowing("data"), knowing("other"), limiting("n", 1)), ReasonAttach},
		{"a volume that is attached already costs nothing", holding(aNode("n", "9", "9Gi"), aPod("x", "1", "1Gi", boundTo("n"), claiming("data"))), aPod("p", "1", "1Gi", claiming("data")),
			factsOf(knowing("data"), limiting("n", 1)), ""},
		{"a claim for one Pod alone", holding(aNode("n", "9", "9Gi"), aPod("x", "1", "1Gi", boundTo("n"), claiming("data"))), aPod("p", "1", "1Gi", claiming("data")),
			factsOf(knowing("data"), func(f *Facts) {
				f.Claims[0].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
			}), ReasonExclusive},
		{"more resources than are planned for", aNode("n", "9", "9Gi", func(n *corev1.Node) {
			for _, name := range []corev1.ResourceName{"x.com/a", "x.com/b", "x.com/c", "x.com/d"} {
				n.Status.Allocatable[name] = resource.MustParse("1")
			}
		}), aPod("p", "1", "1Gi", func(p *corev1.Pod) {
			for _, name := range []corev1.ResourceName{"x.com/a", "x.com/b", "x.com/c", "x.com/d", "x.com/e"} {
				p.Spec.Containers[0].Resources.Requests[name] = resource.MustParse("1")
			}
		}), nil, "Insufficient x.com/e"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := NewWorld([]Node{tt.node}, []*corev1.Pod{tt.pod}, tt.facts).Ask(tt.pod).Refused(0); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
