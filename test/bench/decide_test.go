// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"

	evaluateautoscale "github.com/machine-functions/machine-functions/functions/evaluate-autoscale"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// BenchmarkDecide is one whole evaluation by evaluate-autoscale, from the objects in memory to the plan.
func BenchmarkDecide(b *testing.B) {
	files, err := Files(*workloads)
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range files {
		b.Run(titleOf(file), func(b *testing.B) {
			w, err := Load(file)
			if err != nil {
				b.Fatal(err)
			}
			f := evaluateautoscale.Function
			seen, _, err := scenario.Observe(f, scenario.Scenario{World: w.Snapshot()})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			var p plan.Plan
			for b.Loop() {
				p = f.Decide(seen)
			}
			b.ReportMetric(float64(len(p.Actions())), "actions")
		})
	}
}
