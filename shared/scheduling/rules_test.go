// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func onPort(number int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: number}}
	}
}

func onDisk(id string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: id}}})
	}
}

// away keeps a Pod out of the domains of others.
func away(key, app string) func(*corev1.Pod) {
	return avoiding(corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}})
}

func selecting(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

func required(t corev1.NodeSelectorTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{t}}}}
	}
}

func constraint(change func(*corev1.TopologySpreadConstraint)) func(*corev1.Pod) {
	return func(p *corev1.Pod) { change(&p.Spec.TopologySpreadConstraints[0]) }
}

func tainted(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
}

func labeledWith(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func important(p *corev1.Pod) { p.Spec.Priority = new(int32(9)) }

// TestPlaceKeepsRules has a case for each rule that a plan could forget: each would bring Nodes that their Pods cannot take, or put
// Pods on Nodes that they do not fit, which bring none then.
func TestPlaceKeepsRules(t *testing.T) {
	t.Parallel()
	four := offersOf(9, aNode("a", "4", "8Gi"))
	three := append(offersOf(9, aNode("b", "4", "8Gi", inZone("b")), aNode("c", "4", "8Gi", inZone("c"))), four...)
	limited := offersOf(9, aNode("a", "4", "8Gi"))
	limited[0].Node.Attach = map[string]int64{driver: 1}
	pod := func(more ...func(*corev1.Pod)) *corev1.Pod { return aPod("web", "1", "1Gi", more...) }
	one := func(more ...func(*corev1.Pod)) []*corev1.Pod { return []*corev1.Pod{pod(more...)} }
	two := func(a, b func(*corev1.Pod)) []*corev1.Pod {
		return []*corev1.Pod{aPod("a", "1", "1Gi", a), aPod("b", "2", "1Gi", b)}
	}
	hosts := []Node{aNode("m", "4", "8Gi"), aNode("n", "4", "8Gi")}
	host := func(op corev1.NodeSelectorOperator, key string) []corev1.NodeSelectorRequirement {
		return []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: []string{"n"}}}
	}
	byMode := func(m corev1.PersistentVolumeAccessMode) func(*Facts) {
		return func(f *Facts) { f.Claims[0].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{m} }
	}
	small := []Node{aNode("m", "9", "9Gi"), aNode("n", "9", "9Gi", inZone("b")), aNode("o", "2", "9Gi", inZone("c"))}
	taking := aPod("first", "2", "1Gi", selecting(corev1.LabelHostname, "o"), important)
	for _, tt := range []struct {
		name    string
		nodes   []Node
		waiting []*corev1.Pod
		offers  []Offer
		facts   *Facts
		want    string
		on      string // names of the nodes that take Pods
	}{
		{"a port that is taken", []Node{holding(aNode("n", "4", "8Gi"), pod(onPort(80)))}, one(onPort(80)), nil, nil, "0 fit, 0 helped by map[], 1 left", ""},
		{"a disk that is taken", []Node{holding(aNode("n", "4", "8Gi"), pod(onDisk("v")))}, one(onDisk("v")), nil, nil, "0 fit, 0 helped by map[], 1 left", ""},
		{"a disk of a DaemonSet", nil, one(onDisk("v")), offersOf(9, holding(aNode("a", "4", "8Gi"), aPod("ds", "0", "0", onDisk("v")))), nil, "0 fit, 0 helped by map[], 1 left", ""},
		{"a DaemonSet that is not wanted", nil, one(away(corev1.LabelHostname, "ds")), offersOf(9, holding(aNode("a", "4", "8Gi"), aPod("ds", "0", "0"))), nil, "0 fit, 0 helped by map[], 1 left", ""},
		{"a DaemonSet that wants to be alone", nil, one(), offersOf(9, holding(aNode("a", "4", "8Gi"), aPod("ds", "0", "0", away(corev1.LabelHostname, "web")))), nil, "0 fit, 0 helped by map[], 1 left", ""},
		{"a disk for each host", nil, several(2, pod(onDisk("v"))), four, nil, "0 fit, 2 helped by map[a:2], 0 left", ""},
		{"a port of two shapes", nil, two(onPort(80), onPort(80)), four, nil, "0 fit, 2 helped by map[a:2], 0 left", ""},
		{"a disk of two shapes", nil, two(onDisk("v"), onDisk("v")), four, nil, "0 fit, 2 helped by map[a:2], 0 left", ""},
		{"the first shape keeps the second away", nil, two(away(corev1.LabelHostname, "b"), func(*corev1.Pod) {}), four, nil, "0 fit, 2 helped by map[a:2], 0 left", ""},
		{"the second shape keeps the first away", nil, two(func(*corev1.Pod) {}, away(corev1.LabelHostname, "a")), four, nil, "0 fit, 2 helped by map[a:2], 0 left", ""},
		{"the first shape keeps the second out of its zone", nil, two(away(zoneKey, "b"), func(*corev1.Pod) {}), four, nil, "0 fit, 1 helped by map[a:1], 1 left", ""},
		{"the second shape keeps the first out of its zone", nil, two(func(*corev1.Pod) {}, away(zoneKey, "a")), four, nil, "0 fit, 1 helped by map[a:1], 1 left", ""},
		{"what is filled last", []Node{{Node: aNode("m", "4", "8Gi").Node, Last: true}, aNode("n", "4", "8Gi")}, one(), nil, nil, "1 fit, 0 helped by map[], 0 left", "n"},
		{"together where so many may be", []Node{holding(aNode("m", "9", "8Gi"), several(2, aPod("back", "0", "0"))...), aNode("n", "9", "8Gi")},
			several(4, pod(togetherBy(corev1.LabelHostname), spreadBy(corev1.LabelHostname, 2), constraint(func(c *corev1.TopologySpreadConstraint) {
				c.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}}
			}))), nil, nil, "3 fit, 0 helped by map[], 1 left", "n"},
		{"a host too far ahead", []Node{holding(aNode("m", "9", "8Gi"), several(3, aPod("back", "0", "0", ofApp("back")))...), aNode("n", "1", "8Gi")},
			several(2, pod(spreadOver("back"), constraint(func(c *corev1.TopologySpreadConstraint) { c.TopologyKey = corev1.LabelHostname }))), nil, nil, "1 fit, 0 helped by map[], 1 left", "n"},
		{"a zone that others filled", small, append(several(6, pod(spreadBy(zoneKey, 1))), taking), nil, nil, "3 fit, 0 helped by map[], 4 left", "mno"},
		{"a host that others filled", small, append(several(6, pod(spreadBy(corev1.LabelHostname, 1))), taking), nil, nil, "3 fit, 0 helped by map[], 4 left", "mno"},
		{"others of the same zone constraint", nil, several(3, pod(spreadBy(zoneKey, 1), spreadBy(zoneKey, 2))), three, nil, "0 fit, 0 helped by map[], 3 left", ""},
		{"together on a host, and spread over zones", nil, several(3, pod(togetherBy(corev1.LabelHostname), spreadBy(zoneKey, 1))), three, nil, "0 fit, 0 helped by map[], 3 left", ""},
		{"out of the zone of others that are nowhere", nil, several(3, pod(away(zoneKey, "back"))), three, nil, "0 fit, 3 helped by map[a:1], 0 left", ""},
		{"a zone of nodes that the pod does not select", []Node{aNode("n", "0", "0", inZone("b"))}, several(3, pod(spreadBy(zoneKey, 1), selecting("pool", "x"))), offersOf(9, aNode("a", "4", "8Gi", labeledWith("pool", "x"))), nil, "0 fit, 3 helped by map[a:1], 0 left", ""},
		{"a zone of nodes that it does not tolerate", []Node{aNode("n", "0", "0", inZone("b"), tainted)}, several(3, pod(spreadBy(zoneKey, 1), constraint(func(c *corev1.TopologySpreadConstraint) {
			c.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor)
		}))), four, nil, "0 fit, 3 helped by map[a:1], 0 left", ""},
		{"a zone of such nodes that counts", []Node{aNode("n", "0", "0", inZone("b"), tainted)}, several(3, pod(spreadBy(zoneKey, 1))), four, nil, "0 fit, 1 helped by map[a:1], 2 left", ""},
		{"fewer zones than wanted", nil, several(3, pod(spreadBy(zoneKey, 1), constraint(func(c *corev1.TopologySpreadConstraint) { c.MinDomains = new(int32(2)) }))), four, nil, "0 fit, 1 helped by map[a:1], 2 left", ""},
		{"no label to spread by", nil, one(spreadBy("rack", 1)), four, nil, "0 fit, 0 helped by map[], 1 left", ""},
		{"no label to be together by", nil, one(togetherBy("rack")), four, nil, "0 fit, 0 helped by map[], 1 left", ""},
		{"together with one that runs", []Node{holding(aNode("n", "0", "0", inZone("c")), pod())}, several(2, pod(togetherBy(zoneKey))), three, nil, "0 fit, 2 helped by map[c:1], 0 left", ""},
		{"with those of namespaces that are not known", nil, one(togetherBy(zoneKey), func(p *corev1.Pod) {
			p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "web"}}
		}), four, &Facts{}, "0 fit, 0 helped by map[], 1 left", ""},
		{"devices", nil, one(func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }), four, nil, "0 fit, 0 helped by map[], 1 left", ""},
		{"more resources than are planned for", nil, one(func(p *corev1.Pod) {
			for i := range 5 {
				p.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprintf("x.com/%d", i))] = resource.MustParse("1")
			}
		}), offersOf(9, aNode("a", "4", "8Gi", func(n *corev1.Node) {
			for i := range 5 {
				n.Status.Allocatable[corev1.ResourceName(fmt.Sprintf("x.com/%d", i))] = resource.MustParse("1")
			}
		})), nil, "0 fit, 0 helped by map[], 1 left", ""},
		{"a cordoned node", []Node{aNode("n", "4", "8Gi", func(n *corev1.Node) { n.Spec.Unschedulable = true })}, one(), nil, nil, "0 fit, 0 helped by map[], 1 left", ""},
		{"a host by selector", hosts, one(selecting(corev1.LabelHostname, "n")), nil, nil, "1 fit, 0 helped by map[], 0 left", "n"},
		{"a host by affinity", hosts, one(required(corev1.NodeSelectorTerm{MatchExpressions: host(corev1.NodeSelectorOpIn, corev1.LabelHostname)})), nil, nil, "1 fit, 0 helped by map[], 0 left", "n"},
		{"a node by name", hosts, one(required(corev1.NodeSelectorTerm{MatchFields: host(corev1.NodeSelectorOpIn, "metadata.name")})), nil, nil, "1 fit, 0 helped by map[], 0 left", "n"},
		{"a volume on a host", hosts, one(claiming("data")), nil, factsOf(knowing("data", func(v *corev1.PersistentVolume) {
			v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: host(corev1.NodeSelectorOpIn, corev1.LabelHostname)}}}}
		})), "1 fit, 0 helped by map[], 0 left", "n"},
		{"a volume that is made on a host", hosts, one(claiming("data")), nil, factsOf(waitingClaim("data", driver, corev1.TopologySelectorTerm{
			MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelHostname, Values: []string{"n"}}}})), "1 fit, 0 helped by map[], 0 left", "n"},
		{"a claim for one Pod alone, and two of them", nil, several(2, pod(claiming("data"))), four, factsOf(knowing("data"), byMode(corev1.ReadWriteOncePod)), "0 fit, 1 helped by map[a:1], 1 left", ""},
		{"a claim that both may use", nil, several(2, pod(claiming("data"))), four, factsOf(knowing("data"), byMode(corev1.ReadWriteMany)), "0 fit, 2 helped by map[a:1], 0 left", ""},
		{"a volume for each new node", nil, two(claiming("x"), claiming("y")), limited, factsOf(knowing("x"), knowing("y"), limiting("elsewhere", 9)), "0 fit, 2 helped by map[a:2], 0 left", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := NewWorld(tt.nodes, tt.waiting, tt.facts).Place(tt.waiting, tt.offers)
			if is := outcome(got); is != tt.want {
				t.Errorf("got %s, want %s", is, tt.want)
			}
			on := ""
			for n, node := range tt.nodes {
				for _, o := range got.On {
					if o.Node == n {
						on += node.Name
						break
					}
				}
			}
			if tt.on != "" && on != tt.on {
				t.Errorf("on %s, want %s", on, tt.on)
			}
		})
	}
}

// What did not help once is of no use to Pods like those, and what one offer's Node holds another one's takes only if it fits.
func TestOpeningsMoveWhereTheyFit(t *testing.T) {
	t.Parallel()
	waiting := []*corev1.Pod{aPod("x", "3", "1Gi"), aPod("y", "2", "1Gi")}
	offers := append(offersOf(9, aNode("a", "8", "8Gi")), offersOf(0, aNode("less", "4", "8Gi"), aNode("tainted", "8", "8Gi", tainted), aNode("same", "8", "8Gi"))...)
	p := NewWorld(nil, waiting, nil).Place(waiting, offers)
	if len(p.Openings) != 1 {
		t.Fatalf("openings %v", p.Openings)
	}
	for i, want := range []bool{true, false, false, true} {
		if got := p.Movable(p.Openings[0], i); got != want {
			t.Errorf("to %s: %v, want %v", offers[i].Name, got, want)
		}
	}
	offers[0].Node.Useless = map[string]bool{p.Shapes[0].Digest: true, p.Shapes[1].Digest: true}
	again := NewWorld(nil, waiting, nil).Place(waiting, offers)
	if got, want := outcome(again)+again.Why(0, 0), "0 fit, 0 helped by map[], 2 left"+ReasonUseless; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// free is a volume that nobody has.
func free(name, size string, more ...func(*corev1.PersistentVolume)) func(*Facts) {
	return func(f *Facts) {
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
			StorageClassName: "data", Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
		}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}}
		for _, m := range more {
			m(v)
		}
		f.Volumes = append(f.Volumes, v)
	}
}

func elsewhere(v *corev1.PersistentVolume) {
	v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zoneKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}}}}}}}
}

func reservedFor(uid string) func(*corev1.PersistentVolume) {
	return func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data", UID: types.UID(uid)}
	}
}

// TestVolumesThatWillDo has a case for each way in which a volume is not the one that a claim waits for (SPEC C26).
func TestVolumesThatWillDo(t *testing.T) {
	t.Parallel()
	of := func(change func(*corev1.PersistentVolumeClaim)) func(*Facts) {
		return func(f *Facts) { change(f.Claims[0]) }
	}
	asks := func(size string) func(*Facts) {
		return of(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		})
	}
	another := func(size string) func(*Facts) {
		return func(f *Facts) {
			c := f.Claims[0].DeepCopy()
			c.Name, c.UID = "more", "more"
			c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
			f.Claims = append(f.Claims, c)
		}
	}
	class := func(change func(*storagev1.StorageClass)) func(*Facts) {
		return func(f *Facts) { change(f.Classes[0]) }
	}
	waits := waitingClaim("data", noProvisioner)
	made := waitingClaim("data", driver)
	node := aNode("n", "9", "9Gi")
	for _, tt := range []struct {
		name  string
		node  Node
		pod   *corev1.Pod
		facts *Facts
		want  string
	}{
		{"large enough", node, nil, factsOf(waits, asks("2Gi"), free("v", "2Gi")), ""},
		{"too small", node, nil, factsOf(waits, asks("2Gi"), free("v", "1Gi")), ReasonBinding},
		{"elsewhere", node, nil, factsOf(waits, free("v", "1Gi", elsewhere)), ReasonBinding},
		{"going", node, nil, factsOf(waits, free("v", "1Gi", func(v *corev1.PersistentVolume) { v.DeletionTimestamp = &metav1.Time{} })), ReasonBinding},
		{"a block device", node, nil, factsOf(waits, free("v", "1Gi", func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) })), ReasonBinding},
		{"of other attributes", node, nil, factsOf(waits, free("v", "1Gi", func(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = new("fast") })), ReasonBinding},
		{"still somebody's", node, nil, factsOf(waits, free("v", "1Gi", func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased })), ReasonBinding},
		{"not selected", node, nil, factsOf(waits, of(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"x": "y"}}
		}), free("v", "1Gi")), ReasonBinding},
		{"for one node alone", node, nil, factsOf(waits, of(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		}), free("v", "1Gi")), ReasonBinding},
		{"of another class", node, nil, factsOf(waits, free("v", "1Gi", func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "slow" })), ReasonBinding},
		{"of the class by its annotation", node, nil, factsOf(waits, free("v", "1Gi", func(v *corev1.PersistentVolume) {
			v.Spec.StorageClassName, v.Annotations = "", map[string]string{corev1.BetaStorageClassAnnotation: "data"}
		})), ""},
		{"reserved for it", node, nil, factsOf(waits, free("v", "1Gi", reservedFor("data"))), ""},
		{"reserved for it, of another class", node, nil, factsOf(waits, free("v", "1Gi", reservedFor("data"), func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "slow" })), ReasonBinding},
		{"reserved for whoever has that name", node, nil, factsOf(waits, free("v", "1Gi", reservedFor(""))), ""},
		{"reserved for one of that name before", node, nil, factsOf(waits, free("v", "1Gi", reservedFor("before"))), ReasonBinding},
		{"reserved for it elsewhere", node, nil, factsOf(waits, free("v", "1Gi", reservedFor("data"), elsewhere), free("w", "1Gi")), ReasonBinding},
		{"one for two claims", node, aPod("p", "1", "1Gi", claiming("data", "more")), factsOf(waits, another("1Gi"), free("v", "1Gi")), ReasonBinding},
		{"the smallest first", node, aPod("p", "1", "1Gi", claiming("data", "more")), factsOf(waits, asks("1Gi"), another("2Gi"), free("a", "2Gi"), free("b", "1Gi")), ""},
		{"of a class that nobody makes", node, nil, factsOf(made, class(func(c *storagev1.StorageClass) { c.Provisioner = "" })), ReasonBinding},
		{"bound before there is a Pod", node, nil, factsOf(made, class(func(c *storagev1.StorageClass) { c.VolumeBindingMode = new(storagev1.VolumeBindingImmediate) })), ReasonUnbound},
		{"made nowhere", node, nil, factsOf(waitingClaim("data", driver, corev1.TopologySelectorTerm{})), ReasonBinding},
		{"made where a label is", node, nil, factsOf(waitingClaim("data", driver, corev1.TopologySelectorTerm{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "rack", Values: []string{"1"}}}})), ReasonBinding},
		{"lost", node, nil, factsOf(knowing("data"), of(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost })), `persistentvolumeclaim "data" bound to non-existent persistentvolume "of-data"`},
		{"a claim that goes", node, nil, factsOf(knowing("data"), of(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} })), `persistentvolumeclaim "data" is being deleted`},
		{"a claim that is not the Pod's own", node, aPod("p", "1", "1Gi", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "own", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
		}), factsOf(knowing("p-own")), "PVC default/p-own was not created for pod default/p (pod is not owner)"},
		{"a label that names no zone", node, nil, factsOf(knowing("data", func(v *corev1.PersistentVolume) { v.Labels[zoneKey] = "b__" })), ""},
		{"a node that names none", aNode("n", "9", "9Gi", func(n *corev1.Node) { delete(n.Labels, zoneKey) }), nil, factsOf(knowing("data", func(v *corev1.PersistentVolume) { v.Labels[zoneKey] = "b" })), ""},
		{"attached by what has no driver", node, nil, factsOf(knowing("data"), limiting("n", 1), func(f *Facts) {
			f.Volumes = append(f.Volumes, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "old"}})
			f.Attachments = []*storagev1.VolumeAttachment{{Spec: storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: "n", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("old")}}}}
		}), ""},
		{"attached and used counts once", holding(node, aPod("x", "1", "1Gi", boundTo("n"), claiming("other"))), nil, factsOf(knowing("data"), knowing("other"), limiting("n", 2), func(f *Facts) {
			f.Attachments = []*storagev1.VolumeAttachment{{Spec: storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: "n", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("of-other")}}}}
		}), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			pod := tt.pod
			if pod == nil {
				pod = aPod("p", "1", "1Gi", claiming("data"))
			}
			if got := NewWorld([]Node{tt.node}, []*corev1.Pod{pod}, tt.facts).Ask(pod).Refused(0); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
