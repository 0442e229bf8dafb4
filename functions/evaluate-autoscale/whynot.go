// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// Reasons why a Node is not removed, in the words of SPEC C66.
const (
	whyDisabled      = "ScaleDownDisabledAnnotation: annotation " + disabledAnnotation
	whyNotAutoscaled = "NotAutoscaled: it belongs to no machine set that is resized"
	whyOther         = "NotUnneededOtherReason: "
	whyUnhealthy     = whyOther + "the cluster is unhealthy, and what nobody needs is found anew once it is not"
	noPlace          = "NoPlaceToMovePods: "
	unneededSince    = ": unneeded since "
)

const (
	// heldFor is how long a reason must have held before it is written on its Node.
	heldFor = time.Minute
	// maxExplained bounds the Nodes that one scan writes reasons on, maxHeld those whose new reason is remembered until
	// it has held: a large cluster that changes all over costs little at a time.
	maxExplained = 20
	maxHeld      = 200
)

// because notes why a Node stays. What is not noted in a scan keeps the reason that it has.
func (sc *scan) because(n *corev1.Node, why string) {
	if sc.why == nil {
		sc.why = map[types.UID]string{}
	}
	sc.why[n.UID] = why
}

// notUnderutilized is the reason of a Node that is used too much. The part is rounded down to a twentieth, so that not
// every Pod changes the reason.
func (sc *scan) notUnderutilized(c candidate) string {
	return fmt.Sprintf("NotUnderutilized: %s above %.2f, threshold %g", c.use.Resource, math.Floor(c.use.Max*20)/20, sc.threshold(c))
}

// blockedBy is the reason of a Node that a Pod keeps.
func blockedBy(p *corev1.Pod, why string) string {
	reason := "BlockedByPod"
	if why == onCompletion {
		reason = why
	}
	return fmt.Sprintf("%s: pod %s/%s: %s", reason, p.Namespace, p.Name, why)
}

// untime takes back what Nodes say of times that count no more, because the cluster is unhealthy.
func (sc *scan) untime() {
	for _, n := range sc.Nodes {
		if strings.Contains(n.Annotations[machine.AnnotationScaleDownReason], unneededSince) {
			sc.because(n, whyUnhealthy)
		}
	}
	sc.softTaint(nil)
	sc.writeReasons()
}

// writeReasons puts onto Nodes why they are not removed, where kubectl describe node shows it (SPEC W2, D42). A reason
// is remembered when it is new, written once it has held, and costs nothing from then on.
func (sc *scan) writeReasons() {
	held := map[types.UID]autoscaling.Held{}
	room := maxExplained - sc.nodesWritten()
	for _, n := range sc.Nodes {
		h, known, changed := sc.hold(n)
		switch {
		case !changed:
		case room > 0 && !sc.Now.Before(h.Since.Add(heldFor)) && !sc.touched(n):
			room--
			sc.writeReason(n)
		case known || len(held) < maxHeld:
			held[n.UID] = h
		}
	}
	sc.keepRoomy(held)
	sc.state.Held = held
	if len(held) == 0 {
		sc.state.Held = nil
	}
}

// hold returns since when a reason holds that is not the one on its Node, and whether that was known before. What was not
// judged does not change.
func (sc *scan) hold(n *corev1.Node) (h autoscaling.Held, known, changed bool) {
	why, judged := sc.why[n.UID]
	if !judged && sc.settings.ScaleDownEnabled || why == n.Annotations[machine.AnnotationScaleDownReason] {
		return h, false, false
	}
	h, known = sc.state.Held[n.UID]
	if of := digestOf(why); !known || h.Reason != of {
		h = autoscaling.Held{Reason: of, Since: *sc.now()}
	}
	return h, known, true
}

func (sc *scan) writeReason(n *corev1.Node) {
	next := n.DeepCopy()
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[machine.AnnotationScaleDownReason] = sc.why[n.UID]
	if sc.why[n.UID] == "" {
		delete(next.Annotations, machine.AnnotationScaleDownReason)
	}
	sc.redo = append(sc.redo, plan.Sequence{Do: []plan.Action{plan.Update{Old: n, New: next, Why: "why it stays"}}})
}

// nodesWritten counts the writes of Nodes of this invocation: a scan looks again after it wrote, and has one allowance.
func (sc *scan) nodesWritten() (n int) {
	for key := range sc.Outcomes {
		n += truth(strings.HasPrefix(string(key), "update node/"))
	}
	return n
}

// touched reports whether the scan writes a Node already: a plan writes each object once.
func (sc *scan) touched(n *corev1.Node) bool {
	in := func(all []plan.Action) bool {
		return slices.ContainsFunc(all, func(a plan.Action) bool { return touches(a, n) })
	}
	return in(sc.do) || slices.ContainsFunc(sc.redo, func(s plan.Sequence) bool { return in(s.Do) })
}

func digestOf(text string) string {
	h := fnv.New32a()
	h.Write([]byte(text))
	return fmt.Sprintf("%08x", h.Sum32())
}

// showBackoff keeps on every group's set until when it is left alone and why, and takes the wish to try again at once
// off it, once it was granted (SPEC W15).
func (sc *scan) showBackoff() {
	for _, g := range sc.groups {
		if pendingResize(g, sc.state.Groups[g.id]) {
			continue // one change of a set at a time: its write shows the backoff as well
		}
		if _, _, differs := sc.backoffOf(g); !differs {
			continue
		}
		next := g.set.DeepCopy()
		sc.withBackoff(g, next)
		sc.once(plan.Update{Old: g.set, New: next, Why: "backoff"})
	}
}

// backoffOf returns what a group's set is to say of its backoff, whether its wish to try again was granted, and whether the
// set says otherwise.
func (sc *scan) backoffOf(g *group) (text string, granted, differs bool) {
	if sc.backedOff(g) {
		text = backoffText(sc.state.Groups[g.id])
	}
	_, wished := g.set.Annotations[machine.AnnotationRetryScaleUp]
	granted = wished && !fails(sc.before.Groups[g.id])
	return text, granted, granted || text != g.set.Annotations[machine.AnnotationBackoff]
}

// fails reports whether anything is remembered of a group that a wish to try again ends.
func fails(n autoscaling.NodeGroup) bool {
	return n.LastFailure != nil || len(n.Useless) > 0 || n.Request != nil && n.Request.TimedOut
}

// withBackoff puts the backoff of a group onto a copy of its set.
func (sc *scan) withBackoff(g *group, set *machine.MachineSet) {
	text, granted, differs := sc.backoffOf(g)
	if !differs {
		return
	}
	if set.Annotations == nil {
		set.Annotations = map[string]string{}
	}
	if granted {
		delete(set.Annotations, machine.AnnotationRetryScaleUp)
	}
	delete(set.Annotations, machine.AnnotationBackoff)
	if text != "" {
		set.Annotations[machine.AnnotationBackoff] = text
	}
}

// grantRetry forgets the failures of a group whose set asks for another try.
func (sc *scan) grantRetry(g *group) {
	if _, wished := g.set.Annotations[machine.AnnotationRetryScaleUp]; !wished {
		return
	}
	sc.change(g, func(n *autoscaling.NodeGroup) {
		n.Failures, n.LastFailure, n.BackoffUntil, n.Reason, n.Useless = 0, nil, nil, "", nil
		if n.Request != nil && n.Request.TimedOut {
			n.Request = nil
		}
	})
}
