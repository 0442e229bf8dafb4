// SPDX-License-Identifier: Apache-2.0

package history

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// answers returns s with what the clouds answered changed.
func answers(s snapshot.Snapshot, change func(*snapshot.Cloud)) snapshot.Snapshot {
	s.Clouds = maps.Clone(s.Clouds)
	for uid, c := range s.Clouds {
		change(&c)
		s.Clouds[uid] = c
	}
	return s
}

// outcomes returns s with one result taken for another.
func outcomes(s snapshot.Snapshot, was, taken plan.Result) snapshot.Snapshot {
	s.Outcomes = maps.Clone(s.Outcomes)
	for key, o := range s.Outcomes {
		if o.Result == was {
			o.Result = taken
			s.Outcomes[key] = o
		}
	}
	return s
}

// sets returns s with its MachineSets changed; they are copies.
func sets(s snapshot.Snapshot, change func(*machine.MachineSet)) snapshot.Snapshot {
	next := s.Clone()
	for i, set := range s.MachineSets {
		c := set.DeepCopy()
		change(c)
		next.MachineSets[i] = c
	}
	return next
}

func ledger(s snapshot.Snapshot, change func(*machine.Ledger)) snapshot.Snapshot {
	return sets(s, func(set *machine.MachineSet) {
		if l, err := machine.ParseLedger(set.Annotations[machine.AnnotationLedger]); err == nil {
			change(&l)
			set.Annotations[machine.AnnotationLedger] = l.String()
		}
	})
}

func firstOnly(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return answers(s, func(c *snapshot.Cloud) { c.Found = c.Found[:min(1, len(c.Found))] })
	})
}

func refusing(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot { return outcomes(s, plan.Failed, plan.Refused) })
}

func errorIsAbsence(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return answers(s, func(c *snapshot.Cloud) { c.Err = nil })
	})
}

// notFoundIsAbsence knows an absence by the words of the answer, whoever gave it.
func notFoundIsAbsence(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return answers(s, func(c *snapshot.Cloud) {
			if c.Err != nil && strings.Contains(c.Err.Message, "404") {
				c.Err = nil
			}
		})
	})
}

// neverGone keeps what it once knew of an instance that was there, whatever the cloud says since.
func neverGone(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot { return outcomes(s, plan.Gone, plan.Done) })
}

func withoutProgress(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return withIntent(s, func(_ *machine.Machine, i *machine.Intent) { i.Progress, i.NotBefore = nil, nil })
	})
}

func acceptedIsGone(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot { return outcomes(s, plan.Done, plan.Gone) })
}

// withoutUpcoming counts the Nodes that are there, and remembers nothing of those that were asked for.
func withoutUpcoming(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := sets(withoutState(s), func(set *machine.MachineSet) { set.Spec.Replicas = new(int32(len(s.Nodes))) })
		next.Machines = nil
		for _, m := range s.Machines {
			if m.Status.NodeRef != nil {
				next.Machines = append(next.Machines, m)
			}
		}
		return next
	})
}

func withoutState(s snapshot.Snapshot) snapshot.Snapshot {
	next := s.Clone()
	for i, cm := range s.ConfigMaps {
		if cm.Name == machine.ConfigMapStatus {
			c := cm.DeepCopy()
			delete(c.Data, "state")
			next.ConfigMaps[i] = c
		}
	}
	return next
}

func forgetfulScaler(f function.Function) function.Function { return seen(f, withoutState) }

func undying(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return sets(s, func(set *machine.MachineSet) { set.DeletionTimestamp = nil })
	})
}

// staleBounds believes the minimum of a while ago.
func staleBounds(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := sets(s, func(set *machine.MachineSet) {
			metav1.SetMetaDataAnnotation(&set.ObjectMeta, machine.AnnotationMinSize, "0")
		})
		for i, a := range s.MachineAutoscalers {
			c := a.DeepCopy()
			c.Spec.MinReplicas = 0
			next.MachineAutoscalers[i] = c
		}
		return next
	})
}

// withoutVictims lowers a number and leaves the choice to whoever carries it out.
var withoutVictims = written(func(_, set *machine.MachineSet) { delete(set.Annotations, machine.AnnotationVictims) })

func unmarked(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return sets(s, func(set *machine.MachineSet) { delete(set.Annotations, machine.AnnotationVictims) })
	})
}

// placeholders puts a Machine there for every ordinal that has none.
func placeholders(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		for _, set := range s.MachineSets {
			l, err := machine.ParseLedger(set.Annotations[machine.AnnotationLedger])
			if err != nil || len(s.Machines) == 0 {
				continue
			}
			for _, k := range l.Active {
				if s.Machine(set.Namespace, l.Name(set.Name, k)) == nil {
					m := s.Machines[0].DeepCopy()
					m.Name, m.UID = l.Name(set.Name, k), types.UID("placeholder")
					delete(m.Labels, machine.LabelOrdinal)
					next.Add(m)
				}
			}
		}
		return next
	})
}

// believing does not know how many Pods there were the last time.
func believing(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		for i, cm := range s.ConfigMaps {
			if cm.Name == machine.ConfigMapStatus {
				c := cm.DeepCopy()
				c.Data["state"] = `{"schema":1,"unneeded":{"node-b":"2026-01-01T11:40:00Z"}}`
				next.ConfigMaps[i] = c
			}
		}
		return next
	})
}

// listedBefore has a list of Pods that was made before the last ones were bound.
func listedBefore(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		next.Pods = nil
		for _, p := range s.Pods {
			if n := s.Node(p.Spec.NodeName); n == nil || len(n.Spec.Taints) == 0 {
				next.Pods = append(next.Pods, p)
			}
		}
		return next
	})
}

func tidiesNothing(f function.Function) function.Function {
	return planned(f, func(_ snapshot.Snapshot, p plan.Plan) plan.Plan {
		next := plan.Plan{Notes: p.Notes}
		for _, seq := range p.Do {
			if u, updates := seq.Do[0].(plan.Update); !updates || plan.KindOf(u.Old) != "Node" {
				next.Add(seq)
			}
		}
		return next
	})
}

func repairIsHealth(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return machines(s, func(m *machine.Machine) { delete(m.Annotations, machine.AnnotationExternalRepair) })
	})
}

func impatient(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return ledger(s, func(l *machine.Ledger) { l.Failures, l.NextCreateAt = 0, nil })
	})
}

// unaware makes a function that sees nothing of what is taken out of its snapshot.
func unaware(takes func(*snapshot.Snapshot)) func(function.Function) function.Function {
	return func(f function.Function) function.Function {
		return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
			takes(&s)
			return s
		})
	}
}

var (
	ignoresNodes     = unaware(func(s *snapshot.Snapshot) { s.Nodes = nil })
	ignoresPods      = unaware(func(s *snapshot.Snapshot) { s.Pods = nil }) // every Node is empty
	ignoresTemplates = unaware(func(s *snapshot.Snapshot) { s.MachineSets = nil })
	ignoresVolumes   = unaware(func(s *snapshot.Snapshot) { s.VolumeAttachments = nil })
)

// alone sees neither who goes of the control plane nor the slot that one of it has.
func alone(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		next.ConfigMaps = nil
		next.Machines = slices.DeleteFunc(next.Machines, func(m *machine.Machine) bool { return m.DeletionTimestamp != nil })
		return next
	})
}

// neverJoined believes for good that there was no Node when the Machine was drained.
func neverJoined(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return machines(s, func(m *machine.Machine) { m.Status.NodeRef = nil })
	})
}

// byName knows Nodes by their names.
func byName(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		next.Nodes = nil
		for _, n := range s.Nodes {
			c := n.DeepCopy()
			for _, m := range s.Machines {
				if m.Status.NodeRef != nil && m.Status.NodeRef.Name == n.Name {
					c.UID, c.Spec.ProviderID = m.Status.NodeRef.UID, machine.ProviderID(m)
				}
			}
			next.Nodes = append(next.Nodes, c)
		}
		return next
	})
}

// askingFirst does nothing about a Machine whose cloud has not answered.
func askingFirst(f function.Function) function.Function {
	return planned(f, func(s snapshot.Snapshot, p plan.Plan) plan.Plan {
		for _, m := range s.Machines {
			if c, asked := s.Clouds[m.UID]; !asked || c.Err != nil && c.Err.Code != provider.NotFound {
				return plan.Plan{}
			}
		}
		return p
	})
}

func approving(f function.Function) function.Function {
	return planned(f, func(s snapshot.Snapshot, _ plan.Plan) plan.Plan {
		var p plan.Plan
		for _, r := range s.SigningRequests {
			p.Then(plan.Approve{Request: r, Why: "somebody asks"})
		}
		return p
	})
}
