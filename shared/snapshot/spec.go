// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// roleMaster is the value of the role label that makes a Machine one of the control plane (SPEC B32).
const roleMaster = "master"

// ProviderSpec returns what a Machine, or the template of a MachineSet, asks of its cloud as it is written, with what
// defaults and rules look at beside it. The spec of any other object is empty.
func (s Snapshot) ProviderSpec(o plan.Object) (json.RawMessage, providerspec.Subject) {
	of := providerspec.Subject{Name: o.GetName(), Namespace: o.GetNamespace(), ClusterID: s.ClusterID(o), Region: s.region()}
	var value *runtime.RawExtension
	labels, node := o.GetLabels(), map[string]string{}
	switch o := o.(type) {
	case *machine.Machine:
		value, node = o.Spec.ProviderSpec.Value, o.Spec.Labels
	case *machine.MachineSet:
		value, node = o.Spec.Template.Spec.ProviderSpec.Value, o.Spec.Template.Spec.Labels
		labels = o.Spec.Template.Labels
		of.Name = machine.Name(o.Name, o.UID, 0) // its Machines have names as long as this
	}
	if value == nil {
		return nil, of
	}
	of.Arch, of.ControlPlane = node[corev1.LabelArchStable], labels[machine.LabelRole] == roleMaster
	return value.Raw, of
}

// region returns the cluster's own region where the Infrastructure says one.
func (s Snapshot) region() string {
	i := find(s.Infrastructures, "", machine.InfrastructureName)
	if i == nil || i.Status.PlatformStatus == nil || i.Status.PlatformStatus.AWS == nil {
		return ""
	}
	return i.Status.PlatformStatus.AWS.Region
}
