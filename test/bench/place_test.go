// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/scheduling"
)

var workloads = flag.String("workloads", "testdata", "folder of workload files")

// BenchmarkPlace goes from Kubernetes objects in memory to the Nodes to add, grouping included.
func BenchmarkPlace(b *testing.B) {
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
			nodes, waiting, offers := w.NodesWithPods(), w.Waiting(), w.Offers()
			if len(waiting) == 0 {
				b.Skip("nothing waits")
			}
			b.ReportAllocs()
			var p scheduling.Placement
			for b.Loop() {
				p = scheduling.NewWorld(nodes, waiting, nil).Place(waiting, offers)
			}
			report(b, p, offers)
		})
	}
}

func report(b *testing.B, p scheduling.Placement, offers []scheduling.Offer) {
	b.Helper()
	var nodes, left int
	var price int64
	for _, o := range p.Openings {
		nodes += o.Count
		price += int64(o.Count) * offers[o.Offer].Price
	}
	for _, n := range p.Left {
		left += n
	}
	bound := p.Bound()
	b.ReportMetric(float64(nodes), "nodes")
	b.ReportMetric(float64(price)/1e5, "price")
	b.ReportMetric(float64(bound)/1e5, "bound")
	b.ReportMetric(100*(float64(price)/float64(bound)-1), "%over")
	b.ReportMetric(float64(left), "left")
}

func titleOf(file string) string {
	title, _, _ := strings.Cut(filepath.Base(file), ".json")
	return title
}
