// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// jobsSet grows and shrinks by the Pods of Jobs, between its bounds of one and six; people leave it alone.
	jobsSet = "flood-jobs"
	// sickEvery is how often a Node of the other sets becomes unready, and stays so until its Machine is replaced.
	sickEvery = 15 * time.Second
	// jobEvery is long enough for what one Job made the set grow by to become idle before the next one.
	jobEvery = 60 * time.Second
)

// decidesToo gives remediate and evaluate-autoscale something to decide about: a check of all Machines, and a set for the Pods of Jobs.
func (f *flood) decidesToo(t *testing.T) {
	t.Helper()
	f.set(t, jobsSet, 1, "4c12g30d", "")
	f.do(t, "apply -f testdata/flood.yaml")
	f.running(t, jobsSet, 1)
}

// sickens makes Nodes unready, one after the other.
func (f *flood) sickens(ctx context.Context, t *testing.T) {
	t.Helper()
	for ctx.Err() == nil {
		nodes := strings.Fields(f.do(t, "get nodes -l example.com/set="+floodSets[rand.IntN(3)]+" -o name")) //nolint:gosec // a load
		if len(nodes) > 0 {
			node := nodes[rand.IntN(len(nodes))]                                     //nolint:gosec // a load
			_, _ = f.run("", "label", node, "machine-functions.dev/kubelet=unready") // it may just have gone
		}
		sleep(ctx, sickEvery)
	}
}

// works makes Jobs whose Pods need more Nodes than there are.
func (f *flood) works(ctx context.Context, t *testing.T) {
	t.Helper()
	for ctx.Err() == nil {
		f.do(t, "create -f testdata/floodjob.yaml")
		sleep(ctx, jobEvery)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// decided waits until no Pod waits, nobody is ill, and the set of the Jobs is at its minimum again.
func (f *flood) decided(t *testing.T, machines int) {
	t.Helper()
	await(t, "all Jobs are done", func() string {
		succeeded := f.do(t, "get jobs -n default -o jsonpath={range.items[*]}{.status.succeeded}/{end}")
		return strings.ReplaceAll(succeeded, "6/", "")
	})
	f.running(t, jobsSet, 1)
	f.shows(t, "get machinehealthcheck flood"+inMachines+" -o jsonpath={.status.currentHealthy}/{.status.expectedMachines}",
		fmt.Sprintf("^%d/%d$", machines, machines))
}

// mustHaveDecided are Events of remediate and evaluate-autoscale without which the flood showed nothing of these.
var mustHaveDecided = []string{"remediate MachineDeleted", "evaluate-autoscale ScaledUpGroup", "evaluate-autoscale ScaleDownEmpty"}

var eventsTold = regexp.MustCompile(`(?m)^machines_(remediate|evaluate_autoscale)_events_total\{reason="(.*)",type=".*"\} (\d+)$`)

// decisions tells of the Events of remediate and evaluate-autoscale.
func (a *account) decisions() string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(a.decided)) {
		all = append(all, fmt.Sprintf("%s %d", what, a.decided[what]))
	}
	return strings.Join(all, ", ")
}

// What remediate and evaluate-autoscale told is added up by reason, over processes.
func TestDecisions(t *testing.T) {
	t.Parallel()
	all, said := newAccount(), newAccount()
	said.read(t, []byte(`# TYPE machines_remediate_events_total counter
machines_remediate_events_total{reason="MachineDeleted",type="Normal"} 2
machines_evaluate_autoscale_events_total{reason="ScaledUpGroup",type="Normal"} 3
machines_link_node_events_total{reason="Linked",type="Normal"} 5
`))
	all.add(said)
	all.add(said)
	if got, want := all.decisions(), "evaluate-autoscale ScaledUpGroup 6, remediate MachineDeleted 4"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}
