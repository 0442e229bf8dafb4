// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A bulk list shows nothing that carries no tag. The Machine that records such an instance, as an installer's masters do,
// has it all the same: it is asked for by itself, and nothing else is (SPEC B21, R-S12). With the cluster's tag alone the list
// does, which is believed where the instance is called like the Machine: a host of another has its id, too (SPEC E33).
func TestInstanceWithoutATagIsNotMissing(t *testing.T) {
	t.Parallel()
	finds := 0
	cloud := &memory.Cloud{Fault: func(_ context.Context, c memory.Call) error {
		if c.Op == memory.OpFind && !c.After {
			finds++
		}
		return nil
	}}
	const account = memory.Kind + "//" + machine.Namespace + "/"
	installed := "memory:///" + cloud.Add(account, "c", provider.Instance{Name: "master-1", State: provider.StateRunning})
	renamed := "memory:///" + cloud.Add(account, "c", provider.Instance{Name: "control-plane-2", State: provider.StateRunning})
	adopted := "memory:///" + cloud.Add("", "", provider.Instance{Name: "master-0", State: provider.StateRunning})
	tagged := "memory:///" + cloud.Add(account, "c", provider.Instance{Name: "worker-0", UID: "worker-0", State: provider.StateRunning})
	api := apiserver.New(time.Now)
	for name, id := range map[string]string{"master-0": adopted, "master-1": installed, "master-2": renamed, "worker-0": tagged} {
		m := machineIn(name, types.UID(name))
		m.Spec.ProviderID = &id
		if err := api.Put(m); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	r := testRunner(function.Function{
		Name:  "look",
		Reads: inBulk,
		Decide: func(s snapshot.Snapshot) plan.Plan {
			for uid, c := range s.Clouds {
				if c.Err != nil || len(c.Found) != 1 {
					t.Errorf("%s: %+v", uid, c)
					continue
				}
				got[string(uid)] = c.Found[0].ProviderID
			}
			return plan.Plan{}
		},
	}, api.As("look"))
	r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
	if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"master-0": adopted, "master-1": installed, "master-2": renamed, "worker-0": tagged}
	if !maps.Equal(got, want) || finds != 2 {
		t.Errorf("found %v with %d calls for one instance, want 2", got, finds)
	}
}

// A Machine that was made anew from its manifest, as a backup is restored, has another UID than its instance's tag. It is
// shown its instance all the same, with that tag, by a list and by itself; who took it over has it by the tag (R-S3, B21).
func TestInstanceWithTheFormerTagIsShown(t *testing.T) {
	t.Parallel()
	for _, bulk := range []bool{true, false} {
		for _, taken := range []bool{true, false} {
			cloud := &memory.Cloud{}
			id := "memory:///" + cloud.Add(memory.Kind+"//"+machine.Namespace+"/", "c", provider.Instance{Name: "worker-0", UID: "old", State: provider.StateRunning})
			api := apiserver.New(time.Now)
			m := machineIn("worker-0", "new")
			m.Spec.ProviderID = &id
			if taken {
				var none *machine.Intent
				m.Annotations = map[string]string{machine.AnnotationIntent: none.Adopted(m, "a", "i", "old", time.Now()).String()}
			}
			if err := api.Put(m); err != nil {
				t.Fatal(err)
			}
			r := testRunner(function.Function{
				Name: "look",
				Reads: func(snapshot.Snapshot) snapshot.Scope {
					return snapshot.Scope{Objects: []snapshot.Query{snapshot.All("Machine")}, Lookups: []snapshot.Lookup{{UID: "new", Bulk: bulk}}}
				},
				Decide: func(s snapshot.Snapshot) plan.Plan {
					if c := s.Clouds["new"]; c.Err != nil || len(c.Found) != 1 || c.Found[0].ProviderID != id || c.Found[0].UID != "old" {
						t.Errorf("bulk %v, taken over %v: %+v", bulk, taken, c)
					}
					return plan.Plan{}
				},
			}, api.As("look"))
			r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
			if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// An Infrastructure that is made, or called otherwise, after the Machines changes the id of new instances only: what carries
// the former id is shown, by a list and by itself, and is removed under that id. Where nobody recorded it both are tried.
func TestInstanceOfTheFormerClusterIDIsShown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ of, label, recorded string }{
		"by its label":                   {of: "c", label: "c"},
		"by the Infrastructure's name":   {of: "c-x7f2k", label: "c"},
		"by the record":                  {of: "former", label: "c", recorded: "former"},
		"by a record of the same as now": {of: "c-x7f2k", label: "c", recorded: "c-x7f2k"},
	} {
		for _, bulk := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " in a list ", bulk), func(t *testing.T) {
				t.Parallel()
				cloud := &memory.Cloud{}
				id := "memory:///" + cloud.Add(memory.Kind+"//"+machine.Namespace+"/", c.of, provider.Instance{Name: "worker-0", UID: "u", State: provider.StateRunning})
				api := apiserver.New(time.Now)
				m := machineIn("worker-0", "u")
				m.Labels[machine.LabelCluster] = c.label
				m.Spec.ProviderID = &id
				if c.recorded != "" {
					made := machine.NewIntent(m, 1, memory.Kind+"//"+machine.Namespace+"/", []byte(`{}`)).In(m, c.recorded).Released(machine.OutcomeCreated, time.Time{})
					m.Annotations = map[string]string{machine.AnnotationIntent: made.String()}
				}
				infra := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: machine.InfrastructureName}}
				infra.Status.InfrastructureName = "c-x7f2k"
				for _, o := range []plan.Object{m, infra} {
					if err := api.Put(o); err != nil {
						t.Fatal(err)
					}
				}
				r := testRunner(function.Function{
					Name: "look",
					Reads: func(snapshot.Snapshot) snapshot.Scope {
						return snapshot.Scope{
							Objects: []snapshot.Query{snapshot.All("Machine"), snapshot.One("Infrastructure", "", machine.InfrastructureName)},
							Lookups: []snapshot.Lookup{{UID: "u", Bulk: bulk}},
						}
					},
					Decide: func(s snapshot.Snapshot) (p plan.Plan) {
						seen := s.Clouds["u"]
						d := plan.DeleteInstance{Account: seen.Account, Cluster: seen.Cluster, Ref: provider.Ref{UID: "u"}}
						o, tried := s.Outcome(d)
						switch {
						case tried && o.Result != plan.Done:
							t.Errorf("the removal answers %+v", o)
						case tried: // nothing is left to show
						case seen.Err != nil || len(seen.Found) != 1 || seen.Cluster != c.of:
							t.Errorf("%+v", seen)
						default:
							p.Then(d)
						}
						return p
					},
				}, api.As("look"))
				r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
				if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// stocked is a cloud with a stock.
type stocked struct{ provider.Driver }

func (stocked) Stock(_ context.Context, spec json.RawMessage) (provider.Stock, error) {
	return provider.Stock{Free: len(spec), Taken: []string{"worker-0"}}, nil
}

// Whoever asks for the stock of a MachineSet's spec gets it where there is one, and nothing from every other cloud (E37).
func TestStockIsToldWhereThereIsOne(t *testing.T) {
	t.Parallel()
	spec := fmt.Appendf(nil, `{"kind":%q,"type":"small"}`, memory.Kind)
	for _, has := range []bool{true, false} {
		api := apiserver.New(time.Now)
		set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "worker", UID: "set-1"}}
		set.Spec.Template.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: spec}
		set.Labels = map[string]string{machine.LabelCluster: "c"}
		if err := api.Put(set); err != nil {
			t.Fatal(err)
		}
		p := new(memory.Cloud).Provider()
		open := p.Open
		p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
			d, err := open(ctx, a)
			if has {
				d = stocked{d}
			}
			return d, err
		}
		told := 0
		r := testRunner(function.Function{
			Name: "look",
			Reads: func(s snapshot.Snapshot) snapshot.Scope {
				sc := snapshot.Scope{Objects: []snapshot.Query{snapshot.All("MachineSet")}}
				for _, set := range s.MachineSets {
					sc.Lookups = append(sc.Lookups, snapshot.Lookup{UID: set.UID, Open: true, Stock: true})
				}
				return sc
			},
			Decide: func(s snapshot.Snapshot) plan.Plan {
				c, asked := s.Clouds["set-1"]
				if told++; !asked || c.Err != nil || (c.Stock != nil) != has || has && (c.Stock.Free != len(spec) || len(c.Stock.Taken) != 1) {
					t.Errorf("with a stock %v: %+v", has, c)
				}
				return plan.Plan{}
			},
		}, api.As("look"))
		r.Clouds = NewClouds([]provider.Provider{p}, nil)
		if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil || told == 0 {
			t.Errorf("%d decisions, %v", told, err)
		}
	}
}

// While some Machines' clouds are asked, others lead to no cloud at all: their answers come together, and all of them.
func TestAnswersOfGoodAndBadAccountsComeTogether(t *testing.T) {
	t.Parallel()
	const machines = 200
	api := apiserver.New(time.Now)
	for n := range machines {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: fmt.Sprint("worker-", n), UID: types.UID(fmt.Sprint("worker-", n))}}
		m.Labels = map[string]string{machine.LabelCluster: "c"}
		m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":%q,"type":"small"}`, []string{memory.Kind, "Unheard-of"}[n%2])}
		if err := api.Put(m); err != nil {
			t.Fatal(err)
		}
	}
	answered := 0
	r := testRunner(function.Function{
		Name:  "look",
		Reads: lookups,
		Decide: func(s snapshot.Snapshot) plan.Plan {
			answered = 0
			for n := range machines {
				if c, ok := s.Clouds[types.UID(fmt.Sprint("worker-", n))]; ok && (c.Err != nil) == (n%2 == 1) {
					answered++
				}
			}
			return plan.Plan{}
		},
	}, api.As("look"))
	r.Clouds = NewClouds([]provider.Provider{new(memory.Cloud).Provider()}, nil)
	if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil || answered != machines {
		t.Errorf("%d of %d are answered rightly, %v", answered, machines, err)
	}
}

// The account under the cluster's other id is opened beside the first: a cloud that takes three seconds for it costs a look three, not
// three for each.
func TestBothClusterIDsAreOpenedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := new(memory.Cloud).Provider()
		var opens atomic.Int32
		open := p.Open
		p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
			opens.Add(1)
			time.Sleep(3 * time.Second)
			return open(ctx, a)
		}
		api := apiserver.New(time.Now)
		infra := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: machine.InfrastructureName}}
		infra.Status.InfrastructureName = "c-x7f2k"
		m := machineIn("worker-0", "u")
		m.Spec.ProviderID = new("memory:///i-1")
		for _, o := range []plan.Object{m, infra} {
			if err := api.Put(o); err != nil {
				t.Fatal(err)
			}
		}
		r := testRunner(function.Function{
			Name: "look",
			Reads: func(s snapshot.Snapshot) snapshot.Scope {
				sc := inBulk(s)
				sc.Objects = append(sc.Objects, snapshot.One("Infrastructure", "", machine.InfrastructureName))
				return sc
			},
			Decide: func(snapshot.Snapshot) plan.Plan { return plan.Plan{} },
		}, api.As("look"))
		r.Clouds = NewClouds([]provider.Provider{p}, nil)
		began := time.Now()
		if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil || opens.Load() != 2 || time.Since(began) != 3*time.Second {
			t.Errorf("opened %d times in %v, %v; want 2 in 3s", opens.Load(), time.Since(began), err)
		}
	})
}

// What only belongs to an instance, as a port with its tag, is no instance: whoever took it for one would record a port (2b.8).
func TestWhatBelongsToAnInstanceIsNone(t *testing.T) {
	t.Parallel()
	byUID, byID := index([]provider.Instance{
		{ID: "port", ProviderID: "memory:///port", UID: "a", Child: true}, {ID: "one", ProviderID: "memory:///one", UID: "b"}, {ID: "two", UID: "b"},
	})
	if len(byUID["a"]) != 0 || len(byUID["b"]) != 2 || len(byID) != 1 || byID[machine.InstanceOf("memory:///one")].ID != "one" {
		t.Errorf("by UID %v, by id %v", byUID, byID)
	}
}

// Machines that have each a spec of their own, as with fixed addresses, cost one reading of the Secret that all of them name.
func TestOneSecretOfManySpecsIsReadOnce(t *testing.T) {
	t.Parallel()
	cloud, api := &memory.Cloud{}, apiserver.New(time.Now)
	for n := range 100 {
		m := machineIn(fmt.Sprint("m", n), types.UID(fmt.Sprint(n)))
		m.Spec.ProviderSpec.Value.Raw = fmt.Appendf(nil, `{"kind":%q,"type":"small","secret":"keys","metadata":{"address":"%d"}}`, memory.Kind, n)
		if err := api.Put(m); err != nil {
			t.Fatal(err)
		}
	}
	r := testRunner(function.Function{Name: "look", Reads: inBulk, Decide: func(s snapshot.Snapshot) plan.Plan {
		for uid, c := range s.Clouds {
			if c.Err != nil {
				t.Errorf("%s: %v", uid, c.Err)
			}
		}
		return plan.Plan{}
	}}, api.As("look"))
	var reads atomic.Int32
	r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, func(context.Context, string, string) (map[string][]byte, string, error) {
		reads.Add(1)
		return nil, "1", nil
	})
	for scan := range int32(2) {
		if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil || reads.Load() != scan+1 {
			t.Errorf("after scan %d: %d readings, error %v", scan, reads.Load(), err)
		}
	}
}

// lookups asks for all Machines, and for the instance of each.
func lookups(s snapshot.Snapshot) snapshot.Scope {
	sc := snapshot.Scope{Objects: []snapshot.Query{snapshot.All("Machine")}}
	for _, m := range s.Machines {
		sc.Lookups = append(sc.Lookups, snapshot.Lookup{UID: m.UID})
	}
	return sc
}
