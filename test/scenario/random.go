// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Of so many worlds one has contents as long and odd as they can be; of twice as many one has such names.
const swells = 32

// epoch is when random worlds are looked at.
var epoch = time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)

// dice makes worlds. Names, ids and labels come from small pools, so that objects meet; records are good, broken or of
// another version.
type dice struct {
	*rand.Rand
	tail string // of the names of Machines, sets and Nodes
}

// Random returns a world that nobody designed: objects that contradict each other, records that cannot be read,
// clouds that fail. The same seed makes the same world.
func Random(seed uint64) Scenario {
	d := dice{rand.New(rand.NewPCG(seed, 1)), tailOf(seed)}
	s := Scenario{World: snapshot.Snapshot{Now: epoch, Request: d.request(), Invocation: "this-invocation", Served: []string{machine.Namespace, "n"}[:1+min(seed%4, 1)]}}
	for range d.IntN(5) {
		s.World.Add(d.machine())
	}
	for range d.IntN(5) {
		s.World.Add(d.node())
	}
	for range d.IntN(8) {
		s.World.Add(d.pod())
	}
	for range d.IntN(3) {
		s.World.Add(d.set(), d.check(), d.budget(), d.attachment(), d.claim())
		s.World.Add(d.legacyCheck(), d.remediation("Metal3RemediationTemplate"), d.remediation("Metal3Remediation"))
	}
	for _, name := range []string{machine.ConfigMapStatus, machine.ConfigMapSweep, machine.ConfigMapDisrupt, machine.ConfigMapUnhealthy} {
		if d.often() {
			s.World.Add(d.configMap(name))
		}
	}
	s.Accounts = map[string]snapshot.Account{"kubemark": d.account(), "other": d.account()}
	dice{rand.New(rand.NewPCG(seed, 2)), d.tail}.certify(&s.World) // of its own chance, so that the rest stays as it was
	if seed%swells == swells-1 {
		dice{rand.New(rand.NewPCG(seed, 3)), d.tail}.swell(&s)
	}
	return s
}

func (d dice) often() bool  { return d.IntN(4) > 0 }
func (d dice) rarely() bool { return d.IntN(4) == 0 }
func (d dice) ago() metav1.Time {
	return metav1.NewTime(epoch.Add(-time.Duration(d.IntN(3000)) * time.Second))
}
func (d dice) letter() string { return pick(d, "a", "b", "c", "d") }
func (d dice) name() string   { return "worker-" + d.tail + d.letter() }
func (d dice) named(record string) string {
	return strings.ReplaceAll(record, "worker-", "worker-"+d.tail)
}
func (d dice) providerID() string   { return pick(d, "", "x://"+d.letter()) }
func (d dice) status() string       { return pick(d, "True", "False", "Unknown") }
func (d dice) labels() labelsOrNone { return pick(d, nil, labelsOrNone{"app": d.letter()}) }

type labelsOrNone = map[string]string

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

func (d dice) request() snapshot.Request {
	kind := pick(d, "", "", "Machine", "Node", "MachineHealthCheck", "MachineSet")
	switch kind {
	case "":
		return snapshot.Request{}
	case "Node":
		return snapshot.Request{APIVersion: "v1", Kind: kind, Name: d.name()}
	}
	return snapshot.Request{APIVersion: "machine.openshift.io/v1beta1", Kind: kind, Namespace: machine.Namespace, Name: d.name()}
}

// meta returns the metadata of an object with its own UID and revision.
func (d dice) meta(namespace, name string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(name + pick(d, "", "", "-2")), ResourceVersion: fmt.Sprint(1 + d.IntN(1000)),
		CreationTimestamp: d.ago(), Labels: d.labels(),
	}
	if d.rarely() {
		t := d.ago()
		m.DeletionTimestamp, m.Finalizers = &t, []string{machine.Finalizer}
	}
	return m
}

func (d dice) annotate(m *metav1.ObjectMeta, key string, values ...string) {
	if d.rarely() {
		metav1.SetMetaDataAnnotation(m, key, d.named(pick(d, append(values, "", "broken", `{"schema":1}`, `{"schema":99}`)...)))
	}
}

func (d dice) machine() plan.Object {
	m := &machine.Machine{ObjectMeta: d.meta(machine.Namespace, d.name())}
	d.annotate(&m.ObjectMeta, machine.AnnotationExcludeDrain)
	d.annotate(&m.ObjectMeta, machine.AnnotationExternalRepair)
	d.annotate(&m.ObjectMeta, machine.AnnotationPreserve, "1h", "2026-01-01T11:00:00Z")
	d.annotate(&m.ObjectMeta, machine.AnnotationRemediatedBy, "machinehealthcheck/worker-a replace 2026-01-01T09:50:00Z", "machinehealthcheck/worker-b power-cycle 2026-01-01T09:50:00Z")
	d.annotate(&m.ObjectMeta, machine.AnnotationIntent,
		`{"schema":1,"attempt":1,"token":"`+machine.Token(m.UID, 1, "kubemark")+`","account":"kubemark","startedAt":"2026-01-01T09:00:00Z","outcome":"created"}`,
		`{"schema":1,"attempt":1,"token":"another-machines","account":"kubemark","startedAt":"2026-01-01T09:00:00Z"}`)
	if d.often() {
		set := d.name()
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: machinev1beta1.GroupVersion.String(), Kind: "MachineSet", Name: set, UID: types.UID(set), Controller: new(true)}}
	}
	if d.often() {
		m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{"kind":"x"}`)}
		m.Spec.ProviderID = new(d.providerID())
	}
	if d.rarely() {
		metav1.SetMetaDataLabel(&m.ObjectMeta, machine.LabelCluster, "c")
		m.Spec.AuthoritativeAPI = pick(d, "", machinev1beta1.MachineAuthorityClusterAPI)
	}
	d.annotate(&m.ObjectMeta, machine.AnnotationDrainTimeout, "1h", "10m", "-1s")
	if d.rarely() {
		m.Spec.Labels, m.Spec.Taints = d.labels(), []corev1.Taint{{Key: "k", Effect: "NoSchedule"}}
		m.Spec.LifecycleHooks.PreDrain = []machinev1beta1.LifecycleHook{{Name: "Hook", Owner: "me"}}
	}
	m.Status.Phase = pick(d, nil, new(machine.PhaseProvisioned), new(machine.PhaseRunning), new(machine.PhaseDeleting), new(machine.PhaseFailed))
	if m.DeletionTimestamp != nil && d.often() {
		m.Status.Phase = new(machine.PhaseDeleting)
	}
	m.Status.Addresses = d.addresses()
	if d.often() {
		node := d.name()
		m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: node, UID: types.UID(node)}
		m.Status.LastUpdated = new(d.ago())
	}
	for _, t := range []machinev1beta1.ConditionType{machine.ConditionDrained, machine.ConditionHealthy} {
		if d.rarely() {
			m.Status.Conditions = append(m.Status.Conditions, machine.Condition{Type: t, Status: corev1.ConditionStatus(d.status()), LastTransitionTime: d.ago()})
		}
	}
	return m
}

func (d dice) addresses() []corev1.NodeAddress {
	return pick(d, nil, []corev1.NodeAddress{{Type: pick(d, corev1.NodeInternalIP, corev1.NodeHostName), Address: "10.0.0." + fmt.Sprint(d.IntN(3))}})
}

func (d dice) node() plan.Object {
	n := &corev1.Node{ObjectMeta: d.meta("", d.name())}
	d.annotate(&n.ObjectMeta, machine.AnnotationMachine, machine.Namespace+"/"+d.name(), "../..", "a/b/c")
	n.Spec.ProviderID, n.Spec.Unschedulable, n.Status.Addresses = d.providerID(), d.rarely(), d.addresses()
	if d.rarely() {
		metav1.SetMetaDataLabel(&n.ObjectMeta, machine.LabelMaster, "")
	}
	if d.rarely() {
		n.Spec.Unschedulable = true
		n.Spec.Taints = []corev1.Taint{{Key: machine.TaintToBeDeleted, Value: pick(d, "plan-1", "plan-2"), Effect: "NoSchedule"}}
	}
	if d.often() {
		n.Status.Conditions = []corev1.NodeCondition{{Type: "Ready", Status: corev1.ConditionStatus(d.status()), LastTransitionTime: d.ago()}}
	}
	return n
}

func (d dice) pod() plan.Object {
	p := &corev1.Pod{ObjectMeta: d.meta("default", "pod-"+d.letter()+d.letter())}
	p.Spec.NodeName = pick(d, "", d.name(), d.name())
	p.Spec.TerminationGracePeriodSeconds = pick(d, nil, new(int64(30)))
	p.Status.Phase = pick(d, "", corev1.PodRunning, corev1.PodSucceeded)
	d.annotate(&p.ObjectMeta, corev1.MirrorPodAnnotationKey)
	if d.rarely() {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: pick(d, "DaemonSet", "ReplicaSet"), Name: "x", Controller: new(true)}}
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim-" + d.letter()}}}}
	}
	return p
}

func (d dice) set() plan.Object {
	s := &machine.MachineSet{ObjectMeta: d.meta(machine.Namespace, d.name())}
	s.Spec.Replicas = pick(d, nil, new(int32(d.IntN(4))))
	s.Status.ReadyReplicas = int32(d.IntN(4))
	s.Spec.DeletePolicy = pick(d, "", "Newest", "Oldest", "Random")
	if d.often() { // else it selects nothing, or everything
		s.Spec.Template.Labels = labelsOrNone{"app": d.letter()}
		s.Spec.Selector.MatchLabels = s.Spec.Template.Labels
	}
	if d.rarely() {
		s.Spec.AuthoritativeAPI = pick(d, machinev1beta1.MachineAuthorityClusterAPI, machinev1beta1.MachineAuthorityMachineAPI)
	}
	d.annotate(&s.ObjectMeta, machine.AnnotationLedger, fmt.Sprintf(`{"schema":1,"setUID":%q,"next":3,"active":"0-1"}`, s.UID),
		fmt.Sprintf(`{"schema":1,"setUID":%q,"next":2,"active":"1","adopted":{"1":{"name":"worker-a","uid":"worker-a"}}}`, s.UID))
	d.annotate(&s.ObjectMeta, machine.AnnotationVictims, `[{"name":"worker-b","uid":"worker-b","plan":"plan-1"}]`)
	return s
}

func (d dice) selector() *metav1.LabelSelector {
	return pick(d, nil, &metav1.LabelSelector{MatchLabels: d.labels()},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Broken"}}})
}

func (d dice) check() plan.Object {
	h := &machine.MachineHealthCheck{ObjectMeta: d.meta(machine.Namespace, d.name())}
	if sel := d.selector(); sel != nil {
		h.Spec.Selector = *sel
	}
	d.annotate(&h.ObjectMeta, machine.AnnotationPaused)
	d.annotate(&h.ObjectMeta, machine.AnnotationStrategy, "external-baremetal")
	d.annotate(&h.ObjectMeta, machine.AnnotationInFlight, records...)
	d.annotate(&h.ObjectMeta, machine.AnnotationMaxInFlight, "1", "100%", "100%")
	d.annotate(&h.ObjectMeta, machine.AnnotationSteps, "power-cycle=5m,replace", "power-cycle=1h,template=1m,replace")
	d.annotate(&h.ObjectMeta, machine.AnnotationStormCooldown, "0s", "1h")
	d.annotate(&h.ObjectMeta, machine.AnnotationHealthyDelay, "5m")
	if d.rarely() {
		h.Spec.RemediationTemplate = &corev1.ObjectReference{APIVersion: pick(d, "infrastructure.cluster.x-k8s.io/v1beta1", "v1"), Kind: "Metal3RemediationTemplate", Name: d.name()}
	}
	h.Spec.MaxUnhealthy = pick(d, nil, new(intstr.FromInt32(int32(d.IntN(4)-1))), new(intstr.FromString(pick(d, "40%", "100%", "many"))))
	h.Spec.NodeStartupTimeout = pick(d, nil, &metav1.Duration{Duration: time.Duration(d.IntN(3)) * 5 * time.Minute})
	h.Spec.UnhealthyConditions = []machinev1beta1.UnhealthyCondition{
		{Type: "Ready", Status: corev1.ConditionStatus(d.status()), Timeout: metav1.Duration{Duration: time.Duration(d.IntN(20)) * time.Minute}},
	}
	return h
}

// records are what a MachineHealthCheck remembers.
var records = []string{
	`{"schema":1,"inFlight":[{"machine":"worker-a","uid":"worker-a","set":"worker-a","at":"2026-01-01T09:50:00Z"}],"seen":{"worker-b":{"what":"NodeNotFound","at":"2026-01-01T09:50:00Z"}}}`,
	`{"schema":1,"inFlight":[{"machine":"worker-b","uid":"worker-b","at":"2026-01-01T09:50:00Z","step":1}],"failing":{"worker-a":{"count":0,"at":"2026-01-01T09:50:00Z"}}}`,
	`{"schema":1,"storm":{"since":"2026-01-01T09:00:00Z","over":"2026-01-01T09:56:00Z"}}`,
}

func (d dice) legacyCheck() plan.Object {
	h := &machine.LegacyHealthCheck{ObjectMeta: d.meta(machine.Namespace, d.name())}
	d.annotate(&h.ObjectMeta, machine.AnnotationInFlight, records...)
	return h
}

// remediation is a template for requests, or a request.
func (d dice) remediation(kind string) plan.Object {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta1")
	u.SetKind(kind)
	m := d.meta(machine.Namespace, d.name())
	u.SetNamespace(m.Namespace)
	u.SetName(m.Name)
	u.SetUID(m.UID)
	u.SetResourceVersion(m.ResourceVersion)
	if d.often() {
		u.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Machine", Name: m.Name, UID: types.UID(m.Name)}})
		u.SetAnnotations(map[string]string{machine.AnnotationRemediatedBy: "machinehealthcheck/" + d.name() + " template 2026-01-01T09:50:00Z"})
		_ = unstructured.SetNestedField(u.Object, map[string]any{"strategy": "reboot"}, "spec", "template", "spec") // nothing is in its way
	}
	return u
}

func (d dice) budget() plan.Object {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: d.meta("default", "budget-"+d.letter())}
	b.Spec.Selector, b.Status.DisruptionsAllowed = d.selector(), int32(d.IntN(2))
	return b
}

func (d dice) attachment() plan.Object {
	a := &storagev1.VolumeAttachment{ObjectMeta: d.meta("", "attachment-"+d.letter())}
	a.Spec.NodeName, a.Spec.Source.PersistentVolumeName = d.name(), pick(d, nil, new("volume-"+d.letter()))
	return a
}

func (d dice) claim() plan.Object {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: d.meta("default", "claim-"+d.letter())}
	c.Spec.VolumeName = "volume-" + d.letter()
	return c
}

func (d dice) configMap(name string) plan.Object {
	cm := &corev1.ConfigMap{ObjectMeta: d.meta(machine.Namespace, name)}
	cm.DeletionTimestamp, cm.Finalizers = nil, nil
	d.annotate(&cm.ObjectMeta, "machine.openshift.io/sweep-confirmed", "2026-01-01T09:59:00Z")
	cm.Data = pick(d, nil, map[string]string{
		"state": pick(d, "", "broken", `{"schema":1}`, `{"schema":99}`,
			`{"schema":1,"removals":[{"plan":"plan-1","group":"g","node":"worker-a","nodeUID":"worker-a","machine":"m","machineUID":"u","at":"2026-01-01T09:59:00Z","drain":true,"maxGrace":10}]}`,
			`{"schema":1,"accounts":{"other":{"namespace":"n","clusterID":"c","spec":{}}},"sightings":{"other i-0":"2026-01-01T09:00:00Z","kubemark i-1":"2026-01-01T09:00:00Z"}}`),
		"deletions": pick(d, "", "", "broken", `{"schema":99}`,
			`{"schema":1,"slots":[{"namespace":"openshift-machine-api","machine":"worker-a","uid":"worker-a","by":"remediate","at":"2026-01-01T09:50:00Z"}]}`),
		"max-at-once":   pick(d, "1", "10%", "100", "many"),
		"conditions":    "items: [{name: Ready, timeout: 30s, status: " + pick(d, "False", "Unknown", "maybe") + "}]",
		"control-plane": pick(d, "", "broken", `{"schema":1,"namespace":"`+machine.Namespace+`","name":"worker-a","uid":"worker-a"}`),
	})
	return cm
}

func (d dice) account() snapshot.Account {
	a := snapshot.Account{Horizon: time.Duration(d.IntN(20)) * time.Minute}
	if d.rarely() {
		a.Err = &snapshot.Refusal{Code: provider.Denied, Message: "no"}
		return a
	}
	for i := range d.IntN(7) {
		a.Instances = append(a.Instances, provider.Instance{
			ID: fmt.Sprint("i-", i), ProviderID: d.providerID(), UID: types.UID(pick(d, "", "gone", d.name())), Name: d.name(),
			State: pick(d, provider.StateRunning, provider.StateDeleting, provider.StateFailed), Created: d.ago().Time, Child: d.rarely(),
		})
	}
	return a
}
