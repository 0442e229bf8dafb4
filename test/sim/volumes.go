// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
)

const detachTakes = 30 * time.Second

// attach is what the attach/detach controller does, a while after the Pod is where it is: its volume follows it, and stays on the
// Node until nobody there needs it.
func (p *Play) attach(nodes []*corev1.Node) {
	volumes := 1
	if p.Volumes {
		volumes = mostReplicas
	}
	for i := range volumes {
		p.attachOf(fmt.Sprintf("app-%d", i), nodes)
	}
}

func (p *Play) attachOf(name string, nodes []*corev1.Node) {
	at := ""
	if pod := memory.Get[*corev1.Pod](p.API, workload, name); pod != nil {
		at = pod.Spec.NodeName
	}
	a := memory.Get[*storagev1.VolumeAttachment](p.API, "", "of-"+name)
	detaches, due := p.detaches[name]
	switch {
	case a == nil && at != "" && p.node(nodes, at) != nil:
		a = &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "of-" + name}}
		a.Spec.Attacher, a.Spec.NodeName, a.Spec.Source.PersistentVolumeName = "csi.example.com", at, new("pv-of-"+name)
		p.put(a)
	case a == nil || a.Spec.NodeName == at:
		delete(p.detaches, name)
	case !due && p.node(nodes, a.Spec.NodeName) != nil:
		p.detaches[name] = p.elsewhere().Add(detachTakes)
	case !p.elsewhere().Before(detaches):
		p.remove("VolumeAttachment", "", a.Name)
	}
}

// attached reports whether a volume is attached to a Node.
func (p *Play) attached(node string) bool {
	for _, a := range memory.List[*storagev1.VolumeAttachment](p.API) {
		if a.Spec.NodeName == node {
			return true
		}
	}
	return false
}
