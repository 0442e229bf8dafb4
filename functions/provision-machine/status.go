// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

type refusal = snapshot.Refusal

const (
	reasonInvalid      = machinev1beta1.InvalidConfigurationMachineError
	reasonInsufficient = machinev1beta1.InsufficientResourcesMachineError
	reasonCreate       = machinev1beta1.CreateMachineError
	reasonDelete       = machinev1beta1.DeleteMachineError
	reasonUnsupported  = machinev1beta1.UnsupportedChangeMachineError

	stateError   = "ERROR"   // instance-state of a Machine whose instance the cloud refused (S18)
	stateUnknown = "Unknown" // instance-state of a Failed Machine (B24)
)

// report writes the status of a Machine with its instance, or without one that was ever created, if it changed. Errors
// are cleared (B24), but not of an instance that the cloud was not asked about: nobody knows that they are over.
// lastUpdated moves with phase, addresses and providerStatus only (B25).
func (l life) report(to string, in *provider.Instance) plan.Sequence {
	next := new(*l.m) // no deeper: what follows replaces, and writes into nothing
	if in != nil || machine.ProviderID(l.m) == "" {
		next.Status.ErrorReason, next.Status.ErrorMessage = nil, nil
	}
	switch {
	case in != nil:
		l.shows(next, *in)
		l.set(next, machine.True(machine.ConditionCreated, machinev1beta1.MachineCreationSucceededConditionReason, ""))
		if in.State == provider.StateFailed {
			reason, message := reasonCreate, cmp.Or(in.Message, "the instance is in state "+in.CloudState)
			if in.Code == provider.Exhausted {
				reason = reasonInsufficient
			}
			next.Status.ErrorReason, next.Status.ErrorMessage = &reason, &message
		}
	case machine.ProviderID(l.m) == "":
		l.set(next, notThere())
	}
	return l.status(next, to, "")
}

// shows puts into next where the cloud shows its instance, and what it says of it.
func (l life) shows(next *machine.Machine, in provider.Instance) {
	next.Status.Addresses = in.Addresses
	if len(in.Status) > 0 {
		next.Status.ProviderStatus = &runtime.RawExtension{Raw: in.Status}
	}
	l.set(next, l.exists(in))
}

// notThere is the condition of a Machine for which the cloud shows nothing yet.
func notThere() machine.Condition {
	return machine.False(machine.ConditionInstanceExists, machinev1beta1.ConditionSeverityWarning,
		machinev1beta1.InstanceNotCreatedReason, "Instance has not been created")
}

// refused puts the recorded refusal into the status: final if the spec can never work, else retried (E2).
func (l life) refused() plan.Sequence {
	var code provider.Code
	if err := code.UnmarshalText([]byte(l.intent.Code)); err == nil && code == provider.Invalid {
		return l.fail(reasonInvalid, l.intent.Message)
	}
	next := l.m.DeepCopy()
	reason := reasonCreate
	if code == provider.Exhausted {
		reason = reasonInsufficient
	}
	next.Status.ErrorReason, next.Status.ErrorMessage = &reason, new(l.intent.Message)
	l.set(next, notCreated(l.refusal()))
	return l.status(next, phase(l.m), "refused")
}

// unreported reports whether the status does not show the recorded refusal yet.
func (l life) unreported() bool {
	shown := l.m.Status.ErrorMessage
	if l.intent.Message == "" {
		return false
	}
	if shown == nil || *shown != l.intent.Message {
		return true
	}
	c := machine.FindCondition(l.m.Status.Conditions, machine.ConditionCreated)
	return backsOff(l.Snapshot, l.m, l.intent) && (c == nil || c.Message != l.refusal())
}

// refusal is the recorded refusal, with the time of the next attempt if there is one.
func (l life) refusal() string {
	again := l.intent.NotBefore
	if again == nil {
		return l.intent.Message
	}
	return l.intent.Message + nextAttempt + machine.Stamp(again.Time) + ")"
}

// nextAttempt is what stands between a refusal and the time until which nothing is tried.
const nextAttempt = " (next attempt after "

// overtaken returns what m says of a refusal without the time of the next attempt, if that has come or the attempt was made.
func (l life) overtaken(m *machine.Machine) (string, bool) {
	c := machine.FindCondition(m.Status.Conditions, machine.ConditionCreated)
	if c == nil || backsOff(l.Snapshot, l.m, l.intent) {
		return "", false
	}
	what, _, timed := strings.Cut(c.Message, nextAttempt)
	return what, timed
}

// notCreated is the condition of a Machine that has no instance, and why.
func notCreated(why string) machine.Condition {
	return machine.False(machine.ConditionCreated, machinev1beta1.ConditionSeverityError,
		machinev1beta1.MachineCreationFailedConditionReason, why)
}

// fail ends the Machine: Failed is final, its set or its health check replaces it (B18, B21).
func (l life) fail(reason machinev1beta1.MachineStatusError, message string) plan.Sequence {
	return l.failAs(l.m.DeepCopy(), reason, message)
}

// failAs ends it with the conditions of next.
func (l life) failAs(next *machine.Machine, reason machinev1beta1.MachineStatusError, message string) plan.Sequence {
	next.Status.ErrorReason, next.Status.ErrorMessage = nil, &message
	next.Status.ProviderStatus = forgotten(next.Status.ProviderStatus)
	if reason != "" {
		next.Status.ErrorReason = &reason
	}
	if reason == reasonInvalid {
		l.set(next, notCreated(message))
	}
	seq := l.status(next, machine.PhaseFailed, message)
	if reason == reasonInvalid {
		seq.Notes = append(seq.Notes, l.warning("FailedCreate", message))
	}
	return seq
}

// forgotten returns a providerStatus that tells of no state any more, where it told of one (B24).
func forgotten(raw *runtime.RawExtension) *runtime.RawExtension {
	var status map[string]json.RawMessage
	if raw == nil || json.Unmarshal(raw.Raw, &status) != nil {
		return raw
	}
	for _, key := range []string{"instanceState", "vmState"} {
		if _, ok := status[key]; ok {
			status[key] = json.RawMessage(`"` + stateUnknown + `"`)
		}
	}
	text, err := json.Marshal(status)
	if err != nil { // it was read a moment ago
		return raw
	}
	return &runtime.RawExtension{Raw: text}
}

// markUnknown says on a Failed Machine that nobody follows its instance any more (B24).
func (l life) markUnknown() plan.Sequence {
	if l.m.Annotations[machine.AnnotationInstanceState] == stateUnknown {
		return plan.Sequence{}
	}
	next := l.m.DeepCopy()
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, machine.AnnotationInstanceState, stateUnknown)
	return l.update(next, "Failed is final")
}

// reportError writes that the cloud could not be asked; the phase stays (B19).
func (l life) reportError(message string) plan.Sequence {
	next := l.m.DeepCopy()
	l.set(next, unknown(message))
	l.keepWords(next)
	return l.status(next, phase(l.m), "the cloud cannot be asked")
}

// turn reports whether this scan may tell the Machine that its cloud does not answer: a scan tells about 20 of them, others
// every time, so that a cloud which was silent for a moment costs no write on every Machine, and another when it is back.
func (l life) turn() bool {
	const perScan = 20
	return l.inTurn((len(l.Machines)+perScan-1)/perScan, scanEvery)
}

// unknown is the condition of an instance that cannot be asked for.
func unknown(why string) machine.Condition {
	return machine.Condition{
		Type: machine.ConditionInstanceExists, Status: corev1.ConditionUnknown,
		Reason: machinev1beta1.ErrorCheckingProviderReason, Message: why,
	}
}

// status completes next with the phase, the hooks' conditions (B26) and lastUpdated, and writes it if it differs.
func (l life) status(next *machine.Machine, to, why string) plan.Sequence {
	st := &next.Status
	l.set(next, l.drainable())
	l.set(next, hooks(machine.ConditionTerminable, l.m.Spec.LifecycleHooks.PreTerminate))
	if c, shown := machine.PausedMachine(l.m); shown {
		l.set(next, c)
	}
	if what, timed := l.overtaken(next); timed {
		l.set(next, notCreated(what))
	}
	if to != "" {
		st.Phase = &to
	}
	old := l.m.Status
	if plan.Same(old, *st) {
		return plan.Sequence{}
	}
	if phase(l.m) != phase(next) || !plan.Same(old.Addresses, st.Addresses) ||
		!plan.Same(old.ProviderStatus, st.ProviderStatus) {
		now := metav1.NewTime(l.Now)
		st.LastUpdated = &now
	}
	if from := phase(l.m); from != phase(next) {
		why = strings.TrimSuffix(fmt.Sprintf("%s → %s: %s", cmp.Or(from, `""`), phase(next), why), ": ")
	}
	return plan.Sequence{Do: []plan.Action{plan.UpdateStatus{Old: l.m, New: next, Why: why}}}
}

func (l life) set(next *machine.Machine, c machine.Condition) {
	next.Status.Conditions = machine.SetCondition(next.Status.Conditions, c, l.Now)
}

// pause shows that another API has the say, or that people paused the Machine, and tells it once; nothing else happens (B7).
func (l life) pause() plan.Sequence {
	next := l.m.DeepCopy()
	c, _ := machine.PausedMachine(l.m)
	l.set(next, c)
	if plan.Same(l.m.Status, next.Status) {
		return plan.Sequence{}
	}
	return plan.Sequence{
		Do:    []plan.Action{plan.UpdateStatus{Old: l.m, New: next, Why: c.Message}},
		Notes: []plan.Note{plan.Normal(l.m, machine.ReasonPaused, c.Message)},
	}
}

// hooks returns the condition that says whether lifecycle hooks hold the Machine (B26).
func hooks(t machinev1beta1.ConditionType, hs []machinev1beta1.LifecycleHook) machine.Condition {
	if len(hs) == 0 {
		return machine.True(t, "", "")
	}
	var names []string
	for _, h := range hs {
		names = append(names, fmt.Sprintf("%s (owner %s)", h.Name, h.Owner))
	}
	return machine.False(t, machinev1beta1.ConditionSeverityWarning, machinev1beta1.MachineHookPresent, "waits for "+strings.Join(names, ", "))
}
