// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A list has the instance of a Machine that records it in other words than the driver (B5).
func TestListIsReadByWhatAProviderIDNames(t *testing.T) {
	t.Parallel()
	_, byID := index([]provider.Instance{{ID: "6a1b2c3d", ProviderID: "openstack:///6a1b2c3d"}, {ID: "port", Child: true}, {ID: "of no name yet"}})
	for id, want := range map[string]string{"openstack:///6a1b2c3d": "6a1b2c3d", "openstack://RegionOne/6a1b2c3d": "6a1b2c3d", "openstack:///6a1b2c3e": "", "": ""} {
		if in := byID[machine.InstanceOf(id)]; in.ID != want {
			t.Errorf("%q is %q, want %q", id, in.ID, want)
		}
	}
}

// A list that did not come leaves those that go on without it to be asked for by themselves, unless the cloud wants fewer calls; one that
// came asks nothing more. What our own time cut off is for a later scan, unless the instance was changed, and what somebody answered is
// not (R-S12, R-L2).
func TestWhoGoesOnWithoutAList(t *testing.T) {
	t.Parallel()
	gateway, throttled := errors.New("502 bad gateway"), provider.Errorf(provider.Throttled, "slow down")
	for name, c := range map[string]struct {
		list, cut, find, untold error
		alone, changed          bool
		want                    string // in the error
		owner                   string
		later                   bool
		finds                   int
	}{
		"listed":                          {alone: true, owner: "project-b"},
		"listed of nobody":                {untold: gateway, want: "whether the credentials"},
		"not listed":                      {list: gateway, want: "502"},
		"asked by itself":                 {list: gateway, alone: true, owner: "project-b", finds: 1},
		"silent by itself too":            {list: gateway, find: errors.New("503"), alone: true, want: "503", finds: 1},
		"throttled":                       {list: throttled, alone: true, want: "slow down"},
		"cut off":                         {cut: errCut, want: errCut.Error(), later: true},
		"silent before":                   {cut: errUnanswered, want: errUnanswered.Error()},
		"cut off after it was changed":    {cut: errCut, changed: true, want: errCut.Error()},
		"cut off, and answered by itself": {cut: errCut, alone: true, owner: "project-b", finds: 1},
	} {
		finds, asked := 0, 0
		cloud := &memory.Cloud{Fault: func(_ context.Context, call memory.Call) error {
			switch {
			case call.After:
			case call.Op == memory.OpList:
				return c.list
			case call.Op == memory.OpFind:
				finds++
				return c.find
			}
			return nil
		}}
		m := machineIn("worker-0", "worker-0")
		m.Spec.ProviderID = new("memory:///" + cloud.Add(accountOfC, "c", provider.Instance{Name: m.Name, UID: m.UID, State: provider.StateRunning}))
		m.Annotations = map[string]string{machine.AnnotationCloudAccount: "project-b"}
		table := cloud.Provider()
		open := table.Open
		table.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
			d, err := open(ctx, a)
			return identified{Driver: d, account: "project-b", err: c.untold, asked: &asked}, err
		}
		i := &invocation{Runner: &Runner{Clouds: NewClouds([]provider.Provider{table}, nil)}, changed: map[types.UID]bool{m.UID: c.changed}}
		a := both(t, i.Clouds, m)[0]
		i.waits.over, i.waits.took = map[string]error{}, map[string]time.Duration{}
		if c.cut != nil {
			i.waits.over["list "+a.id()] = c.cut
		}
		l := listed{Lookup: snapshot.Lookup{UID: m.UID, Bulk: true, Alone: c.alone}, account: a}
		i.list(t.Context(), []listed{l}, map[types.UID]subject{m.UID: {object: m}}, func(_ types.UID, said snapshot.Cloud) {
			if got := said.Err; (got != nil) != (c.want != "") || got != nil && !strings.Contains(got.Message, c.want) || said.Later != c.later {
				t.Errorf("%s: error %+v, for later %v", name, got, said.Later)
			}
			if said.Owner != c.owner && c.untold == nil || finds != c.finds {
				t.Errorf("%s: of account %q, by %d calls", name, said.Owner, finds)
			}
		})
	}
}

// An instance that a list does not show is asked for by itself where its Machine is there to stay and nobody hides it. Whose question was
// not answered before waits for a later scan: that is no absence (R-S12).
func TestWhoIsAskedForBesideAList(t *testing.T) {
	t.Parallel()
	hidden := errors.New("no secret")
	for name, c := range map[string]struct {
		list, before, hidden, untold error
		recorded, going, shown       bool
		want                         string // in the error
		later                        bool
		finds                        int
	}{
		"recorded":                  {recorded: true, finds: 1},
		"not recorded":              {},
		"going":                     {recorded: true, going: true},
		"not listed":                {list: errors.New("502"), recorded: true, want: "502"},
		"silent before":             {before: errUnanswered, recorded: true, later: true},
		"hidden":                    {hidden: hidden, recorded: true, want: "no secret"},
		"hidden in who knows which": {hidden: hidden, untold: errors.New("503"), recorded: true, want: "no secret"},
		"hidden and shown":          {hidden: hidden, recorded: true, shown: true},
		"hidden and not recorded":   {hidden: hidden},
	} {
		finds, asked := 0, 0
		cloud := &memory.Cloud{Fault: func(_ context.Context, call memory.Call) error {
			switch {
			case call.After:
			case call.Op == memory.OpList:
				return c.list
			case call.Op == memory.OpFind:
				finds++
			}
			return nil
		}}
		table := cloud.Provider()
		open := table.Open
		table.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
			d, err := open(ctx, a)
			return identified{Driver: d, account: "project-b", err: c.untold, asked: &asked}, err
		}
		m := machineIn("worker-0", "worker-0")
		m.Annotations = map[string]string{machine.AnnotationCloudAccount: "project-b"}
		if c.recorded {
			m.Spec.ProviderID = new("memory:///i-9")
		}
		if c.going {
			m.DeletionTimestamp = new(metav1.Now())
		}
		if c.shown {
			cloud.Add(accountOfC, "c", provider.Instance{Name: m.Name, UID: m.UID, State: provider.StateRunning})
		}
		i := &invocation{Runner: &Runner{Clouds: NewClouds([]provider.Provider{table}, nil)}}
		a := both(t, i.Clouds, m)[0]
		i.waits.over, i.waits.took = map[string]error{"find " + string(m.UID) + " " + a.id(): c.before}, map[string]time.Duration{}
		l := listed{Lookup: snapshot.Lookup{UID: m.UID, Bulk: true}, account: a, hidden: c.hidden}
		i.list(t.Context(), []listed{l}, map[types.UID]subject{m.UID: {object: m}}, func(_ types.UID, said snapshot.Cloud) {
			if got := said.Err; (got != nil) != (c.want != "") || got != nil && !strings.Contains(got.Message, c.want) || said.Later != c.later {
				t.Errorf("%s: error %+v, for later %v", name, got, said.Later)
			}
			if (len(said.Found) > 0) != c.shown || finds != c.finds {
				t.Errorf("%s: %+v is found, by %d calls", name, said.Found, finds)
			}
		})
	}
}

// What a Machine records and a list shows is its instance by the tag of a Machine that it was before, whatever the instance is called, or
// by its name where it carries no tag (B5, E33).
func TestListShowsWhatIsRecorded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		uid  types.UID
		want int
	}{{"worker-0", "former", 1}, {"other", "former", 1}, {"worker-0", "", 1}, {"other", "", 0}} {
		cloud, m := &memory.Cloud{}, machineIn("worker-0", "worker-0")
		m.Spec.ProviderID = new("memory:///" + cloud.Add(accountOfC, "c", provider.Instance{Name: c.name, UID: c.uid, State: provider.StateRunning}))
		m.DeletionTimestamp = new(metav1.Now()) // it is not asked for by itself
		i := &invocation{Runner: &Runner{Clouds: NewClouds([]provider.Provider{cloud.Provider()}, nil)}}
		l := listed{Lookup: snapshot.Lookup{UID: m.UID, Bulk: true}, account: both(t, i.Clouds, m)[0]}
		i.list(t.Context(), []listed{l}, map[types.UID]subject{m.UID: {object: m}}, func(_ types.UID, said snapshot.Cloud) {
			if len(said.Found) != c.want {
				t.Errorf("called %s, with tag %q: found %+v", c.name, c.uid, said.Found)
			}
		})
	}
}
