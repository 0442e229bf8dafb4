// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// tally counts the schedules of one strategy while they are played.
type tally struct {
	name               string
	wanted             int64 // 0: nobody knows yet
	played, violations atomic.Int64
	redundant          atomic.Int64 // that ended where they showed to be one of the others, told in another order
	alike              atomic.Int64 // of played: the same ones with every seed
	reach              [numDear][numFate]atomic.Int64
	told               atomic.Bool // what was violated first, with its story
	began              time.Time
	took               time.Duration // once it is over
}

// tallies are those of all strategies so far, in the order in which they began.
type tallies struct {
	mu    sync.Mutex
	began time.Time
	all   []*tally
}

var counted = &tallies{began: time.Now()}

// begin counts one strategy more, until end is called.
func (c *tallies) begin(name string, wanted int64) (t *tally, end func()) {
	t = &tally{name: name, wanted: wanted, began: time.Now()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, t)
	return t, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		t.took = time.Since(t.began)
	}
}

// report writes a line for each strategy that is being played every d, until stop is called.
func (c *tallies) report(w io.Writer, d time.Duration) (stop func()) {
	done := make(chan struct{})
	go func() {
		for tick := time.NewTicker(d); ; {
			select {
			case <-tick.C:
				c.progress(w)
			case <-done:
				tick.Stop()
				return
			}
		}
	}()
	return func() { close(done) }
}

func (c *tallies) progress(w io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	played, _ := c.sum()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	for _, t := range c.all {
		if t.took > 0 {
			continue
		}
		n, of := t.played.Load(), ""
		if t.wanted > 0 {
			of = fmt.Sprintf(" of %d", t.wanted)
		}
		fmt.Fprintf(w, "%-18s %9d%s, %.0f/s; %d in all, %v, %d MB\n", t.name, n, of, rate(n, time.Since(t.began)), played, time.Since(c.began).Round(time.Second), memory.Sys>>20)
	}
}

// table writes what was played.
func (c *tallies) table(w io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) == 0 {
		return
	}
	fmt.Fprintf(w, "%-18s  %9s  %11s  %10s\n", "strategy", "schedules", "schedules/s", "violations")
	for _, t := range c.all {
		fmt.Fprintf(w, "%-18s  %9d  %11.0f  %10d\n", t.name, t.played.Load(), rate(t.played.Load(), t.took), t.violations.Load())
	}
	played, violations := c.sum()
	d := time.Since(c.began)
	for _, t := range c.all {
		if n := t.redundant.Load(); n > 0 {
			fmt.Fprintf(w, "%-18s  %9d  more are one of these, told in another order\n", t.name, n)
		}
		if n := t.alike.Load(); n > 0 {
			fmt.Fprintf(w, "%-18s  %9d  of these are the same with every seed\n", t.name, n)
		}
	}
	fmt.Fprintf(w, "%-18s  %9d  %11.0f  %10d  in %v on %d cores\n", "all", played, rate(played, d), violations, d.Round(time.Second), runtime.GOMAXPROCS(0))
}

// add counts what a schedule struck.
func (t *tally) add(r *reach) {
	for of := range r {
		for f, n := range r[of] {
			if n > 0 {
				t.reach[of][f].Add(int64(n))
			}
		}
	}
}

// sum is what all of them struck.
func (t *tally) sum() (r reach) {
	for of := range r {
		for f := range r[of] {
			r[of][f] = int(t.reach[of][f].Load())
		}
	}
	return r
}

// reached writes which calls were struck that make, or remove, instances.
func (c *tallies) reached(w io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%-18s", "while faults occur")
	for _, of := range dearNames[creates:] {
		fmt.Fprintf(w, "  %8s: %s", of, strings.Join(fateNames[1:], ", "))
	}
	fmt.Fprintln(w)
	for _, t := range c.all {
		r := t.sum()
		fmt.Fprintf(w, "%-18s", t.name)
		for of := creates; of < numDear; of++ {
			fmt.Fprintf(w, "  %8d: %s", r.calls(of), strings.Trim(fmt.Sprint(r[of][refused:]), "[]"))
		}
		fmt.Fprintf(w, "  %.2f a schedule\n", float64(r.struck())/float64(max(1, t.played.Load())))
	}
}

func (c *tallies) sum() (played, violations int64) {
	for _, t := range c.all {
		played, violations = played+t.played.Load(), violations+t.violations.Load()
	}
	return played, violations
}

func rate(n int64, d time.Duration) float64 { return float64(n) / max(d.Seconds(), 1e-9) }
