// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/sim"
)

// Worlds in which a mistake can show: the next version runs beside today's, instances have ports, the newest goes first, one
// is replaced at a time.
var (
	withNewer = []byte{0, 0, 0, 0, 0, 1, 0, 2}
	withPorts = []byte{0, 0, 1}
	newest    = []byte{0, 0, 0, 0, 0, 2, 1}       // goes first
	oneByOne  = []byte{0, 0, 0, 2, 0, 2, 0, 0, 1} // of three, and instances take long to boot
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

// updated takes an update of a kind of object apart.
func updated[T plan.Object](a plan.Action) (old, now T, is bool) {
	u, _ := a.(plan.Update)
	old, is = u.Old.(T)
	now, _ = u.New.(T)
	return old, now, is
}

// written changes what is written of a kind of object by updates; change is given copies.
func written[T plan.Object](change func(old, now T)) mistake {
	return func(f function.Function) function.Function {
		return each(f, func(_ snapshot.Snapshot, a plan.Action) plan.Action {
			u, _ := a.(plan.Update)
			if _, _, is := updated[T](a); !is {
				return a
			}
			old, _ := u.Old.DeepCopyObject().(T)
			now, _ := u.New.DeepCopyObject().(T)
			change(old, now)
			u.Old, u.New = old, now
			return u
		})
	}
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

// believesAtOnce takes what it saw once for seen an hour ago.
func believesAtOnce(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next, cm := s.Clone(), s.ConfigMap(machine.Namespace, machine.ConfigMapSweep)
		state, err := machine.SweepStateIn(cm)
		if err != nil || cm == nil {
			return s
		}
		for key, since := range state.Sightings {
			state.Sightings[key] = metav1.NewTime(since.Add(-time.Hour))
		}
		cm = cm.DeepCopy()
		cm.Data[machine.SweepKey] = state.String()
		for i, other := range next.ConfigMaps {
			if other.Name == cm.Name && other.Namespace == cm.Namespace {
				next.ConfigMaps[i] = cm
			}
		}
		next.Now = s.Now.Add(time.Hour)
		return next
	})
}

// nowAndThen is restless in every other minute.
func nowAndThen(f function.Function) function.Function {
	loud, decide := restless(f), f.Decide
	f.Reads = loud.Reads
	f.Decide = func(s snapshot.Snapshot) plan.Plan {
		if s.Now.Sub(sim.Start)%(2*time.Minute) < time.Minute {
			return decide(s)
		}
		return loud.Decide(s)
	}
	return f
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

// saysBytes has clouds opened by a library that says the bytes of what it is opened with.
func saysBytes(c *sim.Config) {
	c.Clouds = func(p provider.Provider) provider.Provider {
		p.Open = func(_ context.Context, a provider.Account) (provider.Driver, error) {
			return nil, provider.Errorf(provider.Denied, "log in with %v: refused", map[string][]byte(a.Credentials))
		}
		return p
	}
}

func tellsSecrets(f function.Function) function.Function {
	return planned(f, func(_ snapshot.Snapshot, p plan.Plan) plan.Plan {
		p.Notes = append(slices.Clip(p.Notes), plan.Log("called https://user:"+sim.Canary+"@cloud"))
		return p
	})
}
