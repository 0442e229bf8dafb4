// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/sim"
)

var (
	deletesSets = rogue(func(s snapshot.Snapshot) (all []plan.Action) {
		for _, set := range s.MachineSets {
			all = append(all, plan.Delete{Object: set, Why: "a mistake"})
		}
		return all
	})
	scales = rogue(func(s snapshot.Snapshot) (all []plan.Action) {
		for _, set := range s.MachineSets {
			c := set.DeepCopy()
			c.Spec.Replicas = new(int32(3))
			if *set.Spec.Replicas != 3 {
				all = append(all, plan.Update{Old: set, New: c, Why: "a mistake"})
			}
		}
		return all
	}, "MachineSet")
	createsAfterRebuild = afterRebuild(func(_ snapshot.Snapshot, set *machine.MachineSet) plan.Action {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name + "-extra", Labels: set.Spec.Template.Labels}}
		return plan.Create{Object: m, Why: "a mistake"}
	})
	deletesAfterRebuild = afterRebuild(func(s snapshot.Snapshot, _ *machine.MachineSet) plan.Action {
		if len(s.Machines) == 0 {
			return nil
		}
		return deleteMachine(s, s.Machines[0])
	})
)

// afterRebuild goes on in the invocation that rebuilt a ledger.
func afterRebuild(do func(snapshot.Snapshot, *machine.MachineSet) plan.Action) mistake {
	return rogue(func(s snapshot.Snapshot) []plan.Action {
		for _, set := range s.MachineSets {
			l, err := machine.ParseLedger(set.Annotations[machine.AnnotationLedger])
			if err != nil || l.Rebuilt != s.Invocation {
				continue
			}
			if a := do(s, set); a != nil {
				return []plan.Action{a}
			}
		}
		return nil
	}, "Machine")
}

// committed changes what is written of ledgers.
func committed(change func(was machine.Ledger, now *machine.Ledger)) mistake {
	return written(func(old, now *machine.MachineSet) {
		was, _ := machine.ParseLedger(old.Annotations[machine.AnnotationLedger])
		l, err := machine.ParseLedger(now.Annotations[machine.AnnotationLedger])
		if err == nil && l.Rebuilt == "" {
			change(was, &l)
			now.Annotations[machine.AnnotationLedger] = l.String()
		}
	})
}

var (
	writesNonsense = written(func(_, now *machine.MachineSet) { now.Annotations[machine.AnnotationLedger] = "{" })
	generous       = committed(func(was machine.Ledger, now *machine.Ledger) {
		if now.Next > was.Next {
			now.Active, now.Next = now.Active.With(now.Next), now.Next+1
		}
	})
	revives = committed(func(_ machine.Ledger, now *machine.Ledger) {
		for k := range now.Next {
			if !now.Active.Has(k) {
				now.Active = now.Active.With(k)
				return
			}
		}
	})
	forgetsRetired = committed(func(_ machine.Ledger, now *machine.Ledger) {
		now.Next = 0
		if n := len(now.Active); n > 0 {
			now.Next = now.Active[n-1] + 1
		}
		clear(now.Adopted)
	})
	// churns has a new Machine in the place of one that is well.
	churns = committed(func(was machine.Ledger, now *machine.Ledger) {
		at := slices.IndexFunc(now.Active, was.Active.Has)
		if at < 0 || len(now.Active) < 2 {
			return
		}
		delete(now.Adopted, now.Active[at])
		now.Active, now.Next = now.Active.Without(now.Active[at]).With(now.Next), now.Next+1
	})
	// overshoots retires all where some are too many.
	overshoots = committed(func(was machine.Ledger, now *machine.Ledger) {
		if len(now.Active) < len(was.Active) {
			now.Active = nil
			clear(now.Adopted)
		}
	})
	beyondBounds = resized(func(_, to int32) int32 { return to + 4 })
	growsTwice   = resized(func(_, to int32) int32 { return min(4, to+1) })
	neverShrinks = func(f function.Function) function.Function {
		return without(f, func(a plan.Action) bool {
			old, now, is := updated[*machine.MachineSet](a)
			return is && *now.Spec.Replicas < *old.Spec.Replicas
		})
	}
)

// resized makes another number of a set that grows.
func resized(to func(from, to int32) int32) mistake {
	return written(func(old, now *machine.MachineSet) {
		if from := *old.Spec.Replicas; *now.Spec.Replicas > from {
			now.Spec.Replicas = new(to(from, *now.Spec.Replicas))
		}
	})
}

// buysForThoseThatAreGone has as many Pods wait, where one does, as there ever were.
func buysForThoseThatAreGone(f function.Function) function.Function {
	most := 0
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		most = max(most, len(s.Pods))
		at := slices.IndexFunc(s.Pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == "" })
		if at < 0 {
			return s
		}
		next := s.Clone()
		for i := len(s.Pods); i < most; i++ {
			p := s.Pods[at].DeepCopy()
			p.Name += fmt.Sprint("-gone-", i)
			next.Pods = append(next.Pods, p)
		}
		return next
	})
}

// buysForThoseThatGo has as many Pods more wait, where one does, as Machines that go have a Node that is not Ready: their set makes
// others in their place anyway (R-B21).
func buysForThoseThatGo(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		at := slices.IndexFunc(s.Pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == "" })
		for _, m := range s.Machines {
			if at < 0 || m.DeletionTimestamp == nil || m.Status.NodeRef == nil {
				continue
			}
			if n := s.Node(m.Status.NodeRef.Name); n != nil && !machine.NodeReady(n) {
				p := s.Pods[at].DeepCopy()
				p.Name += "-" + m.Name
				next.Pods = append(next.Pods, p)
			}
		}
		return next
	})
}

// oneMore wants one replica more than people do, and does not write that.
func oneMore(f function.Function) function.Function {
	return written(func(old, now *machine.MachineSet) {
		*old.Spec.Replicas--
		*now.Spec.Replicas--
	})(seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return sets(s, func(set *machine.MachineSet) { *set.Spec.Replicas++ })
	}))
}

func withoutFinalizer(f function.Function) function.Function {
	return each(f, func(_ snapshot.Snapshot, a plan.Action) plan.Action {
		if c, creates := a.(plan.Create); creates {
			c.Object, _ = c.Object.DeepCopyObject().(plan.Object)
			c.Object.SetFinalizers(nil)
			return c
		}
		return a
	})
}

// revivesSets does not see that a set is being deleted.
func revivesSets(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return sets(s, func(set *machine.MachineSet) { set.DeletionTimestamp = nil })
	})
}

// replans changes a set for the plan that changed it last.
var replans = written(func(old, now *machine.MachineSet) {
	if last := old.Annotations[machine.AnnotationLastPlan]; last != "" && *old.Spec.Replicas != *now.Spec.Replicas {
		now.Annotations[machine.AnnotationLastPlan] = last
	}
})

// overwritesNewer does not know that there are ledgers of a newer version.
func overwritesNewer(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return sets(s, func(set *machine.MachineSet) {
			if strings.HasPrefix(set.Annotations[machine.AnnotationLedger], `{"schema":2`) {
				delete(set.Annotations, machine.AnnotationLedger)
			}
		})
	})
}

// unserves lets people spoil what the set selects.
func unserves(c *sim.Config) { c.Unserves = true }

// servesAll takes every set for one that somebody makes Machines for.
func servesAll(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		for i, set := range s.MachineSets {
			c := set.DeepCopy()
			c.DeletionTimestamp = nil
			c.Spec.Selector.MatchLabels = map[string]string{machine.LabelMachineSet: set.Name}
			c.Spec.Template.Labels = c.Spec.Selector.MatchLabels
			next.MachineSets[i] = c
		}
		return next
	})
}
