// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/sim"
)

// checked has two checks select the control plane.
func checked(c *sim.Config) { c.Masters, c.Checked = true, 2 }

// forgetsRoles takes what is on record of the control plane for a worker's.
func forgetsRoles(f function.Function) function.Function {
	anybodys := func(text string) string { return strings.ReplaceAll(text, `,"controlPlane":true`, "") }
	f = disruptions(f, func(data map[string]string) { data[machine.DisruptionKey] = anybodys(data[machine.DisruptionKey]) })
	return inFlight(f, func(_ snapshot.Snapshot, text string) string { return anybodys(text) })
}

// forgetsInTime takes nothing to be in flight for longer than half an hour.
func forgetsInTime(f function.Function) function.Function {
	return inFlight(f, func(s snapshot.Snapshot, text string) string {
		record := map[string]any{}
		if json.Unmarshal([]byte(text), &record) != nil {
			return text
		}
		flying, _ := record["inFlight"].([]any)
		record["inFlight"] = slices.DeleteFunc(flying, func(f any) bool {
			at, err := time.Parse(time.RFC3339, f.(map[string]any)["at"].(string))
			return err == nil && s.Now.Sub(at) >= 30*time.Minute
		})
		left, err := json.Marshal(record)
		if err != nil {
			panic(err)
		}
		return string(left)
	})
}

// inFlight changes what the records of checks are read as.
func inFlight(f function.Function, change func(snapshot.Snapshot, string) string) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		for i, h := range s.HealthChecks {
			if text := h.Annotations[machine.AnnotationInFlight]; text != "" {
				c := h.DeepCopy()
				c.Annotations[machine.AnnotationInFlight] = change(s, text)
				next.HealthChecks[i] = c
			}
		}
		return next
	})
}
