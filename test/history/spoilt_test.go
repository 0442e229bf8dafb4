// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/sim"
)

// Worlds in which a mistake can show: the next version runs beside today's, instances have ports, the newest goes first.
var (
	withNewer = []byte{0, 0, 0, 0, 0, 1, 0, 2}
	withPorts = []byte{0, 0, 1}
	newest    = []byte{0, 0, 0, 0, 0, 2, 1} // goes first
)

type mistake = func(function.Function) function.Function

func both(all ...mistake) mistake {
	return func(f function.Function) function.Function {
		for _, m := range all {
			f = m(f)
		}
		return f
	}
}

// idle does nothing.
func idle(f function.Function) function.Function {
	return planned(f, func(snapshot.Snapshot, plan.Plan) plan.Plan { return plan.Plan{} })
}

// rogue does something of its own before anything else, and once in an invocation. It reads all objects of some kinds.
func rogue(do func(snapshot.Snapshot) []plan.Action, kinds ...plan.Kind) mistake {
	return func(f function.Function) function.Function {
		reads := f.Reads
		f.Reads = func(s snapshot.Snapshot) snapshot.Scope {
			sc := reads(s)
			for _, k := range kinds {
				sc.Objects = append(slices.Clip(sc.Objects), snapshot.All(k))
			}
			return sc
		}
		return planned(f, func(s snapshot.Snapshot, p plan.Plan) plan.Plan {
			var own plan.Plan
			for _, a := range do(s) {
				own.Then(a)
			}
			if own = own.Untried(s.Outcomes); len(own.Do) > 0 {
				return own
			}
			return p
		})
	}
}

// ofInstances does something to the instance of each Machine that is like that.
func ofInstances(like func(snapshot.Snapshot, *machine.Machine) bool) mistake {
	return func(f function.Function) function.Function {
		f = ofMachines(like, deleteInstance)(f)
		reads := f.Reads
		f.Reads = func(s snapshot.Snapshot) snapshot.Scope {
			sc := reads(s)
			for _, m := range s.Machines {
				if !slices.ContainsFunc(sc.Lookups, func(l snapshot.Lookup) bool { return l.UID == m.UID }) {
					sc.Lookups = append(slices.Clip(sc.Lookups), snapshot.Lookup{UID: m.UID, Open: true})
				}
			}
			return sc
		}
		return f
	}
}

// ofMachines does something to each Machine that is like that.
func ofMachines(like func(snapshot.Snapshot, *machine.Machine) bool, do func(snapshot.Snapshot, *machine.Machine) plan.Action) mistake {
	return rogue(func(s snapshot.Snapshot) (all []plan.Action) {
		for _, m := range s.Machines {
			if like(s, m) {
				all = append(all, do(s, m))
			}
		}
		return all
	}, "Machine")
}

func alive(_ snapshot.Snapshot, m *machine.Machine) bool { return m.DeletionTimestamp == nil }

func deleteMachine(_ snapshot.Snapshot, m *machine.Machine) plan.Action {
	return plan.Delete{Object: m, Why: "a mistake"}
}

func deleteInstance(s snapshot.Snapshot, m *machine.Machine) plan.Action {
	ref := provider.Ref{UID: m.UID, Name: m.Name, ProviderID: machine.ProviderID(m)}
	of := s.Clouds[m.UID]
	return plan.DeleteInstance{Account: of.Account, Cluster: of.Cluster, Ref: ref, Why: "a mistake"}
}

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
	deletesWhatIsInFlight = rogue(func(s snapshot.Snapshot) (all []plan.Action) {
		for _, m := range s.Machines {
			for _, h := range s.HealthChecks {
				if strings.Contains(h.Annotations[machine.AnnotationInFlight], string(m.UID)) {
					all = append(all, deleteMachine(s, m))
				}
			}
		}
		return all
	}, "Machine", "MachineHealthCheck")
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
	createsAfterRebuild = afterRebuild(func(s snapshot.Snapshot, set *machine.MachineSet) plan.Action {
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

// deletesMasters deletes the Nodes that tell no instance, deletesNodes the others that are not Ready.
var (
	deletesMasters = ofNodes(func(n *corev1.Node) bool { return n.Spec.ProviderID == "" })
	deletesNodes   = ofNodes(func(n *corev1.Node) bool { return n.Spec.ProviderID != "" && !machine.NodeReady(n) })
)

// ofNodes deletes each Node that is like that.
func ofNodes(like func(*corev1.Node) bool) mistake {
	return rogue(func(s snapshot.Snapshot) (all []plan.Action) {
		for _, n := range s.Nodes {
			if n.DeletionTimestamp == nil && like(n) {
				all = append(all, plan.Delete{Object: n, Why: "a mistake"})
			}
		}
		return all
	}, "Node")
}

// storesEncoded writes a secret on each Node, in base64.
func storesEncoded(f function.Function) function.Function {
	return each(f, func(_ snapshot.Snapshot, a plan.Action) plan.Action {
		u, updates := a.(plan.Update)
		if n, is := u.New.(*corev1.Node); updates && is {
			c := n.DeepCopy()
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, "said", base64.StdEncoding.EncodeToString([]byte("password="+sim.Canary+"!")))
			u.New = c
			return u
		}
		return a
	})
}

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

// sets changes what is written of MachineSets.
func writtenSets(change func(old, now *machine.MachineSet)) mistake {
	return func(f function.Function) function.Function {
		return each(f, func(_ snapshot.Snapshot, a plan.Action) plan.Action {
			u, updates := a.(plan.Update)
			old, is := u.Old.(*machine.MachineSet)
			now, _ := u.New.(*machine.MachineSet)
			if !updates || !is {
				return a
			}
			c := now.DeepCopy()
			change(old, c)
			u.New = c
			return u
		})
	}
}

// committed changes what is written of ledgers.
func committed(change func(was machine.Ledger, now *machine.Ledger)) mistake {
	return writtenSets(func(old, now *machine.MachineSet) {
		was, _ := machine.ParseLedger(old.Annotations[machine.AnnotationLedger])
		l, err := machine.ParseLedger(now.Annotations[machine.AnnotationLedger])
		if err == nil && l.Rebuilt == "" {
			change(was, &l)
			now.Annotations[machine.AnnotationLedger] = l.String()
		}
	})
}

var (
	writesNonsense = writtenSets(func(_, now *machine.MachineSet) { now.Annotations[machine.AnnotationLedger] = "{" })
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
	beyondBounds = resized(func(from, to int32) int32 { return to + 4 })
	growsTwice   = resized(func(from, to int32) int32 { return min(4, to+1) })
	neverShrinks = func(f function.Function) function.Function {
		return without(f, func(a plan.Action) bool {
			u, _ := a.(plan.Update)
			old, is := u.Old.(*machine.MachineSet)
			now, _ := u.New.(*machine.MachineSet)
			return is && *now.Spec.Replicas < *old.Spec.Replicas
		})
	}
)

// resized makes another number of a set that grows.
func resized(to func(from, to int32) int32) mistake {
	return writtenSets(func(old, now *machine.MachineSet) {
		if from := *old.Spec.Replicas; *now.Spec.Replicas > from {
			now.Spec.Replicas = new(to(from, *now.Spec.Replicas))
		}
	})
}

// without leaves out such actions.
func without(f function.Function, such func(plan.Action) bool) function.Function {
	return planned(f, func(_ snapshot.Snapshot, p plan.Plan) plan.Plan {
		rest := plan.Plan{Notes: p.Notes}
		for _, s := range p.Do {
			s.Do = slices.DeleteFunc(slices.Clone(s.Do), such)
			rest.Add(s)
		}
		return rest
	})
}

func keepsFinalizers(f function.Function) function.Function {
	return without(f, func(a plan.Action) bool {
		u, updates := a.(plan.Update)
		return updates && len(u.New.GetFinalizers()) < len(u.Old.GetFinalizers())
	})
}

// ignoresNodes knows of no Node.
func ignoresNodes(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		next.Nodes = nil
		return next
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

func keepsClaims(f function.Function) function.Function {
	return without(f, func(a plan.Action) bool {
		u, updates := a.(plan.Update)
		return updates && u.Old.GetAnnotations()[machine.AnnotationRemediatedBy] != "" && u.New.GetAnnotations()[machine.AnnotationRemediatedBy] == ""
	})
}

func keepsTaints(f function.Function) function.Function {
	return without(f, func(a plan.Action) bool {
		u, _ := a.(plan.Update)
		old, is := u.Old.(*corev1.Node)
		now, _ := u.New.(*corev1.Node)
		return is && len(now.Spec.Taints) < len(old.Spec.Taints)
	})
}

// taintsAnybody marks a Node for a removal that nobody plans.
var taintsAnybody = rogue(func(s snapshot.Snapshot) []plan.Action {
	for _, n := range s.Nodes {
		if n.Spec.ProviderID != "" && len(n.Spec.Taints) == 0 {
			c := n.DeepCopy()
			c.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Value: "nobody", Effect: corev1.TaintEffectNoSchedule}}
			return []plan.Action{plan.Update{Old: n, New: c, Why: "a mistake"}}
		}
	}
	return nil
}, "Node")

// oneMore wants one replica more than people do, and does not write that.
func oneMore(f function.Function) function.Function {
	return each(seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return sets(s, func(set *machine.MachineSet) { *set.Spec.Replicas++ })
	}), func(_ snapshot.Snapshot, a plan.Action) plan.Action {
		u, updates := a.(plan.Update)
		if now, is := u.New.(*machine.MachineSet); updates && is {
			old, _ := u.Old.DeepCopyObject().(*machine.MachineSet)
			now = now.DeepCopy()
			*old.Spec.Replicas--
			*now.Spec.Replicas--
			u.Old, u.New = old, now
			return u
		}
		return a
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

// linksOnce leaves a Machine with the Node that it had first.
func linksOnce(f function.Function) function.Function {
	return without(f, func(a plan.Action) bool {
		u, _ := a.(plan.UpdateStatus)
		m, is := u.Old.(*machine.Machine)
		return is && m.Status.NodeRef != nil
	})
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

func deletesPods(f function.Function) function.Function {
	return each(f, func(_ snapshot.Snapshot, a plan.Action) plan.Action {
		if e, evicts := a.(plan.Evict); evicts {
			return plan.Delete{Object: e.Pod, Why: e.Why}
		}
		return a
	})
}

// hypochondriac takes every Node for one that has not been ready since an hour before the beginning.
func hypochondriac(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		for i, n := range s.Nodes {
			c := n.DeepCopy()
			c.Status.Conditions = []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(sim.Start.Add(-time.Hour)),
			}}
			next.Nodes[i] = c
		}
		return next
	})
}

// crowds puts everything four times in flight.
func crowds(f function.Function) function.Function {
	return each(f, func(_ snapshot.Snapshot, a plan.Action) plan.Action {
		u, updates := a.(plan.Update)
		h, is := u.New.(*machine.MachineHealthCheck)
		if !updates || !is {
			return a
		}
		record := map[string]any{}
		if err := json.Unmarshal([]byte(h.Annotations[machine.AnnotationInFlight]), &record); err != nil {
			return a
		}
		flying, _ := record["inFlight"].([]any)
		record["inFlight"] = slices.Concat(flying, flying, flying, flying)
		text, err := json.Marshal(record)
		if err != nil {
			panic(err)
		}
		c := h.DeepCopy()
		c.Annotations[machine.AnnotationInFlight] = string(text)
		u.New = c
		return u
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

// ignoresVolumes knows of no attached volume.
func ignoresVolumes(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		next.VolumeAttachments = nil
		return next
	})
}

// revivesSets does not see that a set is being deleted.
func revivesSets(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return sets(s, func(set *machine.MachineSet) { set.DeletionTimestamp = nil })
	})
}

// attempted changes what is written of an attempt that was recorded before.
func attempted(change func(m *machine.Machine, was, now machine.Intent) machine.Intent) mistake {
	return func(f function.Function) function.Function {
		return each(f, func(_ snapshot.Snapshot, a plan.Action) plan.Action {
			u, updates := a.(plan.Update)
			old, is := u.Old.(*machine.Machine)
			now, _ := u.New.(*machine.Machine)
			if !updates || !is {
				return a
			}
			was, _ := machine.ParseIntent(old)
			i, _ := machine.ParseIntent(now)
			if was == nil || i == nil || !was.Called() {
				return a
			}
			c := now.DeepCopy()
			c.Annotations[machine.AnnotationIntent] = change(now, *was, *i).String()
			u.New = c
			return u
		})
	}
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

// replans changes a set for the plan that changed it last.
var replans = writtenSets(func(old, now *machine.MachineSet) {
	if last := old.Annotations[machine.AnnotationLastPlan]; last != "" && *old.Spec.Replicas != *now.Spec.Replicas {
		now.Annotations[machine.AnnotationLastPlan] = last
	}
})

// forgetsAttempts drops the record of each attempt that was refused.
func forgetsAttempts(f function.Function) function.Function {
	return each(f, func(_ snapshot.Snapshot, a plan.Action) plan.Action {
		u, updates := a.(plan.Update)
		if now, is := u.New.(*machine.Machine); updates && is {
			if i, _ := machine.ParseIntent(now); i != nil && i.Outcome == machine.OutcomeRefused {
				c := now.DeepCopy()
				delete(c.Annotations, machine.AnnotationIntent)
				u.New = c
				return u
			}
		}
		return a
	})
}

// seldom does nothing but in the first twenty seconds of every three minutes.
func seldom(f function.Function) function.Function {
	return planned(f, func(s snapshot.Snapshot, p plan.Plan) plan.Plan {
		if s.Now.Sub(sim.Start)%(3*time.Minute) > 20*time.Second {
			return plan.Plan{}
		}
		return p
	})
}

// rarely does nothing but in the first half minute of every quarter of an hour.
func rarely(f function.Function) function.Function {
	return planned(f, func(s snapshot.Snapshot, p plan.Plan) plan.Plan {
		if s.Now.Sub(sim.Start)%(15*time.Minute) > 30*time.Second {
			return plan.Plan{}
		}
		return p
	})
}

// logsSecrets gives a secret as the reason of what it does.
func logsSecrets(f function.Function) function.Function {
	return each(f, func(_ snapshot.Snapshot, a plan.Action) plan.Action {
		if u, updates := a.(plan.Update); updates {
			u.Why = "https://user:" + sim.Canary + "@cloud"
			return u
		}
		return a
	})
}

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

func tellsSecrets(f function.Function) function.Function {
	return planned(f, func(_ snapshot.Snapshot, p plan.Plan) plan.Plan {
		p.Notes = append(slices.Clip(p.Notes), plan.Log("called https://user:"+sim.Canary+"@cloud"))
		return p
	})
}
