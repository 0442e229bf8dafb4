// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-functions/machine-functions/shared/machine"
)

func infrastructure(name string, platform *configv1.PlatformStatus) *configv1.Infrastructure {
	i := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: machine.InfrastructureName}}
	i.Status.InfrastructureName, i.Status.PlatformStatus = name, platform
	return i
}

// Instances are looked for under the id of the time when they were made, new ones are made under the present one, and where nobody recorded
// which it was, both are asked: under the wrong one alone an instance seems to be gone, and is made twice (R-S1, R-S12).
func TestUnderWhichClusterAnInstanceIs(t *testing.T) {
	t.Parallel()
	made := func(cluster string) string {
		i := machine.NewIntent(&machine.Machine{}, 1, "cloud", []byte(`{}`)).Claimed("me", time.Time{}, time.Minute).Released(machine.OutcomeCreated, time.Time{})
		i.Cluster = cluster
		return i.String()
	}
	for name, c := range map[string]struct {
		infrastructure string // "": there is none
		label          string
		id, intent     string
		is, or         string
	}{
		"new":                                   {infrastructure: "now", label: "label", is: "now"},
		"new, and nobody tells the name":        {label: "label", is: "label"},
		"made by others":                        {infrastructure: "now", label: "label", id: "i", is: "label", or: "now"},
		"made by others, of the same name":      {infrastructure: "now", label: "now", id: "i", is: "now"},
		"made by others, and nobody tells":      {label: "label", id: "i", is: "label"},
		"made by others, without a label":       {infrastructure: "now", id: "i", is: "now"},
		"made under a former name":              {infrastructure: "now", label: "label", id: "i", intent: made("then"), is: "then"},
		"made under the label":                  {infrastructure: "now", label: "label", id: "i", intent: made(""), is: "label"},
		"nobody can read under which":           {infrastructure: "now", label: "label", id: "i", intent: "{", is: "label", or: "now"},
		"nobody can read whether it was made":   {infrastructure: "now", label: "label", intent: "{", is: "label", or: "now"},
		"nobody can read that, without a label": {infrastructure: "now", intent: "{", is: "now"},
	} {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Labels: map[string]string{machine.LabelCluster: c.label}}}
		if c.id != "" {
			m.Spec.ProviderID = &c.id
		}
		if c.intent != "" {
			m.Annotations = map[string]string{machine.AnnotationIntent: c.intent}
		}
		var s Snapshot
		if c.infrastructure != "" {
			s.Add(infrastructure(c.infrastructure, nil))
		}
		if is, or := s.ClusterID(m), s.OtherClusterID(m); is != c.is || or != c.or {
			t.Errorf("%s: under %q, or else %q; want %q, %q", name, is, or, c.is, c.or)
		}
	}
	set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{machine.LabelCluster: "label"}}}
	var s Snapshot
	if id := s.ClusterID(set); id != "label" {
		t.Errorf("a set is of %q", id)
	}
}

// The mark of the cluster is its own namespace kube-system's, and nobody's where that was not asked for.
func TestClusterIsMarkedByItsNamespace(t *testing.T) {
	t.Parallel()
	var s Snapshot
	s.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "other"}})
	if uid := s.ClusterUID(); uid != "" {
		t.Errorf("it is marked %s", uid)
	}
	s.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: machine.NamespaceSystem, UID: "mine"}})
	if uid := s.ClusterUID(); uid != "mine" {
		t.Errorf("it is marked %s", uid)
	}
}

// The ports of Machines let the addresses of the API and of the ingress pass, once each, whichever form tells them; those of a load balancer of
// somebody's own are on none of the Nodes (SPEC E14).
func TestVirtualAddressesAreTold(t *testing.T) {
	t.Parallel()
	openstack := func(p configv1.OpenStackPlatformStatus) *configv1.PlatformStatus {
		return &configv1.PlatformStatus{OpenStack: &p}
	}
	balancer := func(kind configv1.PlatformLoadBalancerType) *configv1.OpenStackPlatformLoadBalancer {
		return &configv1.OpenStackPlatformLoadBalancer{Type: kind}
	}
	both := configv1.OpenStackPlatformStatus{APIServerInternalIPs: []string{"192.0.2.5"}, IngressIPs: []string{"192.0.2.7"}}
	own, managed := both, both
	own.LoadBalancer, managed.LoadBalancer = balancer(configv1.LoadBalancerTypeUserManaged), balancer(configv1.LoadBalancerTypeOpenShiftManagedDefault)
	all := []string{"192.0.2.5", "192.0.2.7"}
	ovirt := configv1.OvirtPlatformStatus{APIServerInternalIPs: all[:1], IngressIPs: all[1:]}
	theirs := ovirt
	theirs.LoadBalancer = &configv1.OvirtPlatformLoadBalancer{Type: configv1.LoadBalancerTypeUserManaged}
	vsphere := configv1.VSpherePlatformStatus{APIServerInternalIPs: all[:1], IngressIPs: all[1:]}
	beside := vsphere
	beside.LoadBalancer = &configv1.VSpherePlatformLoadBalancer{Type: configv1.LoadBalancerTypeUserManaged}
	for name, c := range map[string]struct {
		have *configv1.Infrastructure
		want []string
	}{
		"no Infrastructure":            {nil, nil},
		"of no platform":               {infrastructure("c", nil), nil},
		"of another platform":          {infrastructure("c", &configv1.PlatformStatus{}), nil},
		"it tells none":                {infrastructure("c", openstack(configv1.OpenStackPlatformStatus{})), nil},
		"both":                         {infrastructure("c", openstack(both)), all},
		"of the balancer that is ours": {infrastructure("c", openstack(managed)), all},
		"of a balancer of one's own":   {infrastructure("c", openstack(own)), nil},
		"of oVirt":                     {infrastructure("c", &configv1.PlatformStatus{Ovirt: &ovirt}), all},
		"of a balancer beside oVirt":   {infrastructure("c", &configv1.PlatformStatus{Ovirt: &theirs}), nil},
		"of vSphere":                   {infrastructure("c", &configv1.PlatformStatus{VSphere: &vsphere}), all},
		"of a balancer beside vSphere": {infrastructure("c", &configv1.PlatformStatus{VSphere: &beside}), nil},
		"of vSphere in the older form": {infrastructure("c", &configv1.PlatformStatus{VSphere: &configv1.VSpherePlatformStatus{APIServerInternalIP: all[0], IngressIP: all[1]}}), all}, //nolint:staticcheck // the older form is read too
		"of bare metal":                {infrastructure("c", &configv1.PlatformStatus{BareMetal: &configv1.BareMetalPlatformStatus{APIServerInternalIPs: all[:1], IngressIPs: all[1:]}}), all},
		"of oVirt in the older form":   {infrastructure("c", &configv1.PlatformStatus{Ovirt: &configv1.OvirtPlatformStatus{APIServerInternalIP: all[0], IngressIP: all[1]}}), all}, //nolint:staticcheck // the older form is read too
		"in the older form":            {infrastructure("c", openstack(configv1.OpenStackPlatformStatus{APIServerInternalIP: "192.0.2.7", IngressIP: "192.0.2.5"})), all},          //nolint:staticcheck // the older form is read too
		"in both forms": {infrastructure("c", openstack(configv1.OpenStackPlatformStatus{
			APIServerInternalIPs: []string{"192.0.2.7"}, APIServerInternalIP: "192.0.2.7", IngressIPs: []string{"192.0.2.5"}, IngressIP: "192.0.2.5", //nolint:staticcheck // the older form is read too
		})), all},
	} {
		var s Snapshot
		if c.have != nil {
			s.Add(c.have)
		}
		if got := s.VirtualIPs(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// What is made on AWS has the tags of the Infrastructure as well, as what OpenShift makes; the Machine's own come first. Those that say
// whose an instance is are no more the Infrastructure's to say than a spec's.
func TestTagsOfTheClusterAreOnWhatIsMade(t *testing.T) {
	t.Parallel()
	platform := &configv1.PlatformStatus{AWS: &configv1.AWSPlatformStatus{ResourceTags: []configv1.AWSResourceTag{{Key: "team", Value: "all"}, {Key: "cost", Value: "7"}}}}
	for written, want := range map[string]string{
		`{"kind":"AWSMachineProviderConfig","tags":[{"name":"team","value":"a","more":1}]}`: `[{"name":"team","value":"a","more":1},{"name":"cost","value":"7"}]`,
		`{"kind":"AWSMachineProviderConfig"}`:                                               `[{"name":"team","value":"all"},{"name":"cost","value":"7"}]`,
		`{"kind":"AWSMachineProviderConfig","tags":[null]}`:                                 `[null,{"name":"team","value":"all"},{"name":"cost","value":"7"}]`,
		`{"kind":"AWSMachineProviderConfig","tags":5}`:                                      `5`,
		`{"kind":"AzureMachineProviderSpec"}`:                                               ``,
	} {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
		m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(written)}
		var s Snapshot
		s.Add(infrastructure("c", platform))
		filled, _ := s.FilledSpec(m)
		var got struct{ Tags json.RawMessage }
		if err := json.Unmarshal(filled, &got); err != nil || string(got.Tags) != want {
			t.Errorf("%s: %s, %v, want %s", written, got.Tags, err, want)
		}
	}
}

// The tags of the cluster are read once, not for each of thousands of Machines.
func TestTagsOfTheClusterAreReadOnce(t *testing.T) {
	t.Parallel()
	aws := &configv1.AWSPlatformStatus{ResourceTags: []configv1.AWSResourceTag{{Key: "team", Value: "all"}}}
	s := Snapshot{Records: machine.NewRecords()}
	s.Add(infrastructure("c", &configv1.PlatformStatus{AWS: aws}))
	_, before := s.FilledSpec(&machine.Machine{})
	aws.ResourceTags[0].Value = "nobody reads it again"
	if _, of := s.FilledSpec(&machine.Machine{}); of.Tags != before.Tags || of.Tags == "" {
		t.Errorf("tags %q, before %q", of.Tags, before.Tags)
	}
}
