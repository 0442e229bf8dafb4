// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/sim"
)

var (
	deletesMachines   = ofMachines(alive, deleteMachine)
	deletesRecorded   = ofInstances(func(s snapshot.Snapshot, m *machine.Machine) bool { return alive(s, m) && m.Spec.ProviderID != nil })
	deletesUnrecorded = ofInstances(func(s snapshot.Snapshot, m *machine.Machine) bool {
		return alive(s, m) && m.Spec.ProviderID == nil && m.Annotations[machine.AnnotationIntent] != ""
	})
	deletesUndrained = ofInstances(func(s snapshot.Snapshot, m *machine.Machine) bool { return !alive(s, m) })
	deletesHeld      = ofInstances(func(s snapshot.Snapshot, m *machine.Machine) bool { return !alive(s, m) && machine.Drained(m) })
	renames          = ofMachines(func(s snapshot.Snapshot, m *machine.Machine) bool { return alive(s, m) && m.Spec.ProviderID != nil },
		func(_ snapshot.Snapshot, m *machine.Machine) plan.Action {
			c := m.DeepCopy()
			c.Spec.ProviderID = new("memory:///another")
			return plan.Update{Old: m, New: c, Why: "a mistake"}
		})
	restless = ofMachines(func(s snapshot.Snapshot, m *machine.Machine) bool { return alive(s, m) && s.Request.Scan() }, func(s snapshot.Snapshot, m *machine.Machine) plan.Action {
		c := m.DeepCopy()
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, "looked-at", machine.Stamp(s.Now))
		return plan.Update{Old: m, New: c, Why: "a mistake"}
	})
	storesBriefly = ofMachines(func(s snapshot.Snapshot, m *machine.Machine) bool { return !alive(s, m) && m.Annotations["said"] == "" },
		func(_ snapshot.Snapshot, m *machine.Machine) plan.Action {
			c := m.DeepCopy()
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, "said", "https://user:"+sim.Canary+"@cloud")
			return plan.Update{Old: m, New: c, Why: "a mistake"}
		})
)

// makesNobodys makes instances for a Machine that is not there.
func makesNobodys(f function.Function) function.Function {
	return each(f, func(_ snapshot.Snapshot, a plan.Action) plan.Action {
		if c, creates := a.(plan.CreateInstance); creates {
			c.Ref.UID = "nobody"
			return c
		}
		return a
	})
}

// recordsFirst records what the instance is going to be before it makes it.
func recordsFirst(f function.Function) function.Function {
	return planned(f, func(_ snapshot.Snapshot, p plan.Plan) plan.Plan {
		for i, seq := range p.Do {
			n := len(seq.Do) - 1
			if _, creates := seq.Do[n].(plan.CreateInstance); !creates || n < 1 {
				continue
			}
			if claim, is := seq.Do[n-1].(plan.Update); is {
				m, _ := claim.New.DeepCopyObject().(*machine.Machine)
				m.Spec.ProviderID = new("memory:///soon")
				claim.New = m
				p.Do[i].Do = slices.Clone(seq.Do)
				p.Do[i].Do[n-1] = claim
			}
		}
		return p
	})
}

// holds holds every Machine by a hook.
var holds = ofMachines(func(s snapshot.Snapshot, m *machine.Machine) bool {
	return alive(s, m) && len(m.Spec.LifecycleHooks.PreTerminate) == 0
},
	func(_ snapshot.Snapshot, m *machine.Machine) plan.Action {
		c := m.DeepCopy()
		c.Spec.LifecycleHooks.PreTerminate = []machinev1beta1.LifecycleHook{{Name: "backup", Owner: "people"}}
		return plan.Update{Old: m, New: c, Why: "a mistake"}
	})

func keepsFinalizers(f function.Function) function.Function {
	return without(f, func(a plan.Action) bool {
		old, now, is := updated[plan.Object](a)
		return is && len(now.GetFinalizers()) < len(old.GetFinalizers())
	})
}

// keepsTwins removes no instance of a Machine that stays.
func keepsTwins(f function.Function) function.Function {
	return planned(f, func(s snapshot.Snapshot, p plan.Plan) plan.Plan {
		return without(function.Function{Decide: func(snapshot.Snapshot) plan.Plan { return p }}, func(a plan.Action) bool {
			d, deletes := a.(plan.DeleteInstance)
			return deletes && slices.ContainsFunc(s.Machines, func(m *machine.Machine) bool { return m.Name == d.Ref.Name && alive(s, m) })
		}).Decide(s)
	})
}

// neverFails does not say of a Machine that it failed.
func neverFails(f function.Function) function.Function {
	return without(f, func(a plan.Action) bool {
		u, _ := a.(plan.UpdateStatus)
		m, is := u.New.(*machine.Machine)
		return is && machine.Phase(m) == machine.PhaseFailed
	})
}

// createsBlindly repeats an attempt while the cloud does not say what became of it, createsAgain whatever it says.
var (
	createsBlindly = repeats(func(s snapshot.Snapshot, m *machine.Machine) bool { return s.Clouds[m.UID].Err != nil })
	createsAgain   = repeats(func(snapshot.Snapshot, *machine.Machine) bool { return true })
)

func repeats(like func(snapshot.Snapshot, *machine.Machine) bool) mistake {
	return ofMachines(func(s snapshot.Snapshot, m *machine.Machine) bool {
		i, _ := machine.ParseIntent(m)
		return alive(s, m) && m.Spec.ProviderID == nil && i.Called() && like(s, m)
	}, repeatAttempt)
}

func repeatAttempt(s snapshot.Snapshot, m *machine.Machine) plan.Action {
	i, _ := machine.ParseIntent(m)
	of := s.Clouds[m.UID]
	return plan.CreateInstance{
		Account: of.Account, Cluster: of.Cluster, Ref: provider.Ref{UID: m.UID, Name: m.Name}, Request: i.Request, Why: "a mistake",
	}
}

// attempted changes what is written of an attempt that was recorded before.
func attempted(change func(m *machine.Machine, was, now machine.Intent) machine.Intent) mistake {
	return written(func(old, now *machine.Machine) {
		was, _ := machine.ParseIntent(old)
		i, _ := machine.ParseIntent(now)
		if was != nil && i != nil && was.Called() {
			now.Annotations[machine.AnnotationIntent] = change(now, *was, *i).String()
		}
	})
}

var (
	changesRequests = attempted(func(_ *machine.Machine, _, i machine.Intent) machine.Intent {
		i.Request = json.RawMessage(`{"type":"another"}`)
		return i
	})
	countsAnew = attempted(func(m *machine.Machine, was, i machine.Intent) machine.Intent {
		if was.Attempt > 1 {
			i.Attempt, i.Token = 1, machine.Token(m.UID, 1, i.Account)
		}
		return i
	})
)

// forgetsAttempts drops the record of each attempt that was refused.
var forgetsAttempts = written(func(_, now *machine.Machine) {
	if i, _ := machine.ParseIntent(now); i != nil && i.Outcome == machine.OutcomeRefused {
		delete(now.Annotations, machine.AnnotationIntent)
	}
})
