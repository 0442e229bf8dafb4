// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Namespaces returns where the objects that q selects are read, given the namespaces that the deployment serves. The
// machine layer's own kinds live in those, and are nowhere else for whoever asks: a Node's annotation may name a Machine
// where nobody may look. Everything else that has a namespace is wanted from all of them, which is the empty namespace, as
// is that of objects without one.
func Namespaces(q snapshot.Query, served []string) []string {
	own := false
	switch q.Kind {
	case "Machine", "MachineSet", "MachineHealthCheck", plan.LegacyHealthCheck, "MachineAutoscaler":
		own = true
	}
	switch {
	case own && q.Namespace != "" && !slices.Contains(served, q.Namespace):
		return nil
	case q.Namespace == "" && (own || q.Kind == "ConfigMap"):
		return served
	}
	return []string{q.Namespace}
}

// Optional reports whether a cluster may lack kind k altogether: then there are no objects of it, and that is an
// answer. The absence of any other kind is an error.
func Optional(k plan.Kind) bool {
	return k == "Infrastructure" || k == plan.LegacyHealthCheck || plan.Foreign(k)
}
