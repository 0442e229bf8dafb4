// SPDX-License-Identifier: Apache-2.0

// Package snapshot is what a function knows when it decides: a copy of the objects it asked for, what the clouds
// answered, the time.
package snapshot

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// Request is who woke the function, never what happened to it. Without a Name it is a scan.
type Request struct {
	APIVersion, Kind, Namespace, Name string
}

// Scan reports whether the clock woke the function.
func (r Request) Scan() bool { return r.Name == "" }

// Is reports whether an object of kind k woke the function.
func (r Request) Is(k plan.Kind) bool { return r.Name != "" && r.Kind == string(k) }

// Snapshot is immutable once a function sees it, and shared freely: whoever wants to change an object copies it first.
// Objects of each kind are sorted by namespace and name. An object that is not here was not there, or was not
// asked for; Reads decides which.
type Snapshot struct {
	Now        time.Time // the API server's clock
	Before     time.Time // of a scan: when this process read last for the one before, by the same clock; zero if it knows of none
	Request    Request
	Invocation string                    // random per invocation: the holder of a claim
	Outcomes   map[plan.Key]plan.Outcome // what every action of this invocation answered so far
	Pretended  bool                      // by a dry run: what this invocation wanted of objects looks done, the next one finds nothing of it
	Records    *machine.Records          // what this invocation has read of records so far; nil: they are read each time
	Served     []string                  // the namespaces that the deployment serves: Machines of others are in no list
	Survive    func(plan.Object, any)    // is told of a panic over one object, see Apart; nil: it ends the invocation
	Poison     map[plan.Ref]bool         // over whom there was a panic since Survive was set; whoever sets that makes it

	Machines               []*machine.Machine
	MachineSets            []*machine.MachineSet
	HealthChecks           []*machine.MachineHealthCheck
	LegacyHealthChecks     []*machine.LegacyHealthCheck
	MachineAutoscalers     []*autoscaling.MachineAutoscaler
	ClusterAutoscalers     []*autoscaling.ClusterAutoscaler
	Infrastructures        []*configv1.Infrastructure
	Nodes                  []*corev1.Node
	Namespaces             []*corev1.Namespace
	Pods                   []*corev1.Pod
	ConfigMaps             []*corev1.ConfigMap
	PersistentVolumes      []*corev1.PersistentVolume
	PersistentVolumeClaims []*corev1.PersistentVolumeClaim
	ReplicationControllers []*corev1.ReplicationController
	PodTemplates           []*corev1.PodTemplate
	ResourceQuotas         []*corev1.ResourceQuota
	DaemonSets             []*appsv1.DaemonSet
	Deployments            []*appsv1.Deployment
	ReplicaSets            []*appsv1.ReplicaSet
	StatefulSets           []*appsv1.StatefulSet
	Jobs                   []*batchv1.Job
	DisruptionBudgets      []*policyv1.PodDisruptionBudget
	SigningRequests        []*certificatesv1.CertificateSigningRequest
	PriorityClasses        []*schedulingv1.PriorityClass
	StorageClasses         []*storagev1.StorageClass
	CSINodes               []*storagev1.CSINode
	VolumeAttachments      []*storagev1.VolumeAttachment
	Foreign                []*unstructured.Unstructured // of kinds that plan.Foreign knows; sorted by kind first

	Clouds   map[types.UID]Cloud // by Machine (or MachineSet) UID: the answer to each Lookup
	Accounts map[string]Account  // by account key: the answer to each bulk list

	asked  querySet
	former map[plan.Ref]string // the versions of objects that were read again, before that
}

// Apart calls f, which reads for o or decides about it, and does what others do not need. That it panics over one object, a fault of ours,
// keeps nobody from all others where somebody is told of it (2c, R-L4); what it had decided until then stands. Nothing more is called
// for that object with the same observation: what was not read of it is not absent.
func (s Snapshot) Apart(o plan.Object, f func()) {
	if s.Survive != nil {
		if len(s.Poison) > 0 && s.Poison[plan.RefOf(o)] {
			return
		}
		defer func() {
			if v := recover(); v != nil {
				s.Poison[plan.RefOf(o)] = true
				s.Survive(o, v)
			}
		}()
	}
	f()
}

// Cloud is what the cloud of one Machine answered in this observation. Code and Message are set if the lookup
// failed: then Found proves nothing.
type Cloud struct {
	Account  string
	Cluster  string // the id of the cluster under which it was asked
	Owner    string // what the cloud calls the account that the credentials lead to now; empty if it cannot tell (provider.Identified)
	Source   string // of Events about it: "openstack_controller" (SPEC S23)
	Horizon  time.Duration
	Tokens   bool              // Create is idempotent by token
	Cycles   bool              // it can power instances off and on (provider.PowerCycler)
	Tags     map[string]string // that the providerSpec wants; nil where the cloud cannot change them (provider.Updater)
	Found    []provider.Instance
	Ended    string          // why a recorded instance is gone, in the cloud's words, if it says so (provider.Ended)
	Later    bool            // there was no time to ask, its turn comes in a later scan: Found proves nothing
	Err      *Refusal        // of Open or Find
	Resolved json.RawMessage // if asked for
	Refused  *Refusal        // of Resolve
	Type     *provider.InstanceType
	Fresh    bool            // Type is the answer to a Lookup that is Fresh
	Stock    *provider.Stock // if asked for; nil where the cloud has none
}

// Account is what one account's bulk list answered.
type Account struct {
	Owner     string // as in Cloud
	Insecure  string // which key of which Secret lets the cloud not prove who it is, and how; empty if it has to
	Horizon   time.Duration
	Instances []provider.Instance
	Err       *Refusal
	Later     bool // it was asked for earlier in the invocation, and there is no time to ask again: Err tells nothing
}

// Refusal is a cloud's error as data.
type Refusal struct {
	Code       provider.Code
	Message    string
	RetryAfter time.Duration
}

// Changed reports whether o, which was read again, was another version of it before, or not there: what was read between the two may be older
// than o, so that nothing is decided about o with both (RELIABILITY 2a.1).
func (s Snapshot) Changed(o plan.Object) bool {
	version, again := s.former[named(plan.KindOf(o), o.GetNamespace(), o.GetName())]
	return again && version != o.GetResourceVersion()
}

func named(k plan.Kind, namespace, name string) plan.Ref {
	return plan.Ref{Kind: k, Namespace: namespace, Name: name}
}

// Serves reports whether the Machines of a namespace are in the lists of Machines.
func (s Snapshot) Serves(namespace string) bool { return slices.Contains(s.Served, namespace) }

// Outcome returns what action a answered in this invocation, and whether it was tried.
func (s Snapshot) Outcome(a plan.Action) (plan.Outcome, bool) {
	o, ok := s.Outcomes[a.Key()]
	return o, ok
}

// Refused reports whether action a was refused in this invocation, and with what words.
func (s Snapshot) Refused(a plan.Action) (why string, refused bool) {
	o, tried := s.Outcome(a)
	return o.Message, tried && o.Result == plan.Refused
}

// Machine returns the Machine, or nil.
func (s Snapshot) Machine(namespace, name string) *machine.Machine {
	return find(s.Machines, namespace, name)
}

// MachineSet returns the MachineSet, or nil.
func (s Snapshot) MachineSet(namespace, name string) *machine.MachineSet {
	return find(s.MachineSets, namespace, name)
}

// Node returns the Node, or nil.
func (s Snapshot) Node(name string) *corev1.Node { return find(s.Nodes, "", name) }

// NodeOf returns m's Node, as far as Nodes and Machines are known: the linked one, else the one that it would be linked to.
func (s Snapshot) NodeOf(m *machine.Machine) *corev1.Node {
	if ref := m.Status.NodeRef; ref != nil {
		if n := s.Node(ref.Name); machine.IsNodeOf(m, n) {
			return n
		}
	}
	return machine.FittingNode(m, s.Nodes, s.Machines)
}

// LateNodeOf returns the Node of a deleted Machine for which nothing was drained because it had none, and which nobody has linked
// since; or nil. One that fits by an address alone counts if it is older than the deletion: addresses are given again (R-B31, R-B32).
func (s Snapshot) LateNodeOf(m *machine.Machine) *corev1.Node {
	if m.DeletionTimestamp == nil || !machine.FoundNoNode(m) { // as of most: no Node is looked for
		return nil
	}
	n := s.NodeOf(m)
	if n == nil || !machine.SameInstance(m, n) && n.CreationTimestamp.After(m.DeletionTimestamp.Time) {
		return nil
	}
	return n
}

// ConfigMap returns the ConfigMap, or nil.
func (s Snapshot) ConfigMap(namespace, name string) *corev1.ConfigMap {
	return find(s.ConfigMaps, namespace, name)
}

// AutoscalerState returns what evaluate-autoscale remembers: nothing without its ConfigMap. Nobody changes it.
func (s Snapshot) AutoscalerState() (autoscaling.State, error) {
	text := ""
	if cm := s.ConfigMap(machine.Namespace, machine.ConfigMapStatus); cm != nil {
		text = cm.Data[autoscaling.StateKey]
	}
	return machine.Remembered(s.Records, autoscalerText(text), func() (autoscaling.State, error) { return autoscaling.ParseState(text) })
}

type autoscalerText string

// PodsOn returns the Pods bound to a Node, sorted.
func (s Snapshot) PodsOn(node string) []*corev1.Pod {
	var on []*corev1.Pod
	for _, p := range s.Pods {
		if p.Spec.NodeName == node {
			on = append(on, p)
		}
	}
	return on
}

// ClusterID returns the id that the instance of o is tagged with (SPEC S91): for a Machine that has one, or may have, that of
// the time when it was made, whatever the Infrastructure is called since; else the one for new instances, which is the
// Infrastructure's name where it exists (S79), or the cluster label of o.
func (s Snapshot) ClusterID(o plan.Object) string {
	if m, ok := o.(*machine.Machine); ok {
		if id, _ := s.Records.InstanceCluster(m); id != "" {
			return id
		}
	}
	return cmp.Or(s.InfrastructureName(), o.GetLabels()[machine.LabelCluster])
}

// OtherClusterID returns the id that the instance of m may be tagged with where it is not found by ClusterID, or "": nobody
// recorded which it was, and the Infrastructure has another name than m's label.
func (s Snapshot) OtherClusterID(m *machine.Machine) string {
	id, told := s.Records.InstanceCluster(m)
	if name := s.InfrastructureName(); id != "" && !told && name != id {
		return name
	}
	return ""
}

// InfrastructureName returns the cluster's name as far as an Infrastructure tells it.
func (s Snapshot) InfrastructureName() string {
	if i := find(s.Infrastructures, "", machine.InfrastructureName); i != nil {
		return i.Status.InfrastructureName
	}
	return ""
}

// ClusterUID returns the mark of this one cluster, which no other has, whatever its id: the UID of its namespace kube-system. Empty
// where that was not asked for.
func (s Snapshot) ClusterUID() types.UID {
	if n := find(s.Namespaces, "", machine.NamespaceSystem); n != nil {
		return n.UID
	}
	return ""
}

// VirtualIPs returns the addresses that move between the cluster's Nodes, sorted, where the Infrastructure tells them, and
// does not leave them to somebody's load balancer (SPEC E14).
func (s Snapshot) VirtualIPs() []string {
	i := find(s.Infrastructures, "", machine.InfrastructureName)
	if i == nil || i.Status.PlatformStatus == nil {
		return nil
	}
	all := moving(*i.Status.PlatformStatus)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(ip string) bool { return ip == "" })
}

// moving returns them as the platform's installer writes them: each has fields of its own, which say the same, and single ones, which older
// clusters have.
func moving(of configv1.PlatformStatus) []string {
	theirs := func(kind configv1.PlatformLoadBalancerType) bool { return kind == configv1.LoadBalancerTypeUserManaged }
	switch openstack, ovirt, vsphere, metal := of.OpenStack, of.Ovirt, of.VSphere, of.BareMetal; {
	case openstack != nil && !(openstack.LoadBalancer != nil && theirs(openstack.LoadBalancer.Type)):
		return slices.Concat(openstack.APIServerInternalIPs, openstack.IngressIPs, []string{openstack.APIServerInternalIP, openstack.IngressIP}) //nolint:staticcheck // the older form is read too
	case ovirt != nil && !(ovirt.LoadBalancer != nil && theirs(ovirt.LoadBalancer.Type)):
		return slices.Concat(ovirt.APIServerInternalIPs, ovirt.IngressIPs, []string{ovirt.APIServerInternalIP, ovirt.IngressIP}) //nolint:staticcheck // the older form is read too
	case vsphere != nil && !(vsphere.LoadBalancer != nil && theirs(vsphere.LoadBalancer.Type)):
		return slices.Concat(vsphere.APIServerInternalIPs, vsphere.IngressIPs, []string{vsphere.APIServerInternalIP, vsphere.IngressIP}) //nolint:staticcheck // the older form is read too
	case metal != nil && !(metal.LoadBalancer != nil && theirs(metal.LoadBalancer.Type)): // which hosts of libvirt are to an installer
		return slices.Concat(metal.APIServerInternalIPs, metal.IngressIPs, []string{metal.APIServerInternalIP, metal.IngressIP}) //nolint:staticcheck // the older form is read too
	}
	return nil
}

// find searches a sorted list.
func find[T plan.Object](all []T, namespace, name string) T {
	i, ok := search(all, namespace, name)
	if !ok {
		var none T
		return none
	}
	return all[i]
}
