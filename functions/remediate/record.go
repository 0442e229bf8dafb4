// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

const recordSchema = 1

const (
	// holdFor is how long a remediation counts as under way at least: the status of its set may be older than it.
	holdFor = time.Minute
	// releaseAfter is when it no longer does, whatever became of it (RELIABILITY 2f).
	releaseAfter = 30 * time.Minute
)

// record is what a check remembers, in its annotation machine.AnnotationInFlight.
type record struct {
	Schema   int                       `json:"schema"`
	InFlight []remediation             `json:"inFlight,omitempty"`
	Missing  map[types.UID]metav1.Time `json:"missing,omitempty"` // Machines whose Node is gone: since when that is known
}

// remediation is one Machine being replaced, until its replacement works.
type remediation struct {
	Machine string      `json:"machine"`
	UID     types.UID   `json:"uid"`
	Set     string      `json:"set,omitempty"`
	At      metav1.Time `json:"at"`
}

func parseRecord(text string) (record, error) {
	if text == "" {
		return record{Schema: recordSchema}, nil
	}
	var r record
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return record{}, err
	}
	if r.Schema != recordSchema {
		return record{}, fmt.Errorf("schema %d, want %d", r.Schema, recordSchema)
	}
	return r, nil
}

// String returns the record as it is stored; empty if there is nothing to remember.
func (r record) String() string {
	if len(r.InFlight)+len(r.Missing) == 0 {
		return ""
	}
	b, err := json.Marshal(r)
	if err != nil { // no field of record can fail to marshal
		return ""
	}
	return string(b)
}

func (r record) has(m *machine.Machine) bool {
	return slices.ContainsFunc(r.InFlight, func(f remediation) bool { return f.UID == m.UID })
}

func (r record) missingSince(m *machine.Machine, now time.Time) time.Time {
	if t, ok := r.Missing[m.UID]; ok {
		return t.Time
	}
	return now.Truncate(time.Second)
}

// settled returns the record with what is over left out, and with the Machines whose Node is gone.
func (c check) settled() record {
	next := record{Schema: recordSchema}
	for _, f := range c.record.InFlight {
		if c.Now.Before(f.At.Add(releaseAfter)) && c.underWay(f) {
			next.InFlight = append(next.InFlight, f)
		}
	}
	for _, t := range c.targets {
		if t.reason == reasonNotFound {
			if next.Missing == nil {
				next.Missing = map[types.UID]metav1.Time{}
			}
			next.Missing[t.m.UID] = metav1.NewTime(c.record.missingSince(t.m, c.Now))
		}
	}
	return next
}

// underWay reports whether a Machine is still sick or going, or gone without its set having all Machines ready again.
func (c check) underWay(f remediation) bool {
	for _, t := range c.targets {
		if t.m.UID == f.UID {
			return t.m.DeletionTimestamp != nil || t.sick(c.Now)
		}
	}
	if c.Now.Before(f.At.Add(holdFor)) {
		return true
	}
	set := c.MachineSet(c.h.Namespace, f.Set)
	return set != nil && (set.Spec.Replicas == nil || set.Status.ReadyReplicas < *set.Spec.Replicas)
}

func (c check) commit(next record) plan.Sequence {
	h := c.h.DeepCopy()
	if h.Annotations == nil {
		h.Annotations = map[string]string{}
	}
	h.Annotations[machine.AnnotationInFlight] = next.String()
	if next.String() == "" {
		delete(h.Annotations, machine.AnnotationInFlight)
	}
	why := "nothing in flight"
	if len(next.InFlight) > 0 {
		why = "in flight: " + next.InFlight[0].Machine
	}
	for _, f := range next.InFlight[min(1, len(next.InFlight)):] {
		why += ", " + f.Machine
	}
	if len(next.Missing) > 0 {
		why += fmt.Sprintf("; %d nodes not found", len(next.Missing))
	}
	return plan.Sequence{Do: []plan.Action{plan.Update{Old: c.h, New: h, Why: why}}}
}
