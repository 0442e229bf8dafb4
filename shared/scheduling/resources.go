// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"

	"github.com/machine-functions/machine-functions/shared/binpack"
)

// axes says which resource stands at which place of a vector. The first four are always there; what Pods ask for
// beyond takes the rest, in the order of its appearance.
type axes struct{ names []corev1.ResourceName }

const podsAxis = 2

// attachPrefix begins the names of axes that stand for volumes of one CSI driver.
const attachPrefix = "attachable-volumes-csi-"

func attachAxis(driver string) corev1.ResourceName { return corev1.ResourceName(attachPrefix + driver) }

func newAxes() *axes {
	return &axes{[]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage}}
}

// axesOf gives axes to what the waiting Pods ask for. Where there are too few, what a Node has, or would have, comes first, then
// volumes of drivers with a limit: whoever may make Pods can ask for any number of names that nobody has, and no other Pod is to be
// left without a Node for it.
func (w *World) axesOf(waiting []*corev1.Pod, coming []corev1.ResourceList) *axes {
	all := newAxes()
	for _, p := range waiting {
		all.learn(p)
	}
	limited := 0
	if w.storage != nil {
		limited = len(w.storage.limited)
	}
	if len(all.names)+limited < binpack.N { // and one for GPUs
		return all
	}
	has, gpus := map[corev1.ResourceName]bool{}, []corev1.ResourceName(nil)
	note := func(list corev1.ResourceList) {
		for name, q := range list {
			has[name] = has[name] || q.Sign() > 0
		}
	}
	for n := range w.nodes {
		list := w.nodes[n].Status.Allocatable
		note(list)
		if of, count := w.gpus.In(list); count > 0 && !slices.Contains(gpus, of) {
			gpus = append(gpus, of)
		}
	}
	for _, list := range coming {
		note(list)
	}
	a := newAxes()
	for _, p := range waiting {
		if !usual(p) {
			list := Requests(p)
			maps.DeleteFunc(list, func(name corev1.ResourceName, _ resource.Quantity) bool { return !has[name] })
			a.add(new(binpack.Vector), list)
		}
	}
	for _, p := range waiting {
		if limited == 0 || len(p.Spec.Volumes) == 0 {
			continue
		}
		for _, driver := range slices.Sorted(maps.Values(w.storage.attachments(p))) {
			if w.storage.limited[driver] {
				a.axis(attachAxis(driver))
			}
		}
	}
	for _, name := range gpus { // as long as nobody waits for them they are looked at all the same
		a.axis(name)
	}
	return a // the rest goes to what running Pods have, and then to who asks first
}

// axis returns the place of a resource, making one if there is room.
func (a *axes) axis(name corev1.ResourceName) (int, bool) {
	if i := slices.Index(a.names, name); i >= 0 {
		return i, true
	}
	if len(a.names) == binpack.N {
		return 0, false
	}
	a.names = append(a.names, name)
	return len(a.names) - 1, true
}

// pod returns what a Pod takes of a Node. The resource name is one that found no place in the vector, if there is one.
func (a *axes) pod(p *corev1.Pod) (v binpack.Vector, odd corev1.ResourceName) {
	if plain(p) {
		for i := range p.Spec.Containers {
			if o := a.add(&v, p.Spec.Containers[i].Resources.Requests); o != "" {
				odd = o
			}
		}
	} else {
		odd = a.add(&v, Requests(p))
	}
	v[podsAxis]++
	return v, odd
}

// learn gives an axis to whatever a Pod asks for.
func (a *axes) learn(p *corev1.Pod) {
	if !usual(p) {
		a.pod(p)
	}
}

// usual reports whether a Pod asks for nothing but cpu and memory.
func usual(p *corev1.Pod) bool {
	if !plain(p) {
		return false
	}
	for i := range p.Spec.Containers {
		list := p.Spec.Containers[i].Resources.Requests
		_, cpu := list[corev1.ResourceCPU]
		_, memory := list[corev1.ResourceMemory]
		if len(list) != 0 && (len(list) != 1 || !cpu && !memory) && (len(list) != 2 || !cpu || !memory) {
			return false
		}
	}
	return true
}

// plain reports whether a Pod's requests are the sum over its containers.
func plain(p *corev1.Pod) bool {
	if len(p.Spec.InitContainers) > 0 || len(p.Spec.Overhead) > 0 || p.Spec.Resources != nil {
		return false
	}
	for i := range p.Status.ContainerStatuses { // being resized in place: the largest of wish, promise and reality counts
		st := &p.Status.ContainerStatuses[i]
		if want := requestsOf(p, st.Name); st.Resources != nil &&
			(!same(st.Resources.Requests, want) || st.AllocatedResources != nil && !same(st.AllocatedResources, want)) {
			return false
		}
	}
	return true
}

func requestsOf(p *corev1.Pod, container string) corev1.ResourceList {
	for i := range p.Spec.Containers {
		if p.Spec.Containers[i].Name == container {
			return p.Spec.Containers[i].Resources.Requests
		}
	}
	return nil
}

func same(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, q := range a {
		if other, ok := b[name]; !ok || q.Cmp(other) != 0 {
			return false
		}
	}
	return true
}

// Requests returns what the scheduler counts for a Pod: containers, sidecars, the largest init container, overhead,
// requests of the Pod as a whole, a resize under way.
func Requests(p *corev1.Pod) corev1.ResourceList {
	return helpers.PodRequests(p, helpers.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true})
}

// add adds a list to v. Resources without a place are named if anything is asked of them.
func (a *axes) add(v *binpack.Vector, list corev1.ResourceList) (odd corev1.ResourceName) {
	known := 0
	for i, name := range a.names[:podsAxis] { // almost all that most lists have
		if q, ok := list[name]; ok {
			known++
			v[i] = plus(v[i], Amount(name, q))
		}
	}
	if known == len(list) {
		return ""
	}
	var few [8]corev1.ResourceName
	fresh := few[:0]
	for name, q := range list {
		if name == a.names[0] || name == a.names[1] {
			continue
		}
		n := Amount(name, q)
		if n == 0 {
			continue
		}
		i := slices.Index(a.names, name)
		if i < 0 {
			fresh = append(fresh, name)
			continue
		}
		v[i] = plus(v[i], n)
	}
	slices.Sort(fresh) // places are given in an order that is the same each time
	for _, name := range fresh {
		i, ok := a.axis(name)
		if !ok {
			return name
		}
		v[i] = Amount(name, list[name])
	}
	return ""
}

// node returns the amounts of a Node's resources that have an axis.
func (a *axes) node(list corev1.ResourceList) (v binpack.Vector) {
	for i, name := range a.names {
		if q, ok := list[name]; ok {
			v[i] = Amount(name, q)
		}
	}
	return v
}

// mostOfAll is more than a Node has, or a Pod asks for, of anything. A quantity far above it would come as a negative number, or as 0.
const mostOfAll = 1e15

// Amount is a quantity as a whole number, rounded up: of thousandths for cpu, else of units. It is from 0 to 1e15 units, whatever a
// kubelet or a Pod says.
func Amount(name corev1.ResourceName, q resource.Quantity) int64 {
	scale, unit := resource.Scale(0), int64(1)
	if name == corev1.ResourceCPU {
		scale, unit = resource.Milli, 1000
	}
	if q.CmpInt64(mostOfAll) > 0 {
		return mostOfAll * unit
	}
	return max(0, q.ScaledValue(scale))
}

// Cores is how many processors a Node counts for in the limits of the cluster: begun ones count whole (SPEC C7).
func Cores(cpu resource.Quantity) int64 { return (Amount(corev1.ResourceCPU, cpu) + 999) / 1000 }

// unlimited is room for more volumes than any node takes.
const unlimited = 1 << 20

// attachable sets how many volumes of each driver a node of the world can still have attached.
func (w *World) attachable(free *binpack.Vector, n int) {
	if w.storage == nil || len(w.storage.limited) == 0 {
		return
	}
	node := &w.nodes[n]
	limits := node.Attach
	if own, ok := w.storage.limits[node.Name]; ok {
		limits = own
	}
	if len(limits) == 0 {
		w.limit(free, nil, nil)
		return
	}
	counts, _ := w.storage.inUse(node.Name, node.Pods)
	w.limit(free, limits, counts)
}

func (w *World) limit(free *binpack.Vector, limits, counts map[string]int64) {
	for i, name := range w.axes.names {
		driver, ok := strings.CutPrefix(string(name), attachPrefix)
		if !ok {
			continue
		}
		free[i] = unlimited
		if limit, ok := limits[driver]; ok {
			free[i] = max(0, limit-counts[driver])
		}
	}
}

// plus saturates instead of overflowing.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
