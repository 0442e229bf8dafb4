// SPDX-License-Identifier: Apache-2.0

package sim

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
)

// anotherUID is the Machine's of another cluster, of which nobody here has heard.
const anotherUID = types.UID("machine-of-another-cluster")

// anothers reports whether what carries uid is that Machine's.
func anothers(uid types.UID) bool { return uid == anotherUID }

// anotherUp gives the cluster its mark, and puts there what another one with the same id has: it was made long ago, and is in each list
// that the sweep gets.
func (p *Play) anotherUp() {
	if !p.Shared {
		return
	}
	p.put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: machine.NamespaceSystem, UID: "this-cluster"}})
	of := provider.Account{Kind: cloud.Kind, Namespace: machine.Namespace, Secret: credentials}
	theirs := provider.Instance{Name: "worker-of-another", UID: anotherUID, ClusterUID: "another-cluster", Type: "small"}
	p.Cloud.Add(of.Key(), "sim", theirs)
	theirs.Child = true
	p.Cloud.Add(of.Key(), "sim", theirs)
	p.seen += len(p.happened())
	p.tracef("another cluster with the same id is there")
}
