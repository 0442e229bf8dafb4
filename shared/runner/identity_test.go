// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// identified is a driver that tells whose account it is in, or that it cannot tell.
type identified struct {
	provider.Driver
	account string
	err     error
	asked   *int
}

func (d identified) Identity(context.Context) (string, error) {
	*d.asked++
	return d.account, d.err
}

// Each answer of a cloud says whose account it is of, one list at the cost of one question. Where nobody can tell, what is not
// shown is not missing, for Machines whose account is on record (R-S12).
func TestAnswersSayWhoseAccountTheyAreOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		bulk bool
		open bool
		asks int
	}{
		"looked up one by one":   {asks: 2},
		"in one list":            {bulk: true, asks: 1},
		"not looked up":          {open: true, asks: 2},
		"nobody can tell":        {err: provider.Errorf(provider.Unknown, "no answer in time"), bulk: true, asks: 1},
		"nobody can tell of one": {err: provider.Errorf(provider.Unknown, "no answer in time"), open: true, asks: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			table := (&memory.Cloud{}).Provider()
			open := table.Open
			table.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
				d, err := open(ctx, a)
				return identified{Driver: d, account: "project-b", err: c.err, asked: &asked}, err
			}
			got := lookUp(t, table, snapshot.Lookup{Bulk: c.bulk, Open: c.open})
			if asked != c.asks {
				t.Errorf("asked whose it is %d times, want %d", asked, c.asks)
			}
			for uid, cloud := range got {
				if c.err == nil && (cloud.Owner != "project-b" || cloud.Err != nil) {
					t.Errorf("%s: %+v", uid, cloud)
				}
				if told := cloud.Err != nil; c.err != nil && told != (uid == "recorded") {
					t.Errorf("%s: cannot be asked: %v", uid, cloud.Err)
				}
			}
		})
	}
}

// lookUp returns what a cloud answers about two Machines, of which one is on record to be in an account.
func lookUp(t *testing.T, table provider.Provider, l snapshot.Lookup) map[types.UID]snapshot.Cloud {
	t.Helper()
	api := apiserver.New(time.Now)
	for _, name := range []string{"recorded", "unrecorded"} {
		m := machineIn(name, types.UID(name))
		if name == "recorded" {
			m.Annotations = map[string]string{machine.AnnotationCloudAccount: "project-a"}
			m.Spec.ProviderID = new("memory:///i-1")
		}
		if err := api.Put(m); err != nil {
			t.Fatal(err)
		}
	}
	var got map[types.UID]snapshot.Cloud
	r := testRunner(function.Function{
		Name: "look",
		Reads: func(s snapshot.Snapshot) snapshot.Scope {
			sc := snapshot.Scope{Objects: []snapshot.Query{snapshot.All("Machine")}}
			for _, m := range s.Machines {
				ask := l
				ask.UID = m.UID
				sc.Lookups = append(sc.Lookups, ask)
			}
			return sc
		},
		Decide: func(s snapshot.Snapshot) plan.Plan { got = s.Clouds; return plan.Plan{} },
	}, api.As("look"))
	r.Clouds = NewClouds([]provider.Provider{table}, nil)
	if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
		t.Log(err) // a cloud that cannot be asked is asked again
	}
	return got
}

// remembering is a driver whose cloud knows why instances ended.
type remembering struct{ provider.Driver }

func (remembering) Ended(_ context.Context, r provider.Ref) (string, error) {
	return r.ProviderID + " had no volume", nil
}

// Of a recorded instance that is not there the cloud is asked why, however it was looked for; of one that never was it is not.
func TestMissingInstanceIsAskedAbout(t *testing.T) {
	t.Parallel()
	for _, bulk := range []bool{true, false} {
		table := (&memory.Cloud{}).Provider()
		open := table.Open
		table.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
			d, err := open(ctx, a)
			return remembering{d}, err
		}
		for uid, cloud := range lookUp(t, table, snapshot.Lookup{Bulk: bulk}) {
			want := ""
			if uid == "recorded" {
				want = "memory:///i-1 had no volume"
			}
			if cloud.Ended != want || cloud.Err != nil {
				t.Errorf("in bulk %v: %s ended %q, %v; want %q", bulk, uid, cloud.Ended, cloud.Err, want)
			}
		}
	}
}

// The list of a whole account says whose it is too; where nobody can tell, it is no error (2b.10).
func TestInventorySaysWhoseAccountItIs(t *testing.T) {
	t.Parallel()
	for want, untold := range map[string]error{"project-b": nil, "": provider.Errorf(provider.Unknown, "no answer in time")} {
		table, asked := (&memory.Cloud{}).Provider(), 0
		open := table.Open
		table.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
			d, err := open(ctx, a)
			return identified{Driver: d, account: "project-b", err: untold, asked: &asked}, err
		}
		spec := fmt.Sprintf(`{"kind":%q,"type":"small"}`, memory.Kind)
		var got map[string]snapshot.Account
		r := testRunner(function.Function{
			Name: "look",
			Reads: func(snapshot.Snapshot) snapshot.Scope {
				return snapshot.Scope{Accounts: []snapshot.AccountQuery{{Key: accountOfC, Namespace: machine.Namespace, Spec: spec, ClusterID: "c"}}}
			},
			Decide: func(s snapshot.Snapshot) plan.Plan { got = s.Accounts; return plan.Plan{} },
		}, apiserver.New(time.Now).As("look"))
		r.Clouds = NewClouds([]provider.Provider{table}, nil)
		if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
			t.Fatal(err)
		}
		if a := got[accountOfC]; a.Owner != want || a.Err != nil || asked != 1 {
			t.Errorf("account %+v, asked %d times; want %q", a, asked, want)
		}
	}
}

// What an account's spec leads to by now, as after somebody named another region on record, is not that account: what is there proves
// nothing about this one, which would be forgotten as empty, and its Nodes taken for those of instances that are gone (2b.10, R-S2, R-S3).
func TestInventoryIsOfTheAccountThatWasAskedFor(t *testing.T) {
	t.Parallel()
	for _, key := range []string{accountOfC, accountOfC + "@c", accountOfC + "elsewhere"} {
		cloud := &memory.Cloud{}
		cloud.Add(accountOfC, "c", provider.Instance{Name: "worker-0", UID: "worker-0", State: provider.StateRunning})
		spec := fmt.Sprintf(`{"kind":%q,"type":"small"}`, memory.Kind)
		var got map[string]snapshot.Account
		r := testRunner(function.Function{
			Name: "look",
			Reads: func(snapshot.Snapshot) snapshot.Scope {
				return snapshot.Scope{Accounts: []snapshot.AccountQuery{{Key: key, Namespace: machine.Namespace, Spec: spec, ClusterID: "c"}}}
			},
			Decide: func(s snapshot.Snapshot) plan.Plan { got = s.Accounts; return plan.Plan{} },
		}, apiserver.New(time.Now).As("look"))
		r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
		if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
			t.Fatal(err)
		}
		elsewhere := key == accountOfC+"elsewhere"
		if a := got[key]; (a.Err != nil) != elsewhere || (len(a.Instances) == 0) != elsewhere {
			t.Errorf("%s: %d instances, error %v", key, len(a.Instances), a.Err)
		}
	}
}
