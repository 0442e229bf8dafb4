// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	corev1 "k8s.io/api/core/v1"
)

// mostLikes bounds how many different Pods are remembered: where more are met, nothing is shared, and looking is cheaper.
const mostLikes = 1 << 13

// Brief is what a World has to know of most Pods that run: it spares another look at the Pod, one of a hundred thousand
// that lie apart in memory.
type Brief struct {
	like  *corev1.Pod // asks for the same amounts
	claim bool        // uses a volume by claim
	apart bool        // has a rule that keeps others away
}

// Briefs writes briefs. Pods that share their containers, as those do that snapshot.Commons trimmed, are alike.
type Briefs struct {
	likes map[*corev1.Container]*corev1.Pod
}

// Of looks at a Pod.
func (b *Briefs) Of(p *corev1.Pod) Brief {
	brief := Brief{like: p, apart: p.Spec.Affinity != nil && p.Spec.Affinity.PodAntiAffinity != nil}
	for i := range p.Spec.Volumes {
		brief.claim = brief.claim || p.Spec.Volumes[i].PersistentVolumeClaim != nil
	}
	if len(p.Spec.Containers) == 0 || len(p.Status.ContainerStatuses) > 0 || !plain(p) {
		return brief
	}
	first := &p.Spec.Containers[0]
	switch like, ok := b.likes[first]; {
	case ok && len(like.Spec.Containers) == len(p.Spec.Containers):
		brief.like = like
	case !ok && len(b.likes) < mostLikes:
		if b.likes == nil {
			b.likes = map[*corev1.Container]*corev1.Pod{}
		}
		b.likes[first] = p
	}
	return brief
}

// briefs returns a Brief for each Pod of a node.
func (n *Node) briefs() []Brief {
	if len(n.Briefs) == len(n.Pods) {
		return n.Briefs
	}
	all := make([]Brief, len(n.Pods))
	for i, p := range n.Pods {
		all[i] = Brief{like: p, claim: true, apart: true}
	}
	return all
}
