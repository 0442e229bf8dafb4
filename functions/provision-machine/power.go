// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"cmp"
	"strings"
	"time"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// cycleAgain is when a power-cycle that was not answered, or refused, is asked for again.
const cycleAgain = time.Minute

// powerCycle carries out the wish of annotation machine.AnnotationExternalRepair where the cloud can (SPEC B57, D17). Where
// instances can be held off that is a row of steps; elsewhere one call. It
// claims the wish first, in the annotation's value, so that of several invocations one asks the cloud; when the cloud
// has accepted, the wish is taken away. Where the cloud cannot, it is left to whoever runs the host.
func (l life) powerCycle() plan.Sequence {
	in := l.in
	switch {
	case in == nil:
		return plan.Sequence{}
	case in.Power != "" || machine.Restarting(l.m):
		return l.restart()
	case !wantsPowerCycle(l.m) || !l.cloud.Cycles:
		return plan.Sequence{}
	}
	a := plan.PowerCycle{Account: l.cloud.Account, Cluster: l.cloud.Cluster, Why: "as " + machine.AnnotationExternalRepair + " wishes"}
	a.Ref = l.refOf(*in)
	if o, tried := l.Outcome(a); tried {
		if o.Result != plan.Done { // asked again when the claim is over
			return l.tell("FailedPowerCycle", cmp.Or(o.Message, "there is no such instance"))
		}
		next := l.m.DeepCopy()
		delete(next.Annotations, machine.AnnotationExternalRepair)
		seq := l.update(next, "instance "+in.ID+" is power-cycled")
		seq.Notes = []plan.Note{l.normal("PowerCycle", "Power-cycled instance "+in.ID)}
		return seq
	}
	return l.underClaim(a)
}

// underClaim does something to the power of the instance that the wish asks for, unless another invocation is about to.
func (l life) underClaim(a plan.PowerCycle) plan.Sequence {
	if l.Now.Before(l.claimedUntil()) {
		return plan.Sequence{}
	}
	next := l.m.DeepCopy()
	next.Annotations[machine.AnnotationExternalRepair] = l.claim()
	delete(next.Annotations, machine.AnnotationPoweredOff) // of the wish before
	return plan.Sequence{Do: []plan.Action{plan.Update{Old: l.m, New: next, Why: "claim the power-cycle"}, a}}
}

func (l life) claim() string {
	return l.Invocation + claimUntil + machine.Stamp(l.Now.Add(cycleAgain))
}

// taken reports that the wish was claimed once: people's next one, which they write over it, was not.
func taken(m *machine.Machine) bool {
	return strings.Contains(m.Annotations[machine.AnnotationExternalRepair], claimUntil)
}

// claimedUntil returns when the claim of a wish is, or was, over; zero if there is none that a right clock can have written.
func (l life) claimedUntil() time.Time {
	_, until, _ := strings.Cut(l.m.Annotations[machine.AnnotationExternalRepair], claimUntil)
	t, err := time.Parse(time.RFC3339, until)
	if err != nil || machine.TooFar(t, l.Now, cycleAgain) {
		return time.Time{}
	}
	return t
}

// claimUntil stands in the value of the annotation between the invocation that claims the wish and the claim's end.
const claimUntil = " until "

func wantsPowerCycle(m *machine.Machine) bool {
	_, wanted := m.Annotations[machine.AnnotationExternalRepair]
	return wanted
}
