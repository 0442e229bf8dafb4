// SPDX-License-Identifier: Apache-2.0

package sim

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// elsewhere is the second namespace whose Machines functions serve: the one of overlays/namespaces, by whose rights they go.
const elsewhere = "machines-b"

// secondSpace is the namespace of the second set.
func (p *Play) secondSpace() string {
	if p.Apart {
		return elsewhere
	}
	return machine.Namespace
}

// secondSet is the name of the second set.
func (p *Play) secondSet() string {
	if p.Apart {
		return setName
	}
	return neighborName
}

// moveIn puts there what the second namespace has beside its set, by the names that it has in the first: a Secret, which opens another
// account of the same cloud, and a check that replaces nobody.
func (p *Play) moveIn() {
	p.Namespaces = []string{machine.Namespace, elsewhere}
	p.API.PutSecret(secretOf(elsewhere, Canary+"-"+elsewhere))
	if p.Level >= Healing {
		h := checkOf(false)
		h.Namespace, h.Spec.MaxUnhealthy = elsewhere, new(intstr.FromInt32(0))
		p.put(h)
	}
}

func secretOf(namespace, key string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: credentials}, Data: map[string][]byte{"key": []byte(key), "userData": []byte(Canary)}}
}
