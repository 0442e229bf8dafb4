// SPDX-License-Identifier: Apache-2.0

// Package bench measures decisions on workloads that other autoscalers were measured on too.
package bench

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/scheduling"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Workload is one situation: groups that can grow, Nodes, Pods that run and wait. CPU is in millicores, memory in MiB,
// all allocatable.
type Workload struct {
	Name       string `json:"name"`
	Groups     []group
	Nodes      []struct{ Name, Group string }
	DaemonSets []daemonSet `json:"daemonsets"`
	Apps       []app       `json:"workloads"`
}

type group struct {
	Name          string
	CPU, Mem, GPU int64
	Pods          int64
	Labels        map[string]string
	Taints        []taint
	Max           int
	Price         float64
}

type taint struct{ Key, Value, Effect string }

type daemonSet struct {
	Name         string
	CPU, Mem     int64
	NodeSelector map[string]string
	Tolerations  []taint
	TolerateAll  bool
}

type app struct {
	Name             string
	CPU, Mem, GPU    int64
	NodeSelector     map[string]string
	Tolerations      []taint
	AntiAffinityHost bool
	Spread           []struct {
		Key     string
		MaxSkew int32
		Hard    bool
	}
	Pending int
	Running [][2]int // index of a Node, Pods there

	PDBMaxUnavailable *int32 // nil: no disruption budget
}

// Files returns the workload files of a folder, sorted.
func Files(folder string) ([]string, error) {
	plain, err := filepath.Glob(folder + "/*.json")
	if err != nil {
		return nil, err
	}
	zipped, err := filepath.Glob(folder + "/*.json.gz")
	if err == nil && len(plain)+len(zipped) == 0 {
		err = fmt.Errorf("no workloads in %s", folder)
	}
	return slices.Sorted(slices.Values(append(plain, zipped...))), err
}

// Load reads a workload file, which may be zipped.
func Load(path string) (*Workload, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	w := &Workload{}
	if err := json.NewDecoder(r).Decode(w); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return w, nil
}

// Price is a group's price as offers have it: in thousandths of a cent.
func (g group) price() int64 { return int64(math.Round(g.Price * 1e5)) }

// NodesWithPods returns the Nodes that exist with what runs there, trimmed like lists that are kept.
func (w *Workload) NodesWithPods() []scheduling.Node {
	byName := map[string]*group{}
	for i := range w.Groups {
		byName[w.Groups[i].Name] = &w.Groups[i]
	}
	nodes := make([]scheduling.Node, len(w.Nodes))
	var common snapshot.Commons
	for i, n := range w.Nodes {
		nodes[i] = w.node(byName[n.Group], n.Name)
		common.Trim(nodes[i].Node)
		for _, p := range nodes[i].Pods {
			common.Trim(p)
		}
	}
	for _, a := range w.Apps {
		for at, r := range a.Running { // a Node may be named more than once
			for k := range r[1] {
				p := a.pod(fmt.Sprintf("%s-on-%d-%d-%d", a.Name, r[0], at, k))
				p.Spec.NodeName = nodes[r[0]].Name
				common.Trim(p)
				nodes[r[0]].Pods = append(nodes[r[0]].Pods, p)
			}
		}
	}
	return nodes
}

// Waiting returns the Pods that wait for a place.
func (w *Workload) Waiting() []*corev1.Pod {
	var pods []*corev1.Pod
	var common snapshot.Commons
	for _, a := range w.Apps {
		for k := range a.Pending {
			p := a.pod(fmt.Sprintf("%s-%d", a.Name, k))
			common.Trim(p)
			pods = append(pods, p)
		}
	}
	return pods
}

// Offers returns what the groups can still grow by.
func (w *Workload) Offers() []scheduling.Offer {
	exist := map[string]int{}
	for _, n := range w.Nodes {
		exist[n.Group]++
	}
	var offers []scheduling.Offer
	for i := range w.Groups {
		g := &w.Groups[i]
		offers = append(offers, scheduling.Offer{Name: g.Name, Node: w.node(g, "template-of-"+g.Name), Price: g.price(), Limit: g.Max - exist[g.Name]})
	}
	return offers
}

// node returns a Node of a group with its DaemonSets' Pods.
func (w *Workload) node(g *group, name string) scheduling.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	maps.Copy(n.Labels, g.Labels)
	for _, t := range g.Taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	n.Status.Allocatable = requests(g.CPU, g.Mem, g.GPU)
	n.Status.Allocatable[corev1.ResourcePods] = *resource.NewQuantity(g.Pods, resource.DecimalSI)
	n.Status.Capacity = n.Status.Allocatable
	return scheduling.Node{Node: n, Pods: scheduling.Templates{Daemons: w.daemons()}.DaemonPods(n)}
}

func (w *Workload) daemons() []*appsv1.DaemonSet {
	var all []*appsv1.DaemonSet
	for _, d := range w.DaemonSets {
		ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: d.Name}}
		ds.Spec.Template.Spec = corev1.PodSpec{
			NodeSelector: d.NodeSelector, Tolerations: tolerations(d.Tolerations),
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests(d.CPU, d.Mem, 0)}}},
		}
		if d.TolerateAll {
			ds.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}
		all = append(all, ds)
	}
	return all
}

// pod returns one Pod of an app. What rules of the same app share is shared, as it is in Pods decoded from one list.
func (a app) pod(name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": a.Name}}}
	p.Spec.NodeSelector = a.NodeSelector
	p.Spec.Tolerations = tolerations(a.Tolerations)
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests(a.CPU, a.Mem, a.GPU)}}}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: a.Name, UID: types.UID(a.Name), Controller: new(true)}}
	self := &metav1.LabelSelector{MatchLabels: map[string]string{"app": a.Name}}
	if a.AntiAffinityHost {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: self, TopologyKey: corev1.LabelHostname}},
		}}
	}
	for _, s := range a.Spread {
		c := corev1.TopologySpreadConstraint{MaxSkew: s.MaxSkew, TopologyKey: s.Key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: self}
		if s.Hard {
			c.WhenUnsatisfiable = corev1.DoNotSchedule
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
	return p
}

func requests(cpu, mem, gpu int64) corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(cpu, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(mem<<20, resource.BinarySI),
	}
	if gpu > 0 {
		list[scheduling.GPU] = *resource.NewQuantity(gpu, resource.DecimalSI)
	}
	return list
}

func tolerations(taints []taint) []corev1.Toleration {
	var all []corev1.Toleration
	for _, t := range taints {
		x := corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)}
		if t.Value == "" {
			x.Operator = corev1.TolerationOpExists
		}
		all = append(all, x)
	}
	return all
}
