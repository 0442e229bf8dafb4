// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/plan"
)

// Commons trims Pods and Nodes to what places are decided by, and keeps one copy of what many of them have in common:
// 150,000 Pods of a few thousand controllers are little more than their names. It is not safe for concurrent use. The
// zero Commons is empty.
type Commons struct {
	words    map[string]string
	maps     map[string]map[string]string
	specs    map[string]*corev1.PodSpec
	statuses map[string]*corev1.PodStatus
	owners   map[string][]metav1.OwnerReference
	lists    map[string]corev1.ResourceList
	buffer   []byte
	odd      int // keys that nothing else has
}

// mostShared bounds what is remembered of one sort to be shared with objects still to come. Forgetting costs memory alone.
const mostShared = 1 << 16

// spoken are the annotations that a decision about places may read: by the domain of their key, or the end of it
// (delay-deletion.cluster-autoscaler.kubernetes.io).
var spoken = []string{"machine.openshift.io/", "cluster-autoscaler.kubernetes.io/", "kubernetes.io/config.mirror"}

// scheduled are the conditions of a Pod that count: whether it has a place, whether it is ready, and how a resize of it stands.
var scheduled = []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReady, corev1.PodResizePending, corev1.PodResizeInProgress}

// Trim leaves out of o what no decision about places reads, and lets the rest be shared with what was trimmed before. Only
// Pods and Nodes are changed. Whoever owns o alone may call it; afterwards o must not be modified any more.
func (c *Commons) Trim(o plan.Object) {
	switch o := o.(type) {
	case *corev1.Pod:
		c.meta(&o.ObjectMeta)
		c.podStatus(&o.Status, o.Spec.Containers, o.Spec.InitContainers)
		c.podSpec(&o.Spec)
	case *corev1.Node:
		c.meta(&o.ObjectMeta)
		c.nodeStatus(&o.Status)
	}
}

func (c *Commons) meta(m *metav1.ObjectMeta) {
	m.ManagedFields, m.GenerateName = nil, ""
	m.Namespace = c.word(m.Namespace)
	m.Labels = c.pairs(m.Labels)
	maps.DeleteFunc(m.Annotations, func(k, _ string) bool {
		return !slices.ContainsFunc(spoken, func(domain string) bool { return strings.Contains(k, domain) })
	})
	m.Annotations = c.pairs(m.Annotations)
	if len(m.OwnerReferences) > 0 {
		c.buffer = c.buffer[:0]
		for i := range m.OwnerReferences {
			c.render(&m.OwnerReferences[i])
		}
		m.OwnerReferences = share(&c.owners, c.buffer, m.OwnerReferences)
	}
}

func (c *Commons) podSpec(s *corev1.PodSpec) {
	for i := range s.Containers {
		s.Containers[i] = container(&s.Containers[i])
	}
	for i := range s.InitContainers {
		s.InitContainers[i] = container(&s.InitContainers[i])
	}
	s.Volumes = slices.DeleteFunc(s.Volumes, func(v corev1.Volume) bool {
		return v.ConfigMap != nil || v.Secret != nil || v.Projected != nil || v.DownwardAPI != nil
	})
	s.EphemeralContainers, s.ImagePullSecrets, s.SecurityContext = nil, nil, nil // they ask for nothing
	s.DNSConfig, s.HostAliases, s.ReadinessGates = nil, nil, nil
	s.ServiceAccountName, s.DeprecatedServiceAccount, s.Hostname, s.Subdomain = "", "", "", ""
	node, volumes, affinity := s.NodeName, s.Volumes, s.Affinity // what is a Pod's own more often than the rest
	s.NodeName, s.Volumes, s.Affinity = "", nil, nil
	*s = *c.spec(s)
	if len(volumes) > 0 {
		s.Volumes = c.spec(&corev1.PodSpec{Volumes: volumes}).Volumes
	}
	if affinity != nil {
		s.Affinity = c.spec(&corev1.PodSpec{Affinity: affinity}).Affinity
	}
	s.NodeName = c.word(node)
}

// container keeps what a container asks of its Node.
func container(c *corev1.Container) corev1.Container {
	return corev1.Container{
		Name: c.Name, Ports: c.Ports, RestartPolicy: c.RestartPolicy,
		Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests, Claims: c.Resources.Claims},
	}
}

func (c *Commons) podStatus(s *corev1.PodStatus, containers, early []corev1.Container) {
	kept := corev1.PodStatus{Phase: s.Phase, NominatedNodeName: s.NominatedNodeName, Resize: s.Resize}
	kept.AllocatedResources, kept.Resources = s.AllocatedResources, s.Resources
	for _, x := range s.Conditions {
		if slices.Contains(scheduled, x.Type) {
			kept.Conditions = append(kept.Conditions, corev1.PodCondition{Type: x.Type, Status: x.Status, Reason: x.Reason, Message: said(x)})
		}
	}
	kept.ContainerStatuses, kept.InitContainerStatuses = resized(s.ContainerStatuses, containers), resized(s.InitContainerStatuses, early)
	c.buffer = c.buffer[:0]
	c.render(&kept)
	*s = *share(&c.statuses, c.buffer, &kept)
}

// mostSaid bounds what is kept of the words of a scheduler, in bytes.
const mostSaid = 400

// said is what a scheduler says of a Pod that it found no place for: the Pod is told of it where nothing else says why.
func said(x corev1.PodCondition) string {
	if x.Type != corev1.PodScheduled || x.Status != corev1.ConditionFalse {
		return ""
	}
	return strings.Clone(strings.ToValidUTF8(x.Message[:min(len(x.Message), mostSaid)], ""))
}

// resized keeps what a Node has promised to containers that are being resized in place: other than what they ask for.
func resized(all []corev1.ContainerStatus, containers []corev1.Container) (kept []corev1.ContainerStatus) {
	for i := range all {
		x := &all[i]
		at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == x.Name })
		settled := func(l corev1.ResourceList) bool {
			return l == nil || at >= 0 && equal(l, containers[at].Resources.Requests)
		}
		if settled(x.AllocatedResources) && (x.Resources == nil || settled(x.Resources.Requests)) {
			continue
		}
		k := corev1.ContainerStatus{Name: x.Name, AllocatedResources: x.AllocatedResources}
		if x.Resources != nil {
			k.Resources = &corev1.ResourceRequirements{Requests: x.Resources.Requests}
		}
		kept = append(kept, k)
	}
	return kept
}

func equal(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

func (c *Commons) nodeStatus(s *corev1.NodeStatus) {
	s.Images, s.VolumesInUse, s.VolumesAttached, s.Config = nil, nil, nil, nil
	for i := range s.Conditions {
		x := &s.Conditions[i]
		s.Conditions[i] = corev1.NodeCondition{Type: x.Type, Status: x.Status, Reason: x.Reason, LastTransitionTime: x.LastTransitionTime}
	}
	s.Capacity, s.Allocatable = c.resources(s.Capacity), c.resources(s.Allocatable)
}

func (c *Commons) word(s string) string {
	if s == "" {
		return ""
	}
	if kept, ok := c.words[s]; ok {
		return kept
	}
	c.words = grown(c.words)
	c.words[s] = s
	return s
}

func (c *Commons) pairs(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	c.buffer = c.buffer[:0]
	for _, k := range slices.Sorted(maps.Keys(m)) {
		for _, s := range []string{k, m[k]} { // with its length: a value may have any byte in it
			c.buffer = append(binary.AppendUvarint(c.buffer, uint64(len(s))), s...)
		}
	}
	return share(&c.maps, c.buffer, m)
}

func (c *Commons) resources(l corev1.ResourceList) corev1.ResourceList {
	if len(l) == 0 {
		return l
	}
	c.buffer = c.buffer[:0]
	c.render(&corev1.ResourceRequirements{Requests: l})
	return share(&c.lists, c.buffer, l)
}

func (c *Commons) spec(s *corev1.PodSpec) *corev1.PodSpec {
	c.buffer = c.buffer[:0]
	c.render(s)
	if kept, ok := c.specs[string(c.buffer)]; ok {
		return kept
	}
	own := *s
	return share(&c.specs, c.buffer, &own)
}

// message is what the API types can all do: they render themselves, equal ones equally.
type message interface {
	Size() int
	MarshalToSizedBuffer(into []byte) (int, error)
}

// render appends m to the buffer. What cannot be rendered has something in common with nothing.
func (c *Commons) render(m message) {
	at, n := len(c.buffer), m.Size()
	c.buffer = slices.Grow(c.buffer, n)[:at+n]
	if _, err := m.MarshalToSizedBuffer(c.buffer[at:]); err != nil {
		c.odd++
		c.buffer = strconv.AppendInt(c.buffer[:at], int64(c.odd), 10)
	}
}

// share returns what was kept under a key, or keeps v.
func share[V any](kept *map[string]V, key []byte, v V) V {
	if old, ok := (*kept)[string(key)]; ok { // looking it up makes no copy
		return old
	}
	*kept = grown(*kept)
	(*kept)[string(key)] = v
	return v
}

// grown returns a map that may grow: an empty one instead of one that is too large.
func grown[V any](m map[string]V) map[string]V {
	if m == nil || len(m) >= mostShared {
		return map[string]V{}
	}
	return m
}
