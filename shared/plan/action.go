// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Action is one side effect. The set is closed: the types of this file. Every action names what it saw, so that it
// fails instead of overwriting what somebody else did since (RELIABILITY G3).
//
//sumtype:decl
type Action interface {
	fmt.Stringer
	// Key identifies the action within one invocation.
	Key() Key
	action()
}

// Create creates Object under its own name. An object of that name is the outcome Exists.
type Create struct {
	Object Object
	Why    string
}

// Update changes Old, as it was observed, into New: a merge patch of metadata and spec at Old's resourceVersion.
// Status is not written. Old and New are never modified. Part names a smaller change that is tried at the same revision
// after a larger one was refused; it is empty for the only one, and for the first.
type Update struct {
	Old, New Object
	Why      string
	Part     string
}

// UpdateStatus is Update for the status subresource; metadata and spec are not written.
type UpdateStatus struct {
	Old, New Object
	Why      string
}

// Delete deletes Object if it still has the UID, and with IfUnchanged also the resourceVersion, that was observed.
// An object that is gone is the outcome Gone.
type Delete struct {
	Object      Object
	IfUnchanged bool
	Why         string
}

// Evict asks for the eviction of exactly this Pod, by UID. A disruption budget that does not allow it is the
// outcome Blocked. GraceSeconds nil means the Pod's own.
type Evict struct {
	Pod          *corev1.Pod
	GraceSeconds *int64
	Why          string
}

// Approve approves Request as it was observed, for the reason that stands in its condition. Approving what is approved
// changes nothing.
type Approve struct {
	Request *certificatesv1.CertificateSigningRequest
	Why     string
}

// CreateInstance makes the next step of creating an instance in Account. The claim that covers it must have been
// written earlier in the same sequence, or in an earlier round of the same invocation.
type CreateInstance struct {
	Account string
	Cluster string // the id under which the account was opened; empty where there is but one
	Ref     provider.Ref
	Request json.RawMessage
	Why     string
}

// DeleteInstance starts or continues the removal of an instance with all its children. One that is gone is the
// outcome Gone.
type DeleteInstance struct {
	Account string
	Cluster string // the id under which the account was opened; empty where there is but one
	Ref     provider.Ref
	Why     string
}

// UpdateInstance gives tags to an instance, in a cloud that can (provider.Updater). An instance that is gone is the
// outcome Gone.
type UpdateInstance struct {
	Account string
	Cluster string // the id under which the account was opened; empty where there is but one
	Ref     provider.Ref
	Tags    map[string]string
	Why     string
}

// PowerCycle powers an instance off and on, in a cloud that can (provider.PowerCycler). The claim that covers it must
// have been written earlier in the same sequence. With To it is one half of that: the instance is held off, or no longer
// (provider.PowerSwitch). An instance that is gone is the outcome Gone.
type PowerCycle struct {
	Account string
	Cluster string // the id under which the account was opened; empty where there is but one
	Ref     provider.Ref
	To      provider.Power
	Why     string
}

func (Create) action()         {}
func (Update) action()         {}
func (UpdateStatus) action()   {}
func (Delete) action()         {}
func (Evict) action()          {}
func (Approve) action()        {}
func (CreateInstance) action() {}
func (DeleteInstance) action() {}
func (UpdateInstance) action() {}
func (PowerCycle) action()     {}

// Key returns the object's name.
func (a Create) Key() Key { return Key("create " + NameOf(a.Object)) }

// Key returns the object's name and observed revision, with the part if it names one.
func (a Update) Key() Key {
	key := Key("update " + NameOf(a.Old) + "@" + a.Old.GetResourceVersion())
	if a.Part != "" {
		key += Key(" " + a.Part)
	}
	return key
}

// Key returns the object's name and observed revision.
func (a UpdateStatus) Key() Key {
	return Key("update status " + NameOf(a.Old) + "@" + a.Old.GetResourceVersion())
}

// Key returns the object's name and UID.
func (a Delete) Key() Key { return Key("delete " + NameOf(a.Object) + " " + string(a.Object.GetUID())) }

// Key returns the Pod's name and UID, with the Node that it leaves.
func (a Evict) Key() Key {
	return Key("evict " + NameOf(a.Pod) + " " + string(a.Pod.UID) + from(a.Pod.Spec.NodeName))
}

// from ends the keys of evictions, and no others.
func from(node string) string { return " from " + node }

// EvictionsFrom returns how many evictions from a Node were tried, whatever became of the Pods.
func EvictionsFrom(node string, tried map[Key]Outcome) int {
	n := 0
	for key := range tried {
		if strings.HasSuffix(string(key), from(node)) {
			n++
		}
	}
	return n
}

// Key returns the request's name and observed revision.
func (a Approve) Key() Key {
	return Key("approve " + NameOf(a.Request) + "@" + a.Request.ResourceVersion)
}

// Key returns the Machine's UID and the attempt's token.
func (a CreateInstance) Key() Key {
	return Key("create instance " + string(a.Ref.UID) + " " + a.Ref.Token)
}

// Key returns the Machine's UID and the instance's id, or the token of the attempt that alone is meant: what is said of that is said of
// nothing else.
func (a DeleteInstance) Key() Key {
	if a.Ref.Attempt {
		return Key("delete instance " + string(a.Ref.UID) + " of attempt " + a.Ref.Token)
	}
	return Key("delete instance " + string(a.Ref.UID) + " " + cmp.Or(a.Ref.ID, a.Ref.ProviderID))
}

// Key returns the Machine's UID and the instance's id.
func (a UpdateInstance) Key() Key {
	return Key("update instance " + string(a.Ref.UID) + " " + a.Ref.ID)
}

// Key returns the Machine's UID and the instance's id.
func (a PowerCycle) Key() Key {
	return Key(a.verb() + " instance " + string(a.Ref.UID) + " " + a.Ref.ID)
}

func (a PowerCycle) verb() string {
	switch a.To {
	case provider.PowerHeld:
		return "power off"
	case provider.PowerOn:
		return "power on"
	}
	return "power-cycle"
}

// String returns the name and the reason; what is created follows from the reason.
func (a Create) String() string { return "create " + NameOf(a.Object) + because(a.Why) }

// String returns the name, the reason and the fields that change.
func (a Update) String() string {
	return a.line() + changes(a.Old, a.New, false)
}

// String returns the name, the reason and the fields that change.
func (a UpdateStatus) String() string {
	return a.line() + changes(a.Old, a.New, true)
}

// String returns the name, whether the object has to be as it was seen, and the reason.
func (a Delete) String() string {
	s := "delete " + NameOf(a.Object)
	if a.IfUnchanged {
		s += " if unchanged"
	}
	return s + because(a.Why)
}

// String returns the name, the grace unless it is the Pod's own, and the reason.
func (a Evict) String() string {
	s := "evict " + NameOf(a.Pod)
	if a.GraceSeconds != nil {
		s += fmt.Sprintf(" within %d s", *a.GraceSeconds)
	}
	return s + because(a.Why)
}

// String returns the name and the reason.
func (a Approve) String() string { return "approve " + NameOf(a.Request) + because(a.Why) }

// String returns the Machine's name and the reason.
func (a CreateInstance) String() string { return "create instance " + a.Ref.Name + because(a.Why) }

// String returns the Machine's name, the id where known, and the reason.
func (a DeleteInstance) String() string {
	s := "delete instance " + a.Ref.Name
	if a.Ref.ID != "" {
		s += " " + a.Ref.ID
	}
	return s + because(a.Why)
}

// String returns the Machine's name, the tags and the reason.
func (a UpdateInstance) String() string {
	s := "update instance " + a.Ref.Name + because(a.Why)
	for _, name := range slices.Sorted(maps.Keys(a.Tags)) {
		s += fmt.Sprintf("\n    tags[%s]: %s", name, a.Tags[name])
	}
	return s
}

// String returns the Machine's name and the reason.
func (a PowerCycle) String() string { return a.verb() + " instance " + a.Ref.Name + because(a.Why) }

// Approved returns the request with the condition that approves it. When that was is for the server to say.
func (a Approve) Approved() *certificatesv1.CertificateSigningRequest {
	next := a.Request.DeepCopy()
	if !slices.ContainsFunc(next.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
	}) {
		next.Status.Conditions = append(next.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "MachineFound", Message: a.Why,
		})
	}
	return next
}

func (a Update) line() string { return "update " + NameOf(a.Old) + because(a.Why) }

func (a UpdateStatus) line() string { return "update status of " + NameOf(a.Old) + because(a.Why) }

// Line returns the first line of an action's text: all but the fields that it changes, which take long to find.
func Line(a Action) string {
	switch a := a.(type) {
	case Update:
		return a.line()
	case UpdateStatus:
		return a.line()
	case Create, Delete, Evict, Approve, CreateInstance, DeleteInstance, UpdateInstance, PowerCycle:
	}
	line, _, _ := strings.Cut(a.String(), "\n")
	return line
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

// Subject returns the object that an action is about, a change's as it was seen; nil if it is about an instance.
func Subject(a Action) Object {
	switch a := a.(type) {
	case Create:
		return a.Object
	case Update:
		return a.Old
	case UpdateStatus:
		return a.Old
	case Delete:
		return a.Object
	case Evict:
		return a.Pod
	case Approve:
		return a.Request
	case CreateInstance, DeleteInstance, UpdateInstance, PowerCycle:
	}
	return nil
}
