// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	drainnode "github.com/machine-functions/machine-functions/functions/drain-node"
	evaluateautoscale "github.com/machine-functions/machine-functions/functions/evaluate-autoscale"
	linknode "github.com/machine-functions/machine-functions/functions/link-node"
	provisionmachine "github.com/machine-functions/machine-functions/functions/provision-machine"
	"github.com/machine-functions/machine-functions/functions/remediate"
	scalemachineset "github.com/machine-functions/machine-functions/functions/scale-machineset"
	sweepinstances "github.com/machine-functions/machine-functions/functions/sweep-instances"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// Level is which functions take part in a schedule.
type Level int

// Levels.
const (
	Machines  Level = iota // sets, Machines, instances, Nodes, leftovers
	Healing                // with health checks
	Scaling                // with the autoscaler
	numLevels = iota
)

// String names the level.
func (l Level) String() string { return [...]string{"machines", "healing", "scaling"}[l] }

func (l Level) functions() []function.Function {
	all := []function.Function{scalemachineset.Function, provisionmachine.Function, linknode.Function, drainnode.Function, sweepinstances.Function}
	if l >= Healing {
		all = append(all, remediate.Function)
	}
	if l >= Scaling {
		all = append(all, evaluateautoscale.Function)
	}
	return all
}

// Canary stands in the Secret of every world, and may be found nowhere else (R-S13).
const Canary = "canary-6f1d"

// credentials is the name of that Secret: one that config/rbac lets those read who act on clouds.
const credentials = "vsphere-cloud-credentials"

const setName = "worker"

// What a world can be.
const (
	withoutTokens = 1 // of KindCloud
	allLag        = 3 // of KindLag: every list is old, not only those that a schedule says
)

// setUp makes the world.
func (p *Play) setUp() {
	c := p.Cloud
	kinds := 3               // with tokens, without, bare metal
	if p.Apart || p.Shared { // hosts are where their Machines are
		kinds--
	}
	kind := p.pick(KindCloud, kinds)
	c.Untokened = kind == withoutTokens
	lag := p.pick(KindLag, 4)
	c.Lag, p.lagging = []time.Duration{0, 10 * time.Second, 30 * time.Second, 30 * time.Second}[lag], lag == allLag
	c.Ports = p.pick(KindWorld, 2)
	c.Boot = []time.Duration{0, 20 * time.Second, time.Minute}[p.pick(KindWorld, 3)]
	c.Removal = []time.Duration{0, 15 * time.Second}[p.pick(KindWorld, 2)]
	if kind == 2 {
		p.lagging, c.Lag = false, 0
		p.stockUp([]int{p.enoughHosts(), fewHosts}[c.Ports], 30*time.Second+c.Boot, 5*time.Second+c.Removal)
	}
	replicas := int32(1 + p.pick(KindWorld, 3))
	p.policy = []string{"", "Newest", "Oldest"}[p.pick(KindWorld, 3)]
	p.API.PutSecret(secretOf(machine.Namespace, Canary))
	p.anotherUp()
	p.put(p.newSet(replicas))
	p.neighborUp()
	if p.other = versions[p.pick(KindWorld, len(versions))]; p.other != nil {
		for _, f := range p.Functions {
			p.others = append(p.others, p.other.of(f))
		}
		p.tracef("version %s runs beside today's", p.other.name)
	}
	if p.Level >= Healing {
		h := checkOf(p.pick(KindWorld, 2) == 1)
		p.replacesFewer(h)
		p.put(h)
	}
	if p.Level >= Scaling {
		p.put(p.autoscaling()...)
	}
	p.limitBudget()
	p.holdsPower()
	p.before = []int{0, 1, 2, 3, 5, 8}[p.pick(KindBefore, 6)]
	p.mastersUp()
	p.wanted(replicas)
	p.tracef("hosts=%v untokened=%v lag=%v ports=%d boot=%v removal=%v replicas=%d policy=%s", p.hosts != nil, c.Untokened, c.Lag, c.Ports, c.Boot, c.Removal, replicas, p.policy)
	p.scans()
}

// newSet returns the set as people make it.
func (p *Play) newSet(replicas int32) *machine.MachineSet { return p.setNamed(setName, replicas) }

func (p *Play) setNamed(name string, replicas int32) *machine.MachineSet {
	set := Set(name, replicas)
	set.Spec.DeletePolicy = p.policy
	set.Spec.Template.Spec.ProviderSpec.Value = rawExtension(`{"kind":"MemoryMachineProviderSpec","secret":"` + credentials + `","type":"small"}`) // as it is stored
	if p.hosts != nil {
		set.Spec.Template.Spec.ProviderSpec.Value = rawExtension(hostSpec)
		// Hosts are of no type: what one has people say, so that a set without any can grow.
		set.Annotations = map[string]string{machine.AnnotationVCPU: "2", machine.AnnotationMemoryMb: "8192"}
	}
	return set
}

func (p *Play) put(objects ...plan.Object) {
	for _, o := range objects {
		if err := p.journal(people, nil, o, func() error { return p.API.Put(o) }); err != nil {
			panic(fmt.Sprintf("the simulation puts what cannot be: %v", err))
		}
	}
}

// mayStartFor is how long checks leave a Machine without a Node.
const mayStartFor = 5 * time.Minute

func checkOf(strict bool) *machine.MachineHealthCheck {
	h := &machine.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "workers", Annotations: map[string]string{
		machine.AnnotationStormCooldown: "30s",
	}}}
	h.Spec.Selector.MatchLabels = map[string]string{machine.LabelMachineSet: setName}
	h.Spec.MaxUnhealthy = new(intstr.FromString("100%"))
	if strict {
		h.Annotations[machine.AnnotationMaxInFlight] = "1"
		h.Annotations[machine.AnnotationSteps] = "power-cycle=1m,replace"
	}
	h.Spec.NodeStartupTimeout = &metav1.Duration{Duration: mayStartFor}
	for _, status := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown} {
		h.Spec.UnhealthyConditions = append(h.Spec.UnhealthyConditions, machinev1beta1.UnhealthyCondition{
			Type: corev1.NodeReady, Status: status, Timeout: metav1.Duration{Duration: time.Minute},
		})
	}
	return h
}

// scans queues a scan of every function.
func (p *Play) scans() {
	for i := range p.Functions {
		if e := (queued{fn: i}); len(p.queue) < maxQueued {
			p.queue = append(p.queue, e)
		}
	}
}

// tell goes on with the story that is told where nothing special happens: time passes, and people do something, all of it
// long enough apart to be carried out.
func (p *Play) tell() {
	p.story++
	p.pass(10 * time.Second)
	p.nature()
	if !p.NoStory {
		p.chapter()
		p.editStory()
	}
	p.scans()
}

// chapter is what people do in a round of the story: scale up, delete a Machine, scale down; then an instance falls ill, or
// more is to do and later less.
func (p *Play) chapter() {
	switch ill, loads := p.Level == Healing, p.Level == Scaling; {
	case p.story == 4:
		p.scale(int32(1 + p.replicas))
	case p.story == 8:
		p.deleteMachine(0)
	case p.story == 12:
		p.scale(1)
	case p.story == 16 && ill:
		p.illness(userSick)
	case p.story == 16 && loads:
		p.load(p.many())
	case p.story == 24 && loads:
		p.load(1)
	}
}
