// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// notes are what people annotate a Machine with, and take away again.
var notes = []struct{ key, value string }{
	{machine.AnnotationExcludeDrain, ""},
	{machine.AnnotationDelete, "yes"},
	{machine.AnnotationDrainTimeout, "30s"},
	{machine.AnnotationDrainTimeout, "0s"},
	{machine.AnnotationDrainTimeout, "soon"}, // which is no time
}

// editMachine lets a person change a Machine; most of it is taken back when it is done again.
func (p *Play) editMachine(what int, m *machine.Machine) {
	switch what {
	case userAnnotate:
		n := notes[p.pick(KindWhich, len(notes))]
		old, had := m.Annotations[n.key]
		p.tracef("people annotate %s: %s=%q, was %q", m.Name, n.key, n.value, old)
		p.change(m, func(o *machine.Machine) {
			if metav1.SetMetaDataAnnotation(&o.ObjectMeta, n.key, n.value); had && old == n.value {
				delete(o.Annotations, n.key)
			}
		})
	case userRelabel:
		out := m.Labels[machine.LabelMachineSet] == setName
		if !out {
			p.added++
			p.back[m.UID] = p.born
		}
		p.tracef("people relabel %s, out of the set: %v", m.Name, out)
		p.change(m, func(o *machine.Machine) {
			if metav1.SetMetaDataLabel(&o.ObjectMeta, machine.LabelMachineSet, setName); out {
				delete(o.Labels, machine.LabelMachineSet)
			}
		})
	case userOrdinal:
		k := p.pick(KindWhich, 5)
		p.tracef("people label %s with ordinal %d", m.Name, k)
		p.change(m, func(o *machine.Machine) { metav1.SetMetaDataLabel(&o.ObjectMeta, machine.LabelOrdinal, fmt.Sprint(k)) })
	case userPauseMachine:
		p.tracef("people give the say over %s to %s", m.Name, another(m.Spec.AuthoritativeAPI))
		p.handed[m.UID] = p.born
		p.change(m, func(o *machine.Machine) { o.Spec.AuthoritativeAPI = another(o.Spec.AuthoritativeAPI) })
	case userMend:
		spoil := p.pick(KindWhich, 2) == 1
		p.tracef("people edit the spec of %s, what the cloud reads: %v", m.Name, spoil)
		p.change(m, func(o *machine.Machine) { p.respell(&o.Spec, spoil) })
	}
}

// edit lets a person change the set, or add to it.
func (p *Play) edit(what int) {
	set := p.set()
	if set == nil {
		return
	}
	switch what {
	case userPolicy:
		policy := []string{"", "Newest", "Oldest", "Random"}[p.pick(KindWhich, 4)]
		p.tracef("people set the delete policy %q", policy)
		p.editSet(func(s *machine.MachineSet) { s.Spec.DeletePolicy = policy })
	case userPauseSet:
		p.tracef("people give the say over the set to %s", another(set.Spec.AuthoritativeAPI))
		p.handed[set.UID] = p.born
		p.editSet(func(s *machine.MachineSet) { s.Spec.AuthoritativeAPI = another(s.Spec.AuthoritativeAPI) })
	case userMendTemplate:
		spoil := p.pick(KindWhich, 2) == 1
		p.tracef("people edit the template's spec, what the cloud reads: %v", spoil)
		p.templateSeen = time.Time{}
		p.editSet(func(s *machine.MachineSet) { p.respell(&s.Spec.Template.Spec, spoil) })
	case userByHand:
		p.byHand(set, p.pick(KindWhich, 4))
	}
}

// byHand puts a Machine there that the set did not make: of any name, of one that the set has in mind for the next one or the
// one after it, or of that name without its labels.
func (p *Play) byHand(set *machine.MachineSet, how int) {
	l, err := ledgerOf(set)
	name := fmt.Sprintf("by-hand-%d", p.steps)
	if how > 0 && err == nil {
		name = machine.Name(set.Name, set.UID, l.Next+(how-1)%2)
	}
	if memory.Get[*machine.Machine](p.API, machine.Namespace, name) != nil {
		return
	}
	p.tracef("people make %s by hand, with the set's labels: %v", name, how < 3)
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: name}, Spec: *set.Spec.Template.Spec.DeepCopy()}
	if how < 3 {
		p.added++
		m.Labels = set.DeepCopy().Spec.Template.Labels
	}
	p.put(m)
}

// another returns who has the say after whoever has it.
func another(a machinev1beta1.MachineAuthority) machinev1beta1.MachineAuthority {
	if a == machinev1beta1.MachineAuthorityClusterAPI {
		return machinev1beta1.MachineAuthorityMachineAPI
	}
	return machinev1beta1.MachineAuthorityClusterAPI
}

// What a cloud can read, and what it cannot in its place.
var (
	spoils = strings.NewReplacer(`"type":"small"`, `"type":""`, `"checksum":"sum"`, `"checksum":7`)
	mends  = strings.NewReplacer(`"type":""`, `"type":"small"`, `"checksum":7`, `"checksum":"sum"`)
)

// respell changes a spec: what is for the Node, or what is for the cloud, so that it cannot be read, or can be again.
func (p *Play) respell(s *machinev1beta1.MachineSpec, cloud bool) {
	raw := s.ProviderSpec.Value
	switch {
	case !cloud:
		s.ObjectMeta.Labels = map[string]string{"edited": fmt.Sprint(p.steps)}
	case raw == nil:
	case spoils.Replace(string(raw.Raw)) != string(raw.Raw):
		p.spoilt = true
		s.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(spoils.Replace(string(raw.Raw)))}
	default:
		mend(s)
	}
}

func mend(s *machinev1beta1.MachineSpec) {
	if raw := s.ProviderSpec.Value; raw != nil {
		s.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(mends.Replace(string(raw.Raw)))}
	}
}

// invalid reports whether m failed for what its spec says.
func invalid(m *machine.Machine) bool {
	return m.Status.ErrorReason != nil && *m.Status.ErrorReason == machinev1beta1.InvalidConfigurationMachineError
}

// mendAll takes back what people changed and nobody else can set right: who has the say, what belongs to the set, and what no
// cloud can read.
func (p *Play) mendAll() {
	set := p.set()
	if set == nil {
		return
	}
	ours := func(a *machinev1beta1.MachineAuthority) {
		if *a != "" {
			*a = machinev1beta1.MachineAuthorityMachineAPI
		}
	}
	mended(p, set, func(s *machine.MachineSet) {
		if ours(&s.Spec.AuthoritativeAPI); !p.Spoils {
			mend(&s.Spec.Template.Spec)
		}
	})
	for _, m := range p.machines() {
		if m.Labels[machine.LabelMachineSet] != setName && !isMaster(m) && !p.neighbors(m) {
			p.added++
			p.back[m.UID] = p.born
		}
		mended(p, m, func(o *machine.Machine) {
			if ours(&o.Spec.AuthoritativeAPI); !p.Spoils || !invalid(o) || o.DeletionTimestamp != nil {
				mend(&o.Spec)
			}
			if isMaster(o) || p.neighbors(o) { // this set did not make it
				return
			}
			for k, v := range set.Spec.Template.Labels {
				metav1.SetMetaDataLabel(&o.ObjectMeta, k, v)
			}
		})
	}
}

// mended lets people change an object if that changes anything.
func mended[P interface {
	plan.Object
	DeepCopy() P
}](p *Play, o P, f func(P)) {
	next := o.DeepCopy()
	if f(next); !plan.Same(o, next) {
		p.change(o, f)
	}
}

// edited is what people change in each round of a story with edits.
var edited = map[int]int{
	2: userAnnotate, 3: userPolicy, 5: userRelabel, 6: userOrdinal, 7: userByHand, 8: userPauseSet, 9: userRelabel, 10: userPauseSet,
	11: userPauseMachine, 12: userMend, 13: userMendTemplate, 14: userPauseMachine, 15: userStripLedger, 16: userRelease,
}

// editStory lets people do what the story has them do in this round beside the rest.
func (p *Play) editStory() {
	if what, ok := edited[p.story]; ok && p.Edits {
		p.does(what)
	}
}

func (p *Play) check() *machine.MachineHealthCheck {
	return memory.Get[*machine.MachineHealthCheck](p.API, machine.Namespace, "workers")
}

// uncheck has people take the check away, or make it anew: that one knows of nothing that the former one did.
func (p *Play) uncheck() {
	if p.Level < Healing {
		return
	}
	if h := p.check(); h != nil {
		p.tracef("people take the check away")
		p.unchecked = p.born
		p.remove("MachineHealthCheck", h.Namespace, h.Name)
		return
	}
	p.tracef("people make the check anew")
	clear(p.out)
	clear(p.flying)
	p.put(checkOf(false))
}
