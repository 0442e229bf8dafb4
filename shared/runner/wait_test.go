// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Our own time says nothing about a cloud that had less than hearFor to answer, or that answered in an earlier round. One that had its
// time is silent, in whichever round (RELIABILITY G6).
func TestOnlyOurOwnTimeIsNoSilence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rounds int
		ours   time.Duration // until our own time is over
		takes  time.Duration // the answer
		want   error
	}{
		"an answer":                         {0, time.Hour, time.Second, nil},
		"little time":                       {0, hearFor - time.Second, time.Hour, errCut},
		"enough time":                       {0, hearFor + time.Second, time.Hour, errUnanswered},
		"all the time of a call":            {0, time.Hour, time.Hour, errUnanswered},
		"a later round, enough time":        {1, hearFor + time.Second, time.Hour, errCut},
		"a later round, the time of a call": {1, time.Hour, time.Hour, errUnanswered},
	} {
		synctest.Test(t, func(t *testing.T) {
			ours, cancel := context.WithTimeout(t.Context(), c.ours)
			defer cancel()
			i, a := &invocation{Runner: &Runner{}, rounds: c.rounds}, account{Account: provider.Account{ClusterID: "c"}}
			ctx, done, err := i.wait(ours, a, "list")
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-time.After(c.takes):
			case <-ctx.Done():
			}
			if cut := done(); cut != errors.Is(c.want, errCut) {
				t.Errorf("%s: cut off %v", name, cut)
			}
			if _, _, again := i.wait(ours, a, "list"); !errors.Is(again, c.want) {
				t.Errorf("%s: asked again it is %v, want %v", name, again, c.want)
			}
		})
	}
}

// Who is woken by an event has nobody else to look at: the cloud has all the time that there is.
func TestEventLooksForAsLongAsItHas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), mutationBudget)
		defer cancel()
		for _, c := range []struct {
			of   snapshot.Request
			want time.Duration
		}{{snapshot.Request{}, lookFor}, {snapshot.Request{Kind: "Machine", Name: "worker-0"}, budget}} {
			i := &invocation{request: c.of}
			if got := i.room(ctx, 0); got != c.want {
				t.Errorf("%+v: it looks for %v, want %v", c.of, got, c.want)
			}
		}
	})
}

// What was said before stands where it was said, and to those questions alone. That it was for later stays so, though the instance was
// changed since; and to an account that nobody asked about it is no answer (RELIABILITY G5).
func TestOnlyWhatWasSaidStands(t *testing.T) {
	t.Parallel()
	var all []led
	subjects := map[types.UID]subject{}
	for _, name := range []types.UID{"said", "later", "changed", "silent"} {
		all = append(all, led{Lookup: snapshot.Lookup{UID: name}, by: lead{clusterID: "c"}})
		subjects[name] = subject{object: machineIn(string(name), name)}
	}
	more := led{Lookup: snapshot.Lookup{UID: "more", Resolve: true}, by: lead{clusterID: "c"}}
	i := &invocation{before: append(all, led{Lookup: snapshot.Lookup{UID: "more"}, by: more.by}), changed: map[types.UID]bool{"later": true, "changed": true}}
	i.seen.Clouds = map[types.UID]snapshot.Cloud{"said": {}, "later": {Later: true}, "changed": {}, "more": {}}
	i.seen.Accounts = map[string]snapshot.Account{"seen": {}}
	s := snapshot.Snapshot{Clouds: map[types.UID]snapshot.Cloud{}, Accounts: map[string]snapshot.Account{}}
	v := &visit{lookups: append(all, more), sweeps: []snapshot.AccountQuery{{Key: "seen"}, {Key: "new"}}}
	i.known(&s, v, subjects)
	if len(v.lookups) != 2 || v.lookups[0].UID != "silent" || v.lookups[1].UID != "more" || len(s.Clouds) != 3 {
		t.Errorf("it is asked about %+v, and %+v stands", v.lookups, s.Clouds)
	}
	for uid, later := range map[types.UID]bool{"said": true, "later": true, "changed": false} {
		if s.Clouds[uid].Later != later {
			t.Errorf("%s is for later: %v", uid, !later)
		}
	}
	if len(v.sweeps) != 1 || v.sweeps[0].Key != "new" || len(s.Accounts) != 1 || !s.Accounts["seen"].Later {
		t.Errorf("it is asked about %+v, and %+v stands", v.sweeps, s.Accounts)
	}
}

// A Machine is changed with its instance: under its own UID, under the one that the instance was made for, and with a twin.
func TestChangedWithItsInstance(t *testing.T) {
	t.Parallel()
	m := machineIn("worker-0", "worker-0")
	var none *machine.Intent
	m.Annotations = map[string]string{machine.AnnotationIntent: none.Adopted(m, accountOfC, "i-1", "former", time.Now()).String()}
	for name, c := range map[string]struct {
		of      plan.Object
		changed types.UID
		mutated string
		want    bool
	}{
		"nobody":         {m, "", "", true},
		"another":        {m, "worker-1", "i-2", true},
		"the Machine":    {m, "worker-0", "", false},
		"its former UID": {m, "former", "", false},
		"one of twins":   {m, "", "i-1", false},
		"a set":          {&machine.MachineSet{}, "", "", false},
	} {
		i := &invocation{changed: map[types.UID]bool{c.changed: true}, mutated: map[target]bool{{id: c.mutated}: true}}
		if got := i.unchanged(subject{object: c.of}, []provider.Instance{{ID: "i-1"}}); got != c.want {
			t.Errorf("%s was changed: unchanged %v", name, got)
		}
	}
}

// An account that was seen before in the same invocation, and is not any more, is for a later one. One that was never seen is told of.
func TestAccountThatWasNeverSeenIsToldOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ first, second error }{
		"never seen":     {errors.New("<html>bad gateway</html>"), errors.New("<html>bad gateway</html>")},
		"seen before":    {nil, errors.New("<html>bad gateway</html>")},
		"seen again":     {nil, nil},
		"seen only then": {errors.New("<html>bad gateway</html>"), nil},
	} {
		lists, rounds := 0, 0
		err := clouded(t, func(_ context.Context, call memory.Call) error {
			if call.Op != memory.OpList || call.After {
				return nil
			}
			if lists++; lists == 1 {
				return c.first
			}
			return c.second
		}, snapshot.Lookup{Open: true}, func(s snapshot.Snapshot) (p plan.Plan) {
			rounds++
			want := rounds == 2 && c.first == nil && c.second != nil
			if a := s.Accounts[accountOfC]; a.Later != want || (a.Err != nil) != ([]error{c.first, c.second}[rounds-1] != nil) {
				t.Errorf("%s, look %d: %+v", name, rounds, a)
			}
			p.Then(plan.DeleteInstance{Account: accountOfC, Cluster: "c", Ref: provider.Ref{UID: "other"}, Why: "of a test"})
			return p.Untried(s.Outcomes)
		})
		if err != nil || rounds != 2 {
			t.Errorf("%s: %d looks, %v", name, rounds, err)
		}
	}
}
