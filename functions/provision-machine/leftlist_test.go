// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// leftWorld is a cloud that does to a call what fault says, where an attempt of a Machine of that phase was refused midway, and left something.
func leftWorld(t *testing.T, at string, fault func(memory.Call) error) (w slowWorld, calls map[memory.Op]int) {
	t.Helper()
	w, calls = newSlowWorld(t, nil), map[memory.Op]int{}
	w.putLeft(t, "worker", at)
	var mu sync.Mutex
	w.cloud.Fault = func(_ context.Context, c memory.Call) error {
		if c.After {
			return nil
		}
		mu.Lock()
		calls[c.Op]++
		mu.Unlock()
		return fault(c)
	}
	return w, calls
}

func (w slowWorld) putLeft(t *testing.T, name, at string) {
	t.Helper()
	m := slowMachine(name, "", at)
	m.Spec.ProviderID = nil
	i := machine.NewIntent(m, 1, slowAccount, []byte(`{}`))
	left := w.cloud.Add(slowAccount, "c", provider.Instance{Name: m.Name, UID: m.UID, Token: i.Token, Child: true})
	i = i.Released(machine.OutcomeRefused, time.Time{})
	i.Code, i.Message, i.Failures, i.Progress = "Exhausted", "no room", 1, fmt.Appendf(nil, "[%q]", left)
	m.Annotations[machine.AnnotationIntent] = i.String()
	m.Annotations[machine.AnnotationInstanceState] = stateError
	w.put(t, m)
}

// left reports whether something of the first attempt of the Machine is on record.
func (w slowWorld) left(t *testing.T, name string) bool {
	t.Helper()
	i, err := machine.ParseIntent(w.machine(name))
	if err != nil {
		t.Fatal(err)
	}
	return i.Attempt == 1 && len(i.Progress) > 0
}

// A cloud that answers once in a scan, and not a second time, has answered: what came of the removal of what an attempt left is recorded,
// and the claim for it ends, without another look (2b.8).
func TestWhatCameOfARemovalNeedsNoOtherLook(t *testing.T) {
	t.Parallel()
	for at, look := range map[string]memory.Op{machine.PhaseFailed: memory.OpList, machine.PhaseProvisioning: memory.OpFind} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				last := time.Time{}
				w, calls := leftWorld(t, at, func(c memory.Call) error {
					if c.Op != look {
						return nil
					}
					if time.Since(last) < 5*time.Second {
						return provider.Errorf(provider.Throttled, "too many")
					}
					last = time.Now()
					return nil
				})
				for range 30 {
					w.scan()
					time.Sleep(10 * time.Second)
				}
				if n := calls[memory.OpDelete]; n > 2 || w.left(t, "worker") {
					t.Errorf("after five minutes, and %d removals, something is left: %v", n, w.left(t, "worker"))
				}
			})
		})
	}
}

// What the attempts of Failed Machines left goes where no list comes, too, in turn, each with a removal and the confirmation (2b.8).
func TestLeftoversGoWithoutAList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, calls := leftWorld(t, machine.PhaseFailed, func(c memory.Call) error {
			switch c.Op {
			case memory.OpList:
				return provider.Errorf(provider.Denied, "list: not authorized")
			case memory.OpFind:
				time.Sleep(time.Second)
			}
			return nil
		})
		const n = 60
		for k := range n {
			w.putLeft(t, fmt.Sprintf("worker-%02d", k), machine.PhaseFailed)
		}
		for range 60 {
			w.scan()
			time.Sleep(10 * time.Second)
		}
		left := 0
		for k := range n {
			if w.left(t, fmt.Sprintf("worker-%02d", k)) {
				left++
			}
		}
		if left > 0 || calls[memory.OpDelete] > 2*(n+1) {
			t.Errorf("after ten minutes something of %d Machines of %d is left, after %d removals", left, n, calls[memory.OpDelete])
		}
	})
}

// That the removal of what one attempt left was accepted a moment ago is not that of all that is the Machine's (2b.9).
func TestAllIsAskedForAfterLeftovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, calls := leftWorld(t, machine.PhaseFailed, func(memory.Call) error { return nil })
		process := w.process(w.api.As(name))
		handle := func() {
			if _, err := process.Handle(t.Context(), snapshot.Request{Kind: "Machine", Namespace: machine.Namespace, Name: "worker"}); err != nil {
				t.Error(err)
			}
		}
		handle()
		m := w.machine("worker").DeepCopy()
		m.DeletionTimestamp = new(metav1.Now())
		m.Status.Phase = new(machine.PhaseDeleting)
		m.Status.Conditions = append(m.Status.Conditions, machine.True(machine.ConditionDrained, machine.ReasonNoNode, ""))
		w.put(t, m)
		time.Sleep(time.Second)
		before := calls[memory.OpDelete]
		handle()
		if after := calls[memory.OpDelete]; before != 1 || after != 2 {
			t.Errorf("%d removals before the Machine was deleted, %d with those after, want 1 and 2", before, after)
		}
	})
}
