// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// OpenShift's own definitions of MachineAutoscaler and ClusterAutoscaler know no conditions: the API server prunes what is written, and each
// scan would find that it is missing. What was written at a revision that is still the object's was pruned; that is remembered, and told once.

// prunedKey is where the ConfigMap of the autoscaler has what was pruned: by UID of the object the digest of the condition, and the day.
const prunedKey = "pruned"

// telling is a condition that is to be written, with what is told along with it.
type telling struct {
	write  plan.UpdateStatus
	c      metav1.Condition
	source string
	notes  []plan.Note
	other  bool // the write changes more than the condition
}

// sequence returns what is to be done: nothing once it is known that what is written is pruned. It is tried again every day, as the definition
// may be another one by then, and then nothing is told along with it.
func (t telling) sequence(s snapshot.Snapshot) plan.Sequence {
	digest, day := t.digest(s.Now)
	switch was, tried, _ := strings.Cut(prunedOf(s)[t.write.Old.GetUID()], " "); {
	case was == digest && tried == day && !t.other:
		return plan.Sequence{}
	case was == digest:
		return plan.Sequence{Do: []plan.Action{t.write}}
	}
	return plan.Sequence{Do: []plan.Action{t.write}, Notes: t.notes}
}

func (t telling) digest(now time.Time) (digest, day string) {
	return digestOf(fmt.Sprint(t.c.Type, t.c.Status, t.c.Reason, t.c.Message, t.c.ObservedGeneration)), now.UTC().Format(time.DateOnly)
}

// prunedOf returns what was pruned, as far as it is known; nothing of a text that cannot be read, which is written anew.
func prunedOf(s snapshot.Snapshot) (all map[types.UID]string) {
	if cm := s.ConfigMap(machine.Namespace, machine.ConfigMapStatus); cm != nil && cm.Data[prunedKey] != "" {
		_ = json.Unmarshal([]byte(cm.Data[prunedKey]), &all)
	}
	return all
}

// notePruned remembers of objects that what was written into their status is not there, although it was written, and nothing else was since.
func notePruned(s snapshot.Snapshot) plan.Sequence {
	if !s.Has(stateQuery) {
		return plan.Sequence{}
	}
	known := prunedOf(s)
	if len(s.Outcomes) == 0 && len(known) == 0 {
		return plan.Sequence{}
	}
	next, notes := map[types.UID]string{}, []plan.Note(nil)
	look := func(o plan.Object, has []metav1.Condition, t telling, changed bool) {
		uid := o.GetUID()
		if was, is := known[uid]; is && len(has) == 0 {
			next[uid] = was
		}
		if !changed {
			return
		}
		if out, tried := s.Outcome(t.write); !tried || out.Result != plan.Done {
			return
		}
		if next[uid] == "" {
			notes = append(notes, plan.Warning(o, "ConditionsPruned", "the definition of its kind has no status.conditions: what they would say "+
				"is told in Events, and in configmap/"+machine.ConfigMapStatus).From(t.source))
		}
		digest, day := t.digest(s.Now)
		next[uid] = digest + " " + day
	}
	for _, ma := range s.MachineAutoscalers {
		t, changed := applied(s, ma)
		look(ma, ma.Status.Conditions, t, changed)
	}
	if ca := clusterAutoscaler(s); ca != nil {
		t, changed := validity(s, ca)
		look(ca, ca.Status.Conditions, t, changed)
	}
	if maps.Equal(next, known) {
		return plan.Sequence{}
	}
	text := ""
	if len(next) > 0 {
		b, err := json.Marshal(next)
		if err != nil { // strings marshal
			return plan.Sequence{}
		}
		text = string(b)
	}
	return plan.Sequence{Do: []plan.Action{storing(s, map[string]string{prunedKey: text}, "what is pruned")}, Notes: notes}
}
