// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	evaluateautoscale "github.com/machine-functions/machine-functions/functions/evaluate-autoscale"
	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// Result is one line about one workload, with the fields that other autoscalers' measurements have. Times are the best
// of the runs, of one whole decision: from the objects of the cluster in memory to the plan.
type Result struct {
	Impl       string         `json:"impl"`
	Workload   string         `json:"workload"`
	Pending    int            `json:"pendingPods"`
	Running    int            `json:"runningPods"`
	Nodes      int            `json:"existingNodes"`
	WallMS     float64        `json:"wallMs"`
	CPUMS      float64        `json:"cpuMs"` // of the process: user and system
	FirstMS    float64        `json:"firstWallMs"`
	FirstCPUMS float64        `json:"firstCpuMs"`
	Loops      int            `json:"loops"` // decisions until nothing more is wanted
	NewNodes   int            `json:"newNodes"`
	ByGroup    map[string]int `json:"byGroup,omitempty"`
	Price      float64        `json:"price"`
	Unserved   int            `json:"unservedPods"`
	Removed    int            `json:"removedNodes,omitempty"` // Nodes named as unneeded
	AllocMB    float64        `json:"allocMB"`                // of one decision
	Allocs     uint64         `json:"allocs"`
	HeapMB     float64        `json:"heapMB"`    // the cluster's objects, without what is garbage
	PeakRSSMB  float64        `json:"peakRssMB"` // of the process, the cluster's objects included, and what was garbage when they were made
	Bound      float64        `json:"lowerBoundPrice,omitempty"`
	Over       float64        `json:"overBoundPercent"`
	BoundCPUMS float64        `json:"boundCpuMs"` // of proving the bound; it is part of cpuMs
	LoadAvg    string         `json:"loadavg"`
}

// Measure takes so many decisions about a workload, and the bound.
func Measure(w *Workload, runs int) (Result, error) {
	r := Result{Impl: "machine-functions", Workload: w.Name, Nodes: len(w.Nodes), Loops: 1, WallMS: -1, LoadAvg: loadAverage()}
	for _, a := range w.Apps {
		r.Pending += a.Pending
		for _, on := range a.Running {
			r.Running += on[1]
		}
	}
	seen, _, err := scenario.Observe(evaluateautoscale.Function, scenario.Scenario{World: w.Snapshot()})
	if err != nil {
		return r, err
	}
	var p plan.Plan
	for k := range runs {
		wall, cpu := r.decide(seen, &p)
		if k == 0 {
			r.FirstMS, r.FirstCPUMS = wall, cpu
			r.WallMS, r.CPUMS = wall, cpu
		}
		r.WallMS, r.CPUMS = min(r.WallMS, wall), min(r.CPUMS, cpu)
	}
	r.PeakRSSMB = PeakMB()
	if err := r.read(w, seen, p); err != nil {
		return r, err
	}
	if r.Pending > 0 {
		r.prove(w)
	}
	return r, nil
}

// decide takes one decision, and counts what it allocates.
func (r *Result) decide(seen snapshot.Snapshot, p *plan.Plan) (wall, cpu float64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began, used := time.Now(), cpuTime()
	*p = evaluateautoscale.Function.Decide(seen)
	wall, cpu = milliseconds(time.Since(began)), milliseconds(cpuTime()-used)
	runtime.ReadMemStats(&after)
	r.HeapMB = float64(before.HeapAlloc) / 1e6
	r.AllocMB, r.Allocs = float64(after.TotalAlloc-before.TotalAlloc)/1e6, after.Mallocs-before.Mallocs
	return wall, cpu
}

// read takes from the plan which sets grow, and which Nodes are unneeded.
func (r *Result) read(w *Workload, seen snapshot.Snapshot, p plan.Plan) error {
	for _, a := range p.Actions() {
		if u, ok := a.(plan.Update); ok {
			if set, ok := u.New.(*machine.MachineSet); ok {
				r.grow(w, set.Name, int(*set.Spec.Replicas-*u.Old.(*machine.MachineSet).Spec.Replicas))
			}
		}
		if c, ok := a.(plan.Create); ok {
			if cm, ok := c.Object.(*corev1.ConfigMap); ok && cm.Name == machine.ConfigMapStatus {
				state, err := autoscaling.ParseState(cm.Data[autoscaling.StateKey])
				if err != nil {
					return err
				}
				r.Removed = len(state.Unneeded)
			}
		}
	}
	if seen.ConfigMap(machine.Namespace, machine.ConfigMapStatus) != nil {
		return fmt.Errorf("%s: the cluster has a state already", w.Name)
	}
	return nil
}

func (r *Result) grow(w *Workload, set string, by int) {
	if by == 0 {
		return
	}
	if r.ByGroup == nil {
		r.ByGroup = map[string]int{}
	}
	r.ByGroup[set] += by
	r.NewNodes += by
	for _, g := range w.Groups {
		if g.Name == set {
			r.Price += float64(by) * g.Price
		}
	}
}

// prove places the waiting Pods once more, to see how many have no place and what the least price is.
func (r *Result) prove(w *Workload) {
	waiting := w.Waiting()
	p := scheduling.NewWorld(w.NodesWithPods(), waiting, nil).Place(waiting, w.Offers())
	for _, n := range p.Left {
		r.Unserved += n
	}
	used := cpuTime()
	r.Bound = float64(p.Bound()) / 1e5
	r.BoundCPUMS = milliseconds(cpuTime() - used)
	if r.Bound > 0 {
		r.Over = 100 * (r.Price/r.Bound - 1)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}
