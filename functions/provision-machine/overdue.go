// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"cmp"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// longRemoval is how long a removal that the cloud accepted takes without a word: virtual instances are gone within a minute
// or two, a host whose disks are cleaned takes longer, and one whose BMC is dead takes for ever.
const longRemoval = 10 * time.Minute

// briefRemoval is how long the states of a removal are not shown: most are over by then, and cost no Machine a write.
const briefRemoval = time.Minute

// removing returns since when nothing but the cloud holds a deleted Machine: its Node is drained, and no hook waits. It is
// now until the conditions say so.
func (l life) removing() time.Time {
	since := l.m.DeletionTimestamp.Time
	for _, t := range []machinev1beta1.ConditionType{machine.ConditionDrained, machine.ConditionTerminable} {
		c := machine.FindCondition(l.m.Status.Conditions, t)
		if c == nil || c.Status != corev1.ConditionTrue {
			return l.Now
		}
		if at := c.LastTransitionTime.Time; at.After(since) {
			since = at
		}
	}
	return since
}

// fading shows what the cloud calls the state of an instance that takes a while to go, instead of what it was before (S18, E10).
func (l life) fading() plan.Sequence {
	if l.Now.Before(l.removing().Add(briefRemoval)) {
		return plan.Sequence{}
	}
	for _, in := range l.cloud.Found {
		if in.Child || !machine.SameID(in.ProviderID, machine.ProviderID(l.m)) {
			continue
		}
		if in.CloudState != "" && l.m.Annotations[machine.AnnotationInstanceState] != in.CloudState {
			next := l.m.DeepCopy()
			metav1.SetMetaDataAnnotation(&next.ObjectMeta, machine.AnnotationInstanceState, in.CloudState)
			if seq := l.update(next, "the instance is "+in.CloudState); !l.isRefused(seq.Do[0]) {
				return seq
			}
		}
		if len(in.Status) > 0 {
			next := l.m.DeepCopy()
			next.Status.ProviderStatus = &runtime.RawExtension{Raw: in.Status}
			return l.status(next, machine.PhaseDeleting, "the instance is "+in.CloudState)
		}
	}
	return plan.Sequence{}
}

// overdue returns why a removal that takes too long is not over, in the cloud's words, be it that of the instance or of what that left; empty
// if it does not, or if nobody asked the cloud how far it is (R-L2, 2b.9).
func (l life) overdue() string {
	since := l.removing()
	if l.Now.Before(since.Add(longRemoval)) {
		return ""
	}
	if len(l.cloud.Found) == 0 {
		return ""
	}
	in, what, it := l.cloud.Found[0], "the instance", "it"
	if n := slices.IndexFunc(l.cloud.Found, func(in provider.Instance) bool { return !in.Child }); n >= 0 {
		in = l.cloud.Found[n]
	} else {
		in = slices.MinFunc(l.cloud.Found, func(a, b provider.Instance) int { return cmp.Compare(a.ID, b.ID) })
		what, it = "what the instance left", in.ID
	}
	why := "the cloud has been removing " + what + " since " + machine.Stamp(since) + ", " + it
	if state := cmp.Or(in.CloudState, string(in.State)); state != "" {
		why += " is in state " + state
	} else { // as of what cannot run
		why += " is there"
	}
	if in.Message != "" {
		why += ": " + in.Message
	}
	return why
}

// slow says on the Machine that its removal takes too long, and nothing before that.
func (l life) slow() plan.Sequence {
	why := l.overdue()
	c := machine.FindCondition(l.m.Status.Conditions, machine.ConditionInstanceExists)
	if why == "" || c != nil && c.Message == why {
		return plan.Sequence{}
	}
	next := l.m.DeepCopy()
	next.Status.ErrorReason, next.Status.ErrorMessage = nil, nil
	l.set(next, machine.True(machine.ConditionInstanceExists, string(reasonDelete), why))
	seq := l.status(next, machine.PhaseDeleting, why)
	seq.Notes = append(seq.Notes, l.warning("FailedDelete", why))
	return seq
}
