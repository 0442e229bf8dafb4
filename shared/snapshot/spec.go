// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// roleMaster is the value of the role label that makes a Machine one of the control plane (SPEC B32).
const roleMaster = "master"

// written returns what a Machine, or the template of a MachineSet, asks of its cloud as it is written, with what defaults look at beside
// it: all but a name. The spec of any other object is empty.
func (s Snapshot) written(o plan.Object) (json.RawMessage, providerspec.Subject) {
	of := providerspec.Subject{Namespace: o.GetNamespace(), ClusterID: s.ClusterID(o)}
	of.Region, of.Tags = s.ofAWS()
	var value *runtime.RawExtension
	var labels, node map[string]string
	switch o := o.(type) {
	case *machine.Machine:
		value, labels, node = o.Spec.ProviderSpec.Value, o.Labels, o.Spec.Labels
	case *machine.MachineSet:
		value, labels, node = o.Spec.Template.Spec.ProviderSpec.Value, o.Spec.Template.Labels, o.Spec.Template.Spec.Labels
	}
	if value == nil {
		return nil, of
	}
	of.Arch, of.ControlPlane = node[corev1.LabelArchStable], labels[machine.LabelRole] == roleMaster
	return value.Raw, of
}

// ofAWS returns what the Infrastructure says of the cluster on AWS: its region, and the tags of all that it has there, as defaults take them.
func (s Snapshot) ofAWS() (region, tags string) {
	i := find(s.Infrastructures, "", machine.InfrastructureName)
	if i == nil || i.Status.PlatformStatus == nil || i.Status.PlatformStatus.AWS == nil {
		return "", ""
	}
	aws := i.Status.PlatformStatus.AWS
	if len(aws.ResourceTags) > 0 {
		tags, _ = machine.Remembered(s.Records, ofCluster{i}, func() (string, error) { return listed(aws.ResourceTags), nil })
	}
	return aws.Region, tags
}

// listed returns tags as defaults take them.
func listed(tags []configv1.AWSResourceTag) string {
	all := make([]providerspec.AWSTag, 0, len(tags))
	for _, t := range tags {
		all = append(all, providerspec.AWSTag{Name: t.Key, Value: t.Value})
	}
	b, _ := json.Marshal(all) // words only
	return string(b)
}

// What is remembered of providerSpecs, and of an Infrastructure's tags.
type (
	ofCluster struct{ *configv1.Infrastructure }

	filling  specOf
	judgment specOf
	specOf   struct {
		raw string
		of  providerspec.Subject
	}
	verdict struct {
		problem  string
		warnings []string
	}
)

// FilledSpec returns what a Machine, or the template of a MachineSet, asks of its cloud with the defaults of a cluster that has no
// admission policies (SPEC B75, B76, B78), as drivers get it, with what these look at beside it: all but a name. Most Machines ask for
// what their set's template asks for, so each spec is filled in once.
func (s Snapshot) FilledSpec(o plan.Object) (json.RawMessage, providerspec.Subject) {
	raw, of := s.written(o)
	filled, _ := machine.Remembered(s.Records, filling{string(raw), of}, func() (json.RawMessage, error) {
		return providerspec.Default(raw, of), nil
	})
	return filled, of
}

// JudgeSpec returns why what o asks of its cloud can never work, naming field and value, or "", and what is strange about it
// (SPEC B72–B79).
func (s Snapshot) JudgeSpec(o plan.Object) (problem string, warnings []string) {
	filled, of := s.FilledSpec(o)
	of.Name = o.GetName()
	if set, ok := o.(*machine.MachineSet); ok {
		of.Name = machine.Name(set.Name, set.UID, 0) // its Machines have names as long as this
	}
	v, _ := machine.Remembered(s.Records, judgment{string(filled), of}, func() (verdict, error) {
		errs, warnings := providerspec.Validate(filled, of)
		return verdict{providerspec.Brief(errs), providerspec.Few(warnings)}, nil
	})
	return v.problem, v.warnings
}
