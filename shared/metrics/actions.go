// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// untried is the result of an action behind one that failed in its sequence.
const untried = "untried"

func resultOf(o plan.Outcome, tried bool) string {
	if !tried {
		return untried
	}
	return strings.ToLower(o.Result.String())
}

// kind names what an action does.
func kind(a plan.Action) string {
	switch a.(type) {
	case plan.Create:
		return "create"
	case plan.Update:
		return "update"
	case plan.UpdateStatus:
		return "update_status"
	case plan.Delete:
		return "delete"
	case plan.Evict:
		return "evict"
	case plan.Approve:
		return "approve"
	case plan.CreateInstance:
		return "create_instance"
	case plan.DeleteInstance:
		return "delete_instance"
	case plan.UpdateInstance:
		return "update_instance"
	case plan.PowerCycle:
		return "power_cycle"
	}
	return ""
}

// done measures what an action achieved.
func (m *Metrics) done(ctx context.Context, s snapshot.Snapshot, a plan.Action) {
	switch a := a.(type) {
	case plan.UpdateStatus:
		m.moved(ctx, a)
	case plan.Update:
		m.resizedBy(ctx, a)
		m.remembered(ctx, s, a)
		_, before := a.Old.GetAnnotations()[machine.AnnotationExternalRepair]
		if _, after := a.New.GetAnnotations()[machine.AnnotationExternalRepair]; after && !before {
			m.cured(ctx, s, a.Old)
		}
	case plan.Delete:
		m.cured(ctx, s, a.Object)
	case plan.Create, plan.Evict, plan.Approve, plan.CreateInstance, plan.DeleteInstance, plan.UpdateInstance, plan.PowerCycle:
	}
}

// moved records how old a Machine was when it came into another phase. How long it took to go away says more about
// its Pods than about the machine layer, so Deleting is left out (SPEC B70).
func (m *Metrics) moved(ctx context.Context, a plan.UpdateStatus) {
	before, ok := a.Old.(*machine.Machine)
	if !ok || m.transition == nil {
		return
	}
	after, ok := a.New.(*machine.Machine)
	if !ok || after.Status.LastUpdated == nil {
		return
	}
	phase := machine.Phase(after)
	if phase == machine.Phase(before) || phase == "" || phase == machine.PhaseDeleting {
		return
	}
	m.transition.Record(ctx, after.Status.LastUpdated.Sub(before.CreationTimestamp.Time).Seconds(), with(keyPhase.With(phase)))
}

// cured counts a remediation for the check that has the Machine in its record.
func (m *Metrics) cured(ctx context.Context, s snapshot.Snapshot, o plan.Object) {
	if _, ok := o.(*machine.Machine); !ok || m.remediated == nil {
		return
	}
	for _, h := range checks(s) {
		if strings.Contains(h.Annotations[machine.AnnotationInFlight], string(o.GetUID())) {
			m.remediated.Add(ctx, 1, with(keyName.With(h.Name), keyNamespace.With(h.Namespace)))
		}
	}
}

// failed maps the reason of an Event about a Machine to the metric that counts it.
var failed = map[string]string{
	"FailedCreate": "mapi_instance_create_failed",
	"FailedUpdate": "mapi_instance_update_failed",
	"FailedDelete": "mapi_instance_delete_failed",
}

// failure is what is counted about one Machine. The code stands for the cloud's message, which may hold anything.
type failure struct{ reason, name, namespace, code string }

// tally is how often, and when last.
type tally struct {
	n    int64
	last time.Time
}

const (
	// maxFailures bounds the Machines that failures are counted for; of what is beyond only the codes are told apart.
	maxFailures = 1000
	// mourned is how long the failures of a Machine that is gone are told: several scrapes.
	mourned = 10 * time.Minute
)

// told counts the Events that were recorded, and the failures that the plan tells of, each once for the invocation.
func (m *Metrics) told(ctx context.Context, i Invocation) {
	for _, n := range i.Told {
		m.events.Add(ctx, 1, with(keyType.With(n.Type), keyReason.With(n.Reason)))
	}
	notes := map[plan.Note]bool{}
	for _, n := range i.Planned.Notes {
		notes[n] = true
	}
	for _, seq := range i.Planned.Do {
		for _, n := range seq.Notes {
			notes[n] = true
		}
	}
	m.skip(ctx, notes)
	m.scalingTold(ctx, notes)
	codes := codesOf(i.Outcomes)
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := range notes {
		if n.Object.Kind == "" {
			continue
		}
		if _, fails := failed[n.Reason]; !fails || n.Object.Kind != "Machine" || m.function != provisions {
			continue
		}
		f := failure{n.Reason, n.Object.Name, n.Object.Namespace, codeOf(i, codes, n.Object)}
		if _, known := m.failures[f]; !known && len(m.failures) >= maxFailures {
			f.name, f.namespace = "", ""
		}
		m.failures[f] = tally{m.failures[f].n + 1, m.clock()}
	}
}

// codeOf returns the class of what went wrong with a Machine: of the call in this invocation, of the lookup, or of what
// is recorded.
func codeOf(i Invocation, codes map[types.UID]string, about plan.Ref) string {
	if code, called := codes[about.UID]; called {
		return code
	}
	c := i.Seen.Clouds[about.UID]
	switch {
	case c.Err != nil:
		return c.Err.Code.String()
	case c.Refused != nil:
		return c.Refused.Code.String()
	}
	if mach := i.Seen.Machine(about.Namespace, about.Name); mach != nil {
		var code provider.Code
		if intent, err := machine.ParseIntent(mach); err == nil && intent != nil && code.UnmarshalText([]byte(intent.Code)) == nil {
			return code.String()
		}
	}
	return provider.Unknown.String()
}

// codesOf returns the classes of what went wrong with calls to clouds, by the Machine that they were about.
func codesOf(outcomes map[plan.Key]plan.Outcome) map[types.UID]string {
	codes := map[types.UID]string{}
	for key, o := range outcomes {
		verb, about, isCall := strings.Cut(string(key), " instance ")
		if !isCall || !slices.Contains([]string{"create", "delete", "update", "power-cycle"}, verb) {
			continue
		}
		if o.Result == plan.Refused || o.Result == plan.Failed || o.Result == plan.Unsent {
			uid, _, _ := strings.Cut(about, " ")
			codes[types.UID(uid)] = o.Code.String()
		}
	}
	return codes
}

// failed returns what was counted under one reason.
func (m *Metrics) failed(reason string) map[failure]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := map[failure]int64{}
	for f, t := range m.failures {
		if f.reason == reason {
			counts[f] = t.n
		}
	}
	return counts
}

// forget drops what was counted about Machines that are gone for some time.
func (m *Metrics) forget(s snapshot.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for f, t := range m.failures {
		if f.name != "" && s.Machine(f.namespace, f.name) == nil && m.clock().Sub(t.last) > mourned {
			delete(m.failures, f)
		}
	}
}
