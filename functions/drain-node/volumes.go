// SPDX-License-Identifier: Apache-2.0

package drainnode

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// volumes asks for the attachments of volumes, and for the claims of the Pods that stay: theirs are never detached.
func volumes(staying []*corev1.Pod) []snapshot.Query {
	ask := []snapshot.Query{snapshot.All("VolumeAttachment")}
	for _, p := range staying {
		for _, claim := range claims(p) {
			ask = append(ask, snapshot.One("PersistentVolumeClaim", p.Namespace, claim))
		}
	}
	return ask
}

// attached returns the volumes that are still attached to n and that nothing on it needs any more: an instance does
// not go before they do (R-S7, R-B29). A Node that nobody hears of detaches nothing, so it is not waited for.
func attached(s snapshot.Snapshot, n *corev1.Node, staying []*corev1.Pod) []string {
	if machine.NodeUnreachable(n) {
		return nil
	}
	kept := map[string]bool{}
	for _, p := range staying {
		for _, c := range s.PersistentVolumeClaims {
			if c.Namespace == p.Namespace && slices.Contains(claims(p), c.Name) {
				kept[c.Spec.VolumeName] = true
			}
		}
	}
	var names []string
	for _, a := range s.VolumeAttachments {
		if a.Spec.NodeName != n.Name {
			continue
		}
		volume := a.Name // of a volume that stands in the Pod itself
		if pv := a.Spec.Source.PersistentVolumeName; pv != nil {
			volume = *pv
		}
		if !kept[volume] {
			names = append(names, volume)
		}
	}
	slices.Sort(names)
	return names
}

// claims returns the names of p's claims; an ephemeral volume's is made of the Pod's name and its own.
func claims(p *corev1.Pod) []string {
	var names []string
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, p.Name+"-"+v.Name)
		}
	}
	return names
}
