// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
)

// What the checks judge functions by is said here once more, in words of their own: whoever asks the functions' helpers whether the
// functions are right misses what is wrong with the helpers.

// isNodeOf reports whether n is the Node that m is linked to: no two objects ever have one UID.
func isNodeOf(m *machine.Machine, n *corev1.Node) bool {
	return n != nil && m.Status.NodeRef != nil && m.Status.NodeRef.UID == n.UID
}

// hasNode reports whether m is linked to n, or records the instance that n runs on.
func hasNode(m *machine.Machine, n *corev1.Node) bool {
	return isNodeOf(m, n) || m.Spec.ProviderID != nil && *m.Spec.ProviderID == n.Spec.ProviderID
}

// formers reports whether n ran for whom m's host was before, and not for m: the host has one id, whoever it is given to.
func (p *Play) formers(m *machine.Machine, n *corev1.Node) bool {
	return !isNodeOf(m, n) && slices.ContainsFunc(p.liveOf(m.UID), func(i provider.Instance) bool {
		return i.ProviderID == n.Spec.ProviderID && i.ID != p.runs[n.UID]
	})
}

// isDrained reports whether the condition says so, of the Node that m is linked to now: it names that, or people want no drain.
func isDrained(m *machine.Machine) bool {
	for _, c := range m.Status.Conditions {
		if c.Type != "Drained" || c.Status != corev1.ConditionTrue {
			continue
		}
		ofNode := c.Reason == "Drained" && c.Message != "" || c.Reason == "NoNode" || c.Reason == "NodeGone"
		return m.Status.NodeRef == nil || !ofNode || strings.Contains(c.Message, string(m.Status.NodeRef.UID))
	}
	return false
}

// ordinalIn returns the ordinal of m in what a ledger says: the one that m was adopted into, else the one whose Machine has m's name
// (RELIABILITY 2a.2). One that the ledger has not allocated is known by the label; whom it has let go stands nowhere (2a.6).
func ordinalIn(l machine.Ledger, m *machine.Machine) (int, bool) {
	for k, a := range l.Adopted {
		if a.UID == m.UID {
			return k, true
		}
	}
	for _, a := range l.Adopted {
		if a.UID == "" && a.Name == m.Name {
			return 0, false
		}
	}
	label, err := strconv.Atoi(m.Labels[machine.LabelOrdinal])
	if err == nil && label >= l.Next && nameAt(l.SetUID, label) == m.Name {
		return label, true
	}
	for k := range l.Next {
		if _, lent := l.Adopted[k]; !lent && nameAt(l.SetUID, k) == m.Name {
			return k, true
		}
	}
	return 0, false
}

// nameAt is what the Machine of an ordinal is called: it follows from the set's UID.
// ordinalOf returns the ordinal of a Machine in the ledger of the set that it is of.
func (p *Play) ordinalOf(l machine.Ledger, m *machine.Machine) (int, bool) {
	if l.SetUID != p.beside.uid || p.Neighbor == 0 {
		return ordinalIn(l, m)
	}
	for k := range l.Next {
		if p.secondAt(l, k, m) {
			return k, true
		}
	}
	return 0, false
}

func nameAt(set types.UID, k int) string { return nameIn(setName, set, k) }

func nameIn(name string, set types.UID, k int) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%d", set, k))
	name += "-"
	for _, b := range sum[:5] {
		name += string(letters[int(b)%len(letters)])
	}
	return name
}

// attempt is what the record on a Machine says of its latest attempt.
type attempt struct {
	Until, StartedAt, Unanswered time.Time
	Outcome                      string
	Request                      json.RawMessage
}

func attemptOf(m *machine.Machine) (a attempt) {
	if json.Unmarshal([]byte(readNewer("", m.Annotations[machine.AnnotationIntent])), &a) != nil {
		return attempt{}
	}
	return a
}

// claimed reports whether the record on m says that somebody is at work on it at a time.
func claimed(m *machine.Machine, at time.Time) bool { return at.Before(attemptOf(m).Until) }

// request is one that was to make an instance.
type request struct {
	uid  types.UID
	proc int
}

// requested remembers that q asks the cloud for an instance of a Machine: until it is answered nobody knows whether there is one, from
// the begin of the invocation until the cloud's horizon. If a clock jumped ahead meanwhile, its claim may say that this was long ago.
func (p *Play) requested(q *proc, c cloud.Call) {
	if c.Op == cloud.OpCreate {
		p.unanswered[request{c.Ref.UID, q.id}] = q.began.Add(-max(q.jumped, 0)).Add(p.horizon())
	}
}

// replied forgets that, if the cloud's own word came back.
func (p *Play) replied(q *proc, c cloud.Call, err error) {
	if _, said := err.(*provider.Error); c.Op == cloud.OpCreate && (err == nil || said) { //nolint:errorlint // as it is made
		delete(p.unanswered, request{c.Ref.UID, q.id})
	}
}

// surfaced forgets what was asked for, since it is there.
func (p *Play) surfaced(uid types.UID) {
	for r := range p.unanswered {
		if r.uid == uid {
			delete(p.unanswered, r)
		}
	}
}

// maySurface reports whether an instance of m may come that was asked for: by what was asked of the cloud, whatever the record says, or
// by what the record says to q. Times on record are of whole seconds.
func (p *Play) maySurface(q *proc, m *machine.Machine) bool {
	a := attemptOf(m)
	if a.Outcome == "" {
		a.Unanswered = a.StartedAt
	}
	if a.Request != nil && q.now().Before(a.Unanswered.Add(p.horizon())) {
		return true
	}
	for r, until := range p.unanswered {
		if r.uid == m.UID && p.clock.Before(until.Add(-time.Second)) {
			return true
		}
	}
	return false
}

// flightFor is how long a remediation may hold up others at most (RELIABILITY 2f), clocks may differ by a minute.
const flightFor = 29 * time.Minute

// flies remembers since when a check has Machines in flight.
func (p *Play) flies(old, h *machine.MachineHealthCheck) {
	before := flights(old)
	for uid := range flights(h) {
		if !before[uid] {
			p.flying[uid] = p.clock
		}
	}
}

// flights returns what a check's record has in flight.
func flights(h *machine.MachineHealthCheck) map[types.UID]bool {
	var r struct{ InFlight []struct{ UID types.UID } }
	_ = json.Unmarshal([]byte(h.Annotations[machine.AnnotationInFlight]), &r) // who writes nonsense has nothing in flight
	all := map[types.UID]bool{}
	for _, f := range r.InFlight {
		all[f.UID] = true
	}
	return all
}

type uids = map[types.UID]bool

// replaced forgets Machines that remediate deleted once they are gone and their set is whole again, or some other illness is what
// keeps it from that. One that people took out of the set is nobody's to replace.
func (p *Play) replaced() {
	if len(p.out) == 0 {
		return
	}
	set, all := p.set(), p.machines()
	for uid, then := range p.out {
		there, works := false, 0
		for _, m := range all {
			there = there || m.UID == uid && m.Labels[machine.LabelMachineSet] == setName
			if set != nil && ownerOf(m) == set.UID && m.DeletionTimestamp == nil && (then[m.UID] || !p.comes(m)) {
				works++
			}
		}
		whole := set == nil || max(works, int(set.Status.ReadyReplicas)) >= int(*set.Spec.Replicas)
		if !there && whole || p.clock.Sub(p.flying[uid]) >= flightFor {
			delete(p.out, uid)
		}
	}
}

// comes reports whether nobody knows yet how m turns out; after five minutes it is ill.
func (p *Play) comes(m *machine.Machine) bool {
	return p.clock.Sub(m.CreationTimestamp.Time) < 5*time.Minute && m.Status.NodeRef == nil && machine.Phase(m) != machine.PhaseFailed
}

// watchOut holds R-S10: of a check no more Machines are on their way out, or not replaced yet, than it may have in flight.
func (p *Play) watchOut(q *proc, m *machine.Machine, h *machine.MachineHealthCheck) {
	p.replaced()
	if _, again := p.out[m.UID]; again || p.unbounded {
		return
	}
	there := uids{}
	for _, x := range p.machines() {
		there[x.UID] = true
	}
	p.out[m.UID] = there
	if n := len(p.out); n > allowed(h) {
		p.violate("R-S10", "%s deletes %s while %d others are not replaced, at most %d may be out", q, m.Name, n-1, allowed(h))
	}
}

// allowed is how many Machines a check of the simulation may have in flight.
func allowed(h *machine.MachineHealthCheck) int {
	n, _ := strconv.Atoi(h.Annotations[machine.AnnotationMaxInFlight])
	return cmp.Or(n, 3)
}

// hasSlot reports whether the cluster's budget lists a Machine, for half an hour (RELIABILITY 2f). For q it does so too if
// the clock jumped past that since q last read.
func (p *Play) hasSlot(q *proc, uid types.UID) bool {
	cm := memory.Get[*corev1.ConfigMap](p.API, machine.Namespace, machine.ConfigMapDisrupt)
	var r struct {
		Slots []struct {
			UID types.UID
			At  time.Time
		}
	}
	if cm == nil || json.Unmarshal([]byte(cm.Data["deletions"]), &r) != nil {
		return false
	}
	for _, s := range r.Slots {
		if s.UID == uid && p.clock.Add(-max(q.unread, 0)).Before(s.At.Add(30*time.Minute)) {
			return true
		}
	}
	return false
}
