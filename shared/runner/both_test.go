// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// both returns the accounts of one cloud under both ids of a cluster.
func both(t *testing.T, clouds *Clouds, m *machine.Machine) (all []account) {
	t.Helper()
	for _, id := range []string{"c", "c-x7f2k"} {
		a, err := opened(t.Context(), clouds, machine.Namespace, id, m.Spec.ProviderSpec.Value.Raw)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

// What the cloud did not tell under one id of the cluster may be there: that there is nothing under the other one proves no absence,
// neither to who asks for one instance nor to who asks for all (RELIABILITY G5, R-S1, R-S12).
func TestSilenceUnderOneClusterIDIsNoAbsence(t *testing.T) {
	t.Parallel()
	silent, calls := 0, 0 // which of the calls
	cloud := &memory.Cloud{Fault: func(_ context.Context, c memory.Call) error {
		if c.After {
			return nil
		}
		if calls++; calls == silent {
			return errors.New("<html>bad gateway</html>")
		}
		return nil
	}}
	clouds := NewClouds([]provider.Provider{cloud.Provider()}, nil)
	m := machineIn("worker-0", "worker-0")
	m.Spec.ProviderID, m.DeletionTimestamp = new("memory:///i-1"), new(metav1.Now())
	ids, sub := both(t, clouds, m), subject{object: m}
	for _, bulk := range []bool{false, true} {
		for _, silent = range []int{0, 1, 2} {
			calls = 0
			i := &invocation{Runner: &Runner{Clouds: clouds}}
			l := listed{Lookup: snapshot.Lookup{UID: m.UID, Bulk: bulk}, account: ids[0], other: &ids[1]}
			var c snapshot.Cloud
			if bulk {
				i.list(t.Context(), []listed{l}, map[types.UID]subject{m.UID: sub}, func(_ types.UID, said snapshot.Cloud) { c = said })
			} else {
				c = i.askBoth(t.Context(), sub, l)
			}
			if (c.Err != nil) != (silent > 0) || len(c.Found) > 0 {
				t.Errorf("in bulk %v, call %d of %d is not answered: %+v", bulk, silent, calls, c)
			}
		}
	}
}

// What nobody can look for under the other id is hidden where the first shows nothing, and there alone: an instance that it shows is
// there, and what it does not answer is told in its own words.
func TestHiddenIsWhatNothingShows(t *testing.T) {
	t.Parallel()
	hidden := errors.New("no secret")
	for name, c := range map[string]struct {
		shown         bool
		fault, hidden error
		want          string // in the error
	}{
		"shown":                {true, nil, hidden, ""},
		"hidden":               {false, nil, hidden, "no secret"},
		"not answered":         {false, errors.New("502 bad gateway"), hidden, "502 bad gateway"},
		"nothing to be hidden": {false, nil, nil, ""},
	} {
		cloud, m := &memory.Cloud{}, machineIn("worker-0", "worker-0")
		if cloud.Fault = func(context.Context, memory.Call) error { return c.fault }; c.shown {
			cloud.Add(accountOfC, "c", provider.Instance{Name: m.Name, UID: m.UID, State: provider.StateRunning})
		}
		i := &invocation{Runner: &Runner{Clouds: NewClouds([]provider.Provider{cloud.Provider()}, nil)}}
		l := listed{Lookup: snapshot.Lookup{UID: m.UID}, account: both(t, i.Clouds, m)[0], hidden: c.hidden}
		said := i.askBoth(t.Context(), subject{object: m}, l)
		if got := said.Err; (got != nil) != (c.want != "") || got != nil && !strings.Contains(got.Message, c.want) || (len(said.Found) > 0) != c.shown {
			t.Errorf("%s: %+v", name, said)
		}
	}
}

// Of two instances that carry a Machine's tag both are found, also where it records one of them (R-S1).
func TestTwinOfWhatIsRecordedIsFound(t *testing.T) {
	t.Parallel()
	cloud := &memory.Cloud{}
	m := machineIn("worker-0", "worker-0")
	for range 2 {
		m.Spec.ProviderID = new("memory:///" + cloud.Add(accountOfC, "c", provider.Instance{Name: m.Name, UID: m.UID, State: provider.StateRunning}))
	}
	i := &invocation{Runner: &Runner{Clouds: NewClouds([]provider.Provider{cloud.Provider()}, nil)}}
	l := listed{Lookup: snapshot.Lookup{UID: m.UID, Bulk: true}, account: both(t, i.Clouds, m)[0]}
	i.list(t.Context(), []listed{l}, map[types.UID]subject{m.UID: {object: m}}, func(_ types.UID, c snapshot.Cloud) {
		if len(c.Found) != 2 {
			t.Errorf("found %+v", c.Found)
		}
	})
}

// Who repairs leads a Machine to another instance, while what was made for it has its tag still: both are found, as where it is asked for
// by itself.
func TestWhatPeopleLedAMachineToIsFound(t *testing.T) {
	t.Parallel()
	cloud := &memory.Cloud{}
	m := machineIn("worker-0", "worker-0")
	cloud.Add(accountOfC, "c", provider.Instance{Name: m.Name, UID: m.UID, State: provider.StateRunning})
	m.Spec.ProviderID = new("memory:///" + cloud.Add(accountOfC, "c", provider.Instance{Name: m.Name, UID: "gone", State: provider.StateRunning}))
	i := &invocation{Runner: &Runner{Clouds: NewClouds([]provider.Provider{cloud.Provider()}, nil)}}
	l := listed{Lookup: snapshot.Lookup{UID: m.UID, Bulk: true}, account: both(t, i.Clouds, m)[0]}
	i.list(t.Context(), []listed{l}, map[types.UID]subject{m.UID: {object: m}}, func(_ types.UID, c snapshot.Cloud) {
		if len(c.Found) != 2 {
			t.Errorf("found %+v", c.Found)
		}
	})
}

// Whatever is on record of an instance is told to the cloud that is asked for it.
func TestEverythingRecordedNamesAnInstance(t *testing.T) {
	t.Parallel()
	m := machineIn("worker-0", "worker-0")
	m.Spec.ProviderID = new("memory:///i-1")
	intent := machine.NewIntent(m, 1, accountOfC, []byte(`{}`))
	intent.Instance, intent.Progress = "i-1", []byte(`"task-1"`)
	m.Annotations = map[string]string{machine.AnnotationIntent: intent.String()}
	want := provider.Ref{UID: m.UID, Name: m.Name, ID: "i-1", ProviderID: "memory:///i-1", Token: intent.Token, Progress: intent.Progress}
	if got := refOf(m); !reflect.DeepEqual(got, want) || got.Token == "" {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// What was asked to go under one of the cluster's ids, or in one account, was not asked for in another: there it is to go too.
func TestRemovalIsOfOneAccountAndCluster(t *testing.T) {
	t.Parallel()
	calls := 0
	cloud := &memory.Cloud{Removal: time.Hour, Fault: func(_ context.Context, c memory.Call) error {
		if c.Op == memory.OpDelete && !c.After {
			calls++
		}
		return nil
	}}
	m := machineIn("worker-0", "worker-0")
	i := &invocation{Runner: &Runner{Clouds: NewClouds([]provider.Provider{cloud.Provider()}, nil)}, accounts: map[string]account{}, now: time.Now()}
	for _, a := range both(t, i.Clouds, m) {
		i.accounts[a.id()], i.accounts[accountID("another", a.ClusterID)] = a, a
		cloud.Add(accountOfC, a.ClusterID, provider.Instance{Name: m.Name, UID: m.UID, State: provider.StateRunning})
	}
	for range 2 {
		for _, a := range []plan.DeleteInstance{{Account: accountOfC, Cluster: "c"}, {Account: accountOfC, Cluster: "c-x7f2k"}, {Account: "another", Cluster: "c"}} {
			a.Ref = provider.Ref{UID: m.UID, Name: m.Name}
			i.deleteInstance(t.Context(), a)
		}
	}
	if calls != 3 {
		t.Errorf("%d removals are asked for, want each of three once", calls)
	}
}

// What was said before is an answer to the same question about the same, or to a smaller one. To who looks for an instance it is none that
// nobody looked.
func TestAnswersAreToTheirQuestions(t *testing.T) {
	t.Parallel()
	by, other := lead{namespace: "machines", spec: "a"}, lead{namespace: "machines", spec: "b"}
	of := func(l snapshot.Lookup) led { return led{Lookup: l, by: by} }
	all := snapshot.Lookup{Resolve: true, Type: true, Fresh: true, Stock: true}
	for _, c := range []struct {
		was, is led
		want    bool
	}{
		{of(snapshot.Lookup{}), of(snapshot.Lookup{}), true},
		{of(all), of(all), true},
		{of(all), of(snapshot.Lookup{}), true},
		{of(all), of(snapshot.Lookup{Open: true}), true},
		{of(snapshot.Lookup{Open: true}), of(snapshot.Lookup{Open: true}), true},
		{of(snapshot.Lookup{Open: true}), of(snapshot.Lookup{}), false},
		{of(snapshot.Lookup{}), of(snapshot.Lookup{New: true}), true},
		{of(snapshot.Lookup{New: true}), of(snapshot.Lookup{New: true}), true},
		{of(snapshot.Lookup{New: true}), of(snapshot.Lookup{Open: true}), true},
		{of(snapshot.Lookup{New: true}), of(snapshot.Lookup{}), false},
		{of(snapshot.Lookup{Open: true}), of(snapshot.Lookup{New: true}), false},
		{of(snapshot.Lookup{}), of(snapshot.Lookup{Resolve: true}), false},
		{of(snapshot.Lookup{}), of(snapshot.Lookup{Type: true}), false},
		{of(snapshot.Lookup{Type: true}), of(snapshot.Lookup{Type: true, Fresh: true}), false},
		{of(snapshot.Lookup{}), of(snapshot.Lookup{Stock: true}), false},
		{led{by: by}, led{by: other}, false},
		{led{by: by}, led{by: by, other: other}, false},
		{led{by: by, other: other}, led{by: by}, false},
	} {
		if got := c.is.within(c.was); got != c.want {
			t.Errorf("%+v to %+v: %v", c.was, c.is, got)
		}
	}
}
