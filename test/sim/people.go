// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// What people do, and what happens to them. Kept schedules know it by number: what is new comes last.
const (
	userScale = iota
	userDelete
	userMark
	userTemplate
	userLoad
	userSick
	userSilent
	userVanish
	userNode
	userRelease
	userHook
	userStock
	userSkew
	userRestoreSet
	userStripLedger
	userRestoreAll
	userAnnotate
	userRelabel
	userOrdinal
	userPauseMachine
	userMend
	userPolicy
	userPauseSet
	userMendTemplate
	userByHand
	userJump
	userSet
	userSettings
	numUser
)

// userMove is what people do too where there are two sets, userCheck where they take the check away, userFree where checks select the
// control plane, userRival where two MachineAutoscalers want the set, userShort is what happens to lists where they may lack something,
// userCycle where people power-cycle, userUnserve where they spoil what the set selects, userLose where a cloud loses many at once, userKeep
// where a policy keeps one object. No world has two of these.
const (
	userMove, userCheck, userFree, userRival, userShort = numUser, numUser, numUser, numUser, numUser
	userCycle, userUnserve, userLose, userKeep          = numUser, numUser, numUser, numUser
)

// user lets a person do something.
func (p *Play) user() {
	n := numUser
	if p.Moves || p.Unchecks || p.Shorts || p.Checked > 0 || p.Rivals || p.Cycles || p.Unserves || p.Losses || p.Keeps {
		n++
	}
	p.does(p.pick(KindUser, n))
}

func (p *Play) does(what int) {
	switch what {
	case userScale:
		p.scale(int32(p.pick(KindWhich, 5)))
	case userLoad:
		if p.Level >= Scaling {
			n := mostReplicas + 1
			if p.Scaled {
				n += mostBeside
			}
			p.load(p.pick(KindWhich, n))
		}
	case userRestoreSet, userStripLedger, userRestoreAll:
		p.tamper(what)
	case userSkew:
		p.skew = []time.Duration{0, 20 * time.Second, -20 * time.Second, time.Minute, -time.Hour}[p.pick(KindWhich, 5)]
		p.tracef("the clocks of the functions are %v off", p.skew)
	case userStock:
		n := p.pick(KindWhich, 4) - 1
		p.limit(n)
		p.tracef("the cloud has room for %d (-1: no limit)", n)
		p.limited = true
	case userSettings:
		if p.Level >= Scaling {
			p.editSettings(p.pick(KindWhich, 2) == 1)
		}
	case userTemplate:
		p.tracef("people edit the template")
		p.templateSeen = time.Time{}
		p.editSet(func(s *machine.MachineSet) {
			s.Spec.Template.Annotations = map[string]string{"edited": fmt.Sprint(p.steps)}
		})
	case userPolicy, userPauseSet, userMendTemplate, userByHand:
		p.edit(what)
	case userJump:
		p.jump([]time.Duration{10 * time.Minute, -10 * time.Minute, 2 * time.Hour, -3 * time.Hour, -p.jumped}[p.pick(KindWhich, 5)])
	case userSet:
		p.deleteSet(p.pick(KindWhich, 3))
	case userSick, userSilent, userVanish:
		p.illness(what)
	case userMove:
		switch {
		case p.Unchecks:
			p.uncheck()
		case p.Checked > 0:
			p.release(masterChecks[p.pick(KindWhich, p.Checked)])
		case p.Rivals:
			p.compete(p.pick(KindWhich, len(rivals)))
		case p.Shorts:
			p.shorten([]plan.Kind{"Pod", "Node"}[p.pick(KindWhich, 2)])
		case p.Cycles:
			p.onOne(p.cycle)
		case p.Losses:
			p.loseMany(p.pick(KindWhich, 3))
		case p.Keeps:
			p.keep(p.pick(KindWhich, 3))
		case p.Unserves:
			p.unserve(p.pick(KindWhich, 3))
		default:
			p.move()
		}
	case userNode:
		nodes := memory.List[*corev1.Node](p.API)
		if i := p.pick(KindWhich, len(nodes)); i < len(nodes) && nodes[i].Spec.ProviderID != "" {
			p.tracef("people delete node %s", nodes[i].Name)
			p.remove("Node", "", nodes[i].Name)
		}
	default:
		all := p.first()
		if i := p.pick(KindWhich, len(all)); i < len(all) {
			p.userMachine(what, i, all[i])
		}
	}
}

// onOne lets people do something to one of the first set's Machines.
func (p *Play) onOne(do func(*machine.Machine)) {
	all := p.first()
	if i := p.pick(KindWhich, len(all)); i < len(all) {
		do(all[i])
	}
}

func (p *Play) userMachine(what, i int, m *machine.Machine) {
	switch what {
	case userDelete:
		p.deleteMachine(i)
	case userMark:
		p.tracef("people mark %s for deletion", m.Name)
		p.change(m, func(o *machine.Machine) { metav1.SetMetaDataAnnotation(&o.ObjectMeta, machine.AnnotationDelete, "yes") })
	case userRelease:
		if m.DeletionTimestamp == nil && !(p.Checked > 0 && isMaster(m)) { // whose owner would take it back
			p.tracef("people take %s out of its set", m.Name)
			p.change(m, func(o *machine.Machine) { o.OwnerReferences = nil })
		}
	case userHook:
		if m.DeletionTimestamp == nil {
			p.tracef("people hold %s by a hook", m.Name)
			p.change(m, func(o *machine.Machine) {
				hooks := []machinev1beta1.LifecycleHook{{Name: "backup", Owner: "people"}}
				if p.Early {
					o.Spec.LifecycleHooks.PreDrain = hooks
				} else {
					o.Spec.LifecycleHooks.PreTerminate = hooks
				}
			})
		}
	default:
		p.editMachine(what, m)
	}
}

// jump sets the clock of the API server, and of whoever follows it; the cloud's goes on, and so do requests that are under way.
// What was to be waited for is over too early, or late, which no client can know: then what is wanted holds in the end.
// A clock that was far ahead, and is set right, leaves times behind that come again later than a schedule lasts.
func (p *Play) jump(d time.Duration) {
	p.clock, p.jumped = p.clock.Add(d), p.jumped+d
	for _, q := range p.procs {
		q.began, q.since, q.methodBegan = q.began.Add(d), q.since.Add(d), q.methodBegan.Add(d)
		q.jumped, q.unread = q.jumped+d, q.unread+d
	}
	p.tracef("the clock of the API server jumps by %v", d)
	p.reset = true
	p.unbounded = p.unbounded || d > 0 // what is waited for lasts longer if it is set back
	clear(p.unanswered)
}

// deleteSet deletes the set: with its Machines, without them, or as soon as somebody's finalizer is gone. Whose set was deleted
// makes it anew, when asked again or when it is calm.
func (p *Play) deleteSet(how int) {
	set := p.set()
	switch {
	case set == nil:
		p.tracef("people make the set anew")
		p.put(p.newSet(int32(p.replicas)))
		p.ordered += p.replicas
		clear(p.retired) // its ordinals are others
		p.condemned = 0
	case set.DeletionTimestamp != nil:
		p.editSet(func(s *machine.MachineSet) { s.Finalizers = nil })
	default:
		p.tracef("people delete the set: %s", []string{"and its Machines", "and keep its Machines", "which somebody's finalizer holds"}[how])
		if how == 2 {
			p.editSet(func(s *machine.MachineSet) { s.Finalizers = []string{"people/hold"} })
		}
		p.condemned = p.born + 1
		removal := memory.Background
		if how == 1 {
			removal = memory.Orphan
		}
		p.collected = true
		p.removed("MachineSet", set.Namespace, set.Name, removal)
	}
}

// limit leaves room for n instances, or for as many as anybody wants.
func (p *Play) limit(n int) {
	if p.hosts != nil {
		p.hosts.limit(n)
		return
	}
	p.Cloud.SetStock("small", n)
}

// illness strikes an instance, or heals it.
func (p *Play) illness(what int) {
	alive := p.alive()
	n := p.pick(KindWhich, len(alive))
	if n >= len(alive) {
		return
	}
	i := alive[n]
	p.ailed[i.ProviderID] = true
	switch what {
	case userSick:
		p.sick[i.ProviderID] = !p.sick[i.ProviderID]
		p.tracef("instance %s is sick: %v", i.ID, p.sick[i.ProviderID])
	case userSilent:
		p.silent[i.ProviderID] = !p.silent[i.ProviderID]
		p.tracef("nobody hears of instance %s: %v", i.ID, p.silent[i.ProviderID])
	case userVanish:
		p.vanish(i)
	}
}

// forget is the cloud's node controller: nobody else can know of the Node of a lost instance that no Machine had recorded yet.
func (p *Play) forget(id string) {
	if slices.ContainsFunc(p.machines(), func(m *machine.Machine) bool { return machine.ProviderID(m) == id }) {
		return
	}
	for _, n := range memory.List[*corev1.Node](p.API) {
		if n.Spec.ProviderID == id {
			p.remove("Node", "", n.Name)
		}
	}
}

// tamper sets records back, as restored backups do.
func (p *Play) tamper(what int) {
	set := p.set()
	switch {
	case what == userStripLedger && set != nil:
		p.tracef("people remove the ledger")
		p.tampered = true
		p.editSet(func(s *machine.MachineSet) { delete(s.Annotations, machine.AnnotationLedger) })
	case what == userRestoreSet && p.backup.set != nil && set != nil:
		p.tracef("the set is restored from a backup")
		p.tampered = true
		clear(p.rebuilt) // the ledger is another one now
		b := p.backup.set.DeepCopy()
		if b.Spec.AuthoritativeAPI != set.Spec.AuthoritativeAPI { // who began before does not know of it
			p.handed[set.UID] = p.born
		}
		p.editSet(func(s *machine.MachineSet) { // as a PUT does: the status stays
			s.Labels, s.Annotations, s.Spec = b.Labels, b.Annotations, b.Spec
		})
		p.wanted(*p.backup.set.Spec.Replicas)
	case what == userRestoreAll && p.backup.all != nil:
		p.tracef("the storage of the API server is restored from a backup")
		p.tampered, p.restored = true, true
		clear(p.unanswered) // on record they are no more
		clear(p.attempts)
		clear(p.overAt)
		clear(p.drains)
		for _, q := range p.procs {
			q.stop()
		}
		p.procs, p.queue = nil, nil
		p.pass(5 * time.Minute)
		p.backup.all()
		maps.DeleteFunc(p.out, func(uid types.UID, _ uids) bool { // nobody deletes it any more
			m := p.owner(uid)
			return m != nil && m.DeletionTimestamp == nil
		})
		p.journalRest(backup)
		p.pods = p.backup.pods
		p.read = len(p.API.Writes())
		p.condemned = p.born + 1
		if s := p.set(); s != nil {
			p.wanted(*s.Spec.Replicas)
			if s.DeletionTimestamp == nil {
				p.condemned = 0
			}
		}
	}
	if p.Exact { // else what is stored is never changed in place
		return
	}
	if s := p.set(); s != nil && (what == userRestoreSet || p.backup.set == nil) {
		p.backup.set, p.backup.all, p.backup.pods = s, p.API.Backup(), p.pods
	}
}

func (p *Play) scale(n int32) {
	p.tracef("people scale to %d", n)
	if p.set() == nil {
		return
	}
	p.wanted(n)
	p.editSet(func(s *machine.MachineSet) { s.Spec.Replicas = &n })
}

// wanted remembers what is wanted now, and was the most.
func (p *Play) wanted(n int32) {
	p.ordered += max(0, int(n)-p.replicas)
	p.replicas, p.most = int(n), max(p.most, int(n))
}

func (p *Play) deleteMachine(i int) {
	all := p.first()
	if i >= len(all) {
		return
	}
	p.tracef("people delete %s", all[i].Name)
	p.remove("Machine", all[i].Namespace, all[i].Name)
}

func (p *Play) editSet(f func(*machine.MachineSet)) {
	if s := p.set(); s != nil {
		p.change(s, f)
	}
}

func (p *Play) set() *machine.MachineSet {
	return memory.Get[*machine.MachineSet](p.API, machine.Namespace, setName)
}

func (p *Play) machines() []*machine.Machine { return memory.List[*machine.Machine](p.API) }

// relent takes back what keeps things from ever becoming as they are wanted.
func (p *Play) relent() {
	p.limit(-1)
	p.skew = 0
	clear(p.silent)
	for p.condemned > 0 {
		p.deleteSet(0)
	}
	p.serveAgain()
	p.mendAll()
	p.liftBudget()
	if p.Unchecks && p.check() == nil {
		p.uncheck()
	}
	if ca := memory.Get[*autoscaling.ClusterAutoscaler](p.API, "", autoscaling.Name); p.Level >= Scaling && (ca == nil || spoiltSettings(ca)) {
		p.editSettings(false)
	}
	kept := false
	for _, i := range p.instances() {
		if p.sick[i.ProviderID] && (kept || p.neighbors(p.owner(i.UID))) {
			delete(p.sick, i.ProviderID)
		}
		kept = kept || p.sick[i.ProviderID]
	}
	for _, m := range p.machines() {
		if hooks := m.Spec.LifecycleHooks; len(hooks.PreDrain) > 0 || len(hooks.PreTerminate) > 0 {
			p.change(m, func(o *machine.Machine) { o.Spec.LifecycleHooks = machinev1beta1.LifecycleHooks{} })
		}
	}
}
