// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// What the binder of volumes writes on claims and classes.
const (
	bindCompleted = "pv.kubernetes.io/bind-completed"
	selectedNode  = "volume.kubernetes.io/selected-node"
	noProvisioner = "kubernetes.io/no-provisioner"
)

// claimed is what a Pod's claims ask of a Node.
type claimed struct {
	bad       string // why no Node will do
	selectors []*nodeaffinity.LazyErrorNodeSelector
	zones     []pvZone
	unbound   []unbound // sorted by size: small ones choose first
	exclusive []string  // claims that one Pod alone may use
}

// pvZone is a topology label of a volume: the Node must have one of the values.
type pvZone struct {
	key    string
	values []string
}

// unbound is a claim that is bound once its Pod has a Node.
type unbound struct {
	*corev1.PersistentVolumeClaim
	class      *storagev1.StorageClass
	selector   labels.Selector // of volumes; nil: any
	candidates []*corev1.PersistentVolume
}

// claimName returns the name of the claim behind a volume, and whether the claim is the Pod's own, made from its spec.
func claimName(p *corev1.Pod, v *corev1.Volume) (name string, own, ok bool) {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName, false, true
	case v.Ephemeral != nil:
		return p.Name + "-" + v.Name, true, true
	}
	return "", false, false
}

// claims compiles what a Pod's claims ask for.
func (st *storage) claimed(p *corev1.Pod) (c claimed) {
	for i := range p.Spec.Volumes {
		name, own, ok := claimName(p, &p.Spec.Volumes[i])
		if !ok {
			continue
		}
		claim := st.claims[p.Namespace+"/"+name]
		switch {
		case claim == nil && own:
			c.bad = fmt.Sprintf("waiting for ephemeral volume controller to create the persistentvolumeclaim %q", name)
		case claim == nil:
			c.bad = fmt.Sprintf("persistentvolumeclaim %q not found", name)
		case claim.Status.Phase == corev1.ClaimLost:
			c.bad = fmt.Sprintf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", name, claim.Spec.VolumeName)
		case claim.DeletionTimestamp != nil:
			c.bad = fmt.Sprintf("persistentvolumeclaim %q is being deleted", name)
		case own && !metav1.IsControlledBy(claim, p):
			c.bad = fmt.Sprintf("PVC %s/%s was not created for pod %s/%s (pod is not owner)", claim.Namespace, name, p.Namespace, p.Name)
		default:
			st.add(&c, claim, own)
		}
		if c.bad != "" {
			return c
		}
	}
	slices.SortStableFunc(c.unbound, func(a, b unbound) int {
		x, y := a.Spec.Resources.Requests[corev1.ResourceStorage], b.Spec.Resources.Requests[corev1.ResourceStorage]
		return x.Cmp(y)
	})
	return c
}

func (st *storage) add(c *claimed, claim *corev1.PersistentVolumeClaim, own bool) {
	if !own && slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
		c.exclusive = append(c.exclusive, claim.Name)
	}
	if claim.Spec.VolumeName == "" {
		st.addUnbound(c, claim)
		return
	}
	v := st.volumes[claim.Spec.VolumeName]
	_, complete := claim.Annotations[bindCompleted]
	switch {
	case !complete:
		c.bad = ReasonUnbound
	case v == nil && own:
		c.bad = ReasonNoVolume
	case v == nil:
		c.bad = fmt.Sprintf("persistentvolume %q not found", claim.Spec.VolumeName)
	default:
		if v.Spec.NodeAffinity != nil && v.Spec.NodeAffinity.Required != nil {
			c.selectors = append(c.selectors, nodeaffinity.NewLazyErrorNodeSelector(v.Spec.NodeAffinity.Required))
		}
		if !own {
			c.zones = append(c.zones, zonesOf(v)...)
		}
	}
}

func (st *storage) addUnbound(c *claimed, claim *corev1.PersistentVolumeClaim) {
	name := className(claim.Annotations, deref(claim.Spec.StorageClassName))
	class := st.classes[name]
	if name == "" || class == nil || deref(class.VolumeBindingMode) != storagev1.VolumeBindingWaitForFirstConsumer {
		c.bad = ReasonUnbound
		return
	}
	u := unbound{PersistentVolumeClaim: claim, class: class, candidates: st.candidates(claim, name)}
	if claim.Spec.Selector != nil {
		u.selector = selectorOf(claim.Spec.Selector)
	}
	c.unbound = append(c.unbound, u)
}

// candidates returns the volumes that exist and may serve a claim of a class: those set aside for it come first.
func (st *storage) candidates(claim *corev1.PersistentVolumeClaim, class string) []*corev1.PersistentVolume {
	own := slices.DeleteFunc(slices.Clone(st.reserved[claim.Namespace+"/"+claim.Name]), func(v *corev1.PersistentVolume) bool {
		return className(v.Annotations, v.Spec.StorageClassName) != class
	})
	if len(own) == 0 {
		return st.byClass[class]
	}
	return append(own, st.byClass[class]...)
}

// made returns the class of which a volume is going to be made for a claim, wherever its Pod goes and for it alone. It is
// empty where the claim is anything special: the Pods of such claims of one class have their places alike.
func (st *storage) made(p *corev1.Pod, name string, own bool) string {
	if st == nil {
		return ""
	}
	claim := st.claims[p.Namespace+"/"+name]
	if claim == nil || claim.Spec.VolumeName != "" || claim.Status.Phase == corev1.ClaimLost || claim.DeletionTimestamp != nil || own && !metav1.IsControlledBy(claim, p) {
		return ""
	}
	var c claimed
	if st.addUnbound(&c, claim); c.bad != "" || c.unbound[0].choosy() {
		return ""
	}
	return c.unbound[0].class.Name
}

// choosy reports whether a Node's name may decide about the claim: the Node was chosen, or volumes exist, which may be local.
func (u *unbound) choosy() bool {
	_, chosen := u.Annotations[selectedNode]
	return chosen || len(u.candidates) > 0 || slices.ContainsFunc(u.class.AllowedTopologies, func(t corev1.TopologySelectorTerm) bool {
		return slices.ContainsFunc(t.MatchLabelExpressions, func(e corev1.TopologySelectorLabelRequirement) bool { return e.Key == corev1.LabelHostname })
	})
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// topologyLabels are those that volumes of old carry in place of node affinity.
var topologyLabels = [...]string{
	corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion, corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
}

// zonesOf reads a volume's topology labels: several values are joined by two underscores.
func zonesOf(v *corev1.PersistentVolume) (zones []pvZone) {
	for _, key := range topologyLabels {
		text, ok := v.Labels[key]
		if !ok {
			continue
		}
		values := strings.Split(text, "__")
		for i := range values {
			values[i] = strings.TrimSpace(values[i])
		}
		if !slices.Contains(values, "") {
			zones = append(zones, pvZone{key, values})
		}
	}
	return zones
}

// stable returns the label that took the place of a topology label of old.
func stable(key string) string {
	switch key {
	case corev1.LabelFailureDomainBetaZone:
		return corev1.LabelTopologyZone
	case corev1.LabelFailureDomainBetaRegion:
		return corev1.LabelTopologyRegion
	}
	return key
}

// admits returns why the claims keep their Pod from a Node; fine if they do not.
func (c *claimed) admits(n *corev1.Node) string {
	if c.bad != "" {
		return c.bad
	}
	for _, s := range c.selectors {
		if ok, err := s.Match(n); !ok || err != nil {
			return ReasonVolume
		}
	}
	if !c.inZone(n) {
		return ReasonVolumeZone
	}
	return c.bindable(n)
}

// inZone reports whether a Node is where the volumes' labels say. A Node without any such label is everywhere.
func (c *claimed) inZone(n *corev1.Node) bool {
	if !slices.ContainsFunc(topologyLabels[:], func(key string) bool { _, ok := n.Labels[key]; return ok }) {
		return true
	}
	for _, z := range c.zones {
		value, ok := n.Labels[z.key]
		if !ok {
			value, ok = n.Labels[stable(z.key)]
		}
		if !ok || !slices.Contains(z.values, value) {
			return false
		}
	}
	return true
}

// bindable returns why claims that wait for a Node would find no volume there; fine if each would find one, or have one
// made. A volume serves one claim.
func (c *claimed) bindable(n *corev1.Node) string {
	chosen := map[string]bool{}
	for _, u := range c.unbound {
		if node, ok := u.Annotations[selectedNode]; ok && node != n.Name {
			return ReasonBinding
		}
	}
	for _, u := range c.unbound {
		if _, ok := u.Annotations[selectedNode]; !ok {
			if v := u.match(n, chosen); v != nil {
				chosen[v.Name] = true
				continue
			}
		}
		if u.class.Provisioner == "" || u.class.Provisioner == noProvisioner || !withinTopology(u.class.AllowedTopologies, n) {
			return ReasonBinding
		}
	}
	return fine
}

// match returns the smallest volume that exists and serves the claim on a Node; one that is reserved for the claim
// before all others.
func (u *unbound) match(n *corev1.Node, taken map[string]bool) (best *corev1.PersistentVolume) {
	for _, v := range u.candidates {
		switch {
		case taken[v.Name] || !u.large(v) || !u.kindred(v):
			continue
		case u.reserved(v):
			if !reachable(v, n) {
				return nil
			}
			return v
		case v.Spec.ClaimRef != nil || !u.takes(v) || !reachable(v, n):
			continue
		}
		size := v.Spec.Capacity[corev1.ResourceStorage]
		if best == nil || size.Cmp(best.Spec.Capacity[corev1.ResourceStorage]) < 0 {
			best = v
		}
	}
	return best
}

func (u *unbound) large(v *corev1.PersistentVolume) bool {
	size := v.Spec.Capacity[corev1.ResourceStorage]
	return size.Cmp(u.Spec.Resources.Requests[corev1.ResourceStorage]) >= 0
}

// kindred reports whether a volume is of a kind that the claim can have at all.
func (u *unbound) kindred(v *corev1.PersistentVolume) bool {
	mode := func(m *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
		return cmp.Or(deref(m), corev1.PersistentVolumeFilesystem)
	}
	return v.DeletionTimestamp == nil && mode(u.Spec.VolumeMode) == mode(v.Spec.VolumeMode) &&
		deref(u.Spec.VolumeAttributesClassName) == deref(v.Spec.VolumeAttributesClassName)
}

// takes reports whether the claim would have a volume that is nobody's.
func (u *unbound) takes(v *corev1.PersistentVolume) bool {
	return v.Status.Phase == corev1.VolumeAvailable && (u.selector == nil || u.selector.Matches(labels.Set(v.Labels))) &&
		!slices.ContainsFunc(u.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool { return !slices.Contains(v.Spec.AccessModes, m) })
}

// reserved reports whether a candidate was set aside for the claim: of those that were, all have its name.
func (u *unbound) reserved(v *corev1.PersistentVolume) bool {
	r := v.Spec.ClaimRef
	return r != nil && (r.UID == "" || r.UID == u.UID)
}

func reachable(v *corev1.PersistentVolume, n *corev1.Node) bool {
	if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
		return true
	}
	ok, err := nodeaffinity.NewLazyErrorNodeSelector(v.Spec.NodeAffinity.Required).Match(n)
	return ok && err == nil
}

// withinTopology reports whether a class makes volumes that a Node can use. An empty term means nothing.
func withinTopology(terms []corev1.TopologySelectorTerm, n *corev1.Node) bool {
	return len(terms) == 0 || slices.ContainsFunc(terms, func(t corev1.TopologySelectorTerm) bool {
		return len(t.MatchLabelExpressions) > 0 && !slices.ContainsFunc(t.MatchLabelExpressions, func(e corev1.TopologySelectorLabelRequirement) bool {
			value, ok := n.Labels[e.Key]
			return !ok || !slices.Contains(e.Values, value)
		})
	})
}

// attachments returns the volumes of a Pod that count against the limits of a Node, each with its CSI driver.
func (st *storage) attachments(p *corev1.Pod) map[string]string {
	if st == nil || len(p.Spec.Volumes) == 0 {
		return nil
	}
	all := map[string]string{}
	for i := range p.Spec.Volumes {
		name, _, ok := claimName(p, &p.Spec.Volumes[i])
		claim := st.claims[p.Namespace+"/"+name]
		if !ok || claim == nil {
			continue
		}
		if v := st.volumes[claim.Spec.VolumeName]; v != nil {
			if v.Spec.CSI != nil {
				all[handleOf(v.Spec.CSI.Driver, v.Spec.CSI.VolumeHandle)] = v.Spec.CSI.Driver
			}
		} else if class := st.classes[className(claim.Annotations, deref(claim.Spec.StorageClassName))]; class != nil {
			all[handleOf(class.Provisioner, "of claim "+claim.Namespace+"/"+claim.Name)] = class.Provisioner
		}
	}
	return all
}

// inUse returns, of the volumes attached to a node, how many each driver has, and the names of those that Pods use.
func (st *storage) inUse(node string, pods []*corev1.Pod) (counts map[string]int64, used map[string]string) {
	used, counts = map[string]string{}, map[string]int64{}
	for _, p := range pods {
		maps.Copy(used, st.attachments(p))
	}
	for _, driver := range used {
		counts[driver]++
	}
	for name, driver := range st.attached[node] {
		if _, ok := used[name]; !ok {
			counts[driver]++
		}
	}
	return counts, used
}

// tooMany reports whether a node cannot take the Pod's volumes beside those that it has. A volume that some Pod uses
// there already costs nothing.
func (st *storage) tooMany(d *demand, node string, pods []*corev1.Pod) bool {
	if len(d.attaches) == 0 || len(st.limits[node]) == 0 {
		return false
	}
	counts, used := st.inUse(node, pods)
	more := map[string]int64{}
	for name, driver := range d.attaches {
		if _, ok := used[name]; !ok {
			more[driver]++
		}
	}
	for driver, n := range more {
		if limit, ok := st.limits[node][driver]; ok && counts[driver]+n > limit {
			return true
		}
	}
	return false
}
