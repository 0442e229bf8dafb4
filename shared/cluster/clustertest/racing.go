// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

var racing = []test{
	{"of concurrent updates one wins", concurrentUpdates},
	{"of concurrent creates one wins", concurrentCreates},
}

func concurrentUpdates(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	won, others := race(func(i int) error {
		return h.Cluster.Apply(t.Context(), edit(m, func(m *machine.Machine) { m.Labels = map[string]string{app: fmt.Sprint(i)} }))
	})
	if won != 1 {
		t.Errorf("%d won", won)
	}
	for _, err := range others {
		if !errors.Is(err, cluster.ErrConflict) {
			t.Errorf("loser: %v", err)
		}
	}
}

func concurrentCreates(t *testing.T, h Harness) {
	won, others := race(func(int) error { return h.Cluster.Apply(t.Context(), plan.Create{Object: h.machine("a")}) })
	if won != 1 {
		t.Errorf("%d won", won)
	}
	for _, err := range others {
		if !errors.Is(err, cluster.ErrExists) {
			t.Errorf("loser: %v", err)
		}
	}
}

// race runs f at once several times and returns how often it succeeded and the errors of the others.
func race(f func(int) error) (won int, others []error) {
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		others = append(others, err)
	}
	return won, others
}
