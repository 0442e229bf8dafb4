// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
)

// A thousand Machines live from the first to the last write, woken by events and by the clock, on a cloud that takes a
// minute to boot and half a minute to remove. What they cost is what docs/calls.md says, call by call; nothing is left
// and nothing was made twice (R-S1, R-S2, R-L1).
func TestCallsOfAThousandLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // however busy the machine is, an invocation has its time
		lives := 1000
		if testing.Short() {
			lives = 200
		}
		w := machineLayer()
		w.Cloud.Boot, w.Cloud.Removal = time.Minute, 30*time.Second
		calls := countCalls(w)
		b := NewBroker(w, w.Functions...)
		if err := w.API.Put(Set("worker", int32(lives))); err != nil {
			t.Fatal(err)
		}
		live(t, w, b)
		if got, want := state(w), fmt.Sprintf("machines map[Running:%d] nodes %d instances %d", lives, lives, lives); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		if err := w.API.Scale(machine.Namespace, "worker", 0); err != nil {
			t.Fatal(err)
		}
		live(t, w, b)
		if got, want := state(w), "machines map[] nodes 0 instances 0"; got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		if n := made(w); n != lives {
			t.Errorf("%d instances were ever made", n)
		}
		for _, wr := range w.API.Writes() {
			switch wr.Actor {
			case memory.User:
			default:
				calls[fmt.Sprintf("%s %s %s", wr.Actor, wr.Verb, wr.Resource)]++
			}
			if wr.Err != nil {
				t.Error(wr)
			}
		}
		if diff := cmp.Diff(documented(t), perLife(calls, lives)); diff != "" {
			t.Errorf("docs/calls.md (-says +is):\n%s", diff)
		}
		limits(t, calls, lives)
	})
}

// live lets time pass until nothing happens any more.
func live(t *testing.T, w *World, b *Broker) {
	t.Helper()
	for range 60 {
		before := len(w.API.Writes())
		w.Pass(10 * time.Second)
		if err := w.Kubelets(); err != nil {
			t.Fatal(err)
		}
		if err := b.Deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		settled := len(w.API.Writes()) == before
		for _, i := range w.Cloud.Instances() {
			settled = settled && string(i.State) == "running"
		}
		if settled && len(memory.List[*corev1.Node](w.API)) == len(memory.List[*machine.Machine](w.API)) {
			return
		}
	}
	t.Fatal("does not settle in ten minutes")
}

func countCalls(w *World) map[string]int {
	var mu sync.Mutex
	calls := map[string]int{}
	w.Cloud.Fault = func(_ context.Context, c cloud.Call) error {
		mu.Lock()
		defer mu.Unlock()
		if !c.After {
			calls["provision-machine "+string(c.Op)+" instance"]++
		}
		return nil
	}
	return calls
}

func made(w *World) (n int) {
	for _, e := range w.Cloud.History() {
		if e.What == cloud.Created {
			n++
		}
	}
	return n
}

// perLife says how often each call was made in one life; those that many lives share are "shared".
func perLife(calls map[string]int, lives int) map[string]string {
	out := map[string]string{}
	for call, n := range calls {
		switch times := (n + lives/2) / lives; {
		case times > 0 && n >= times*lives && n-times*lives < lives/100: // the first of all may ask once more
			out[call] = fmt.Sprint(times)
		case n < lives/10:
			out[call] = "shared"
		default:
			out[call] = fmt.Sprintf("%.3f", float64(n)/float64(lives))
		}
	}
	return out
}

var row = regexp.MustCompile(`(?m)^\| ([a-z-]+) \| ([a-z]+) \| ([a-z/]+) \| (\d+|shared) \|`)

// documented reads the tables of docs/calls.md.
func documented(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/calls.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range row.FindAllStringSubmatch(string(text), -1) {
		out[strings.Join(r[1:4], " ")] = r[4]
	}
	return out
}

// limits are what one life may cost at most.
func limits(t *testing.T, calls map[string]int, lives int) {
	t.Helper()
	sum := map[string]int{}
	for _, call := range slices.Sorted(maps.Keys(calls)) {
		switch what := call[strings.LastIndex(call, " ")+1:]; what {
		case "instance", "events":
			sum[what] += calls[call]
		default:
			sum["objects"] += calls[call]
		}
	}
	for what, most := range map[string]float64{"objects": 14.1, "events": 5.1, "instance": 4.1} { // 19, and what lives share
		if got := float64(sum[what]) / float64(lives); got > most {
			t.Errorf("%.3f calls for %s in one life, at most %.1f are wanted", got, what, most)
		}
	}
	t.Logf("one life: %.3f writes of objects, %.3f Events, %.3f calls to the cloud",
		float64(sum["objects"])/float64(lives), float64(sum["events"])/float64(lives), float64(sum["instance"])/float64(lives))
}
