// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/test/local/controlplane"
)

// mirrored is how many schedules are played against a real API server.
const mirrored = 120

// A schedule's outcome follows from its choices and from what the API server answers. A real one answers every write of a
// schedule as the one in memory did, and holds the same object after it: so the same seeds lead to the same outcomes there.
// UIDs, versions, names and times of its own are translated. Nothing is done there that was not done in memory: what its garbage collector,
// its kubelets or a backup do there is done as people do it.
func TestSeedsOnARealServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	server := serve(t)
	var writes, refused atomic.Int64
	scaled, restored, collected := 0, 0, 0
	var answers [3]atomic.Int64
	one := func(t *testing.T, seed uint64, entries []Entry) {
		t.Helper()
		m := newMirror(t, server, seed)
		defer m.close(t)
		last := map[string]Entry{}
		for i, e := range entries {
			if diff := m.follow(t, e); diff != "" {
				t.Fatalf("seed %d, write %d of %d: %s\n%s", seed, i, len(entries), e, diff)
			}
			writes.Add(1)
			if e.Err != nil {
				refused.Add(1)
			}
			for n, answered := range []string{"conflict", "gone", "exists"} {
				if answer(e.Err) == answered {
					answers[n].Add(1)
				}
			}
			if about := e.about(); about != nil {
				last[plan.NameOf(about)] = e
			}
		}
		for name, e := range last { // nor did anything else become of anybody
			if diff := m.holds(t, e); diff != "" {
				t.Fatalf("seed %d, in the end: %s\n%s", seed, name, diff)
			}
		}
	}
	t.Run("seeds", func(t *testing.T) {
		t.Parallel()
		for seed, played := *firstSeed, 0; played < mirrored; seed++ {
			level := []Level{Machines, Healing, Scaling}[seed%3]
			entries, p := journalOf(t, level, seed)
			if !holdable(entries) {
				continue
			}
			played++
			for what, is := range map[*int]bool{&scaled: level == Scaling, &restored: p.restored, &collected: p.collected} {
				if is {
					*what++
				}
			}
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				if level < Scaling { // of the autoscaler's settings there is one object in a cluster
					t.Parallel()
				}
				one(t, seed, entries)
			})
		}
	})
	t.Cleanup(func() {
		t.Logf("%d schedules (%d with the autoscaler, in %d all storage was restored, in %d the set was deleted), %d writes, of which %d were refused",
			mirrored, scaled, restored, collected, writes.Load(), refused.Load())
		t.Logf("answered: %d conflicts, %d gone, %d there already", answers[0].Load(), answers[1].Load(), answers[2].Load())
		if scaled == 0 || restored == 0 || collected == 0 || answers[0].Load() == 0 {
			t.Error("some of this was in none of them")
		}
	})
}

// about is the object that an entry tells of: as it is, or as it was before it went.
func (e Entry) about() plan.Object { return cmp.Or(e.After, e.Before) }

// journalOf plays a seed in memory.
func journalOf(t *testing.T, level Level, seed uint64) ([]Entry, *Play) {
	t.Helper()
	var all []Entry
	var s Strategy = NewSwarm(seed)
	switch seed % 8 { // of three levels and five lengths each has its turn
	case 1, 4, 6:
		s = NewPriorities(seed, 4, few(seed)) // with more conflicts
	case 2:
		s = NewRestores(seed, few(seed))
	case 5:
		s = unsets{s}
	}
	c := Config{Level: level, Steps: few(seed)}
	told := c
	told.Journal = func(e Entry) { all = append(all, e) }
	p := NewPlay(told, &Script{Strategy: s})
	if err := p.Run(); err != nil {
		t.Fatalf("seed %d: %s", seed, keep(c, p.Vector(), err))
	}
	return all, p
}

// holdable reports whether a server can hold all that was written: config/crd has no spec.authoritativeAPI, which OpenShift's definitions
// have where its API is being migrated (SPEC B7), and takes no expander that nobody knows.
func holdable(all []Entry) bool {
	return !slices.ContainsFunc(all, func(e Entry) bool {
		ca, settings := e.After.(*autoscaling.ClusterAutoscaler)
		return authorityOf(e.After) != "" || settings && spoiltSettings(ca)
	})
}

// unsets is a strategy in which people delete the set twice, and make it anew.
type unsets struct{ Strategy }

// Pick implements [Strategy].
func (s unsets) Pick(p *Play, k Kind, n int) int {
	due := p.steps%16 == 8 && p.steps < 60
	switch {
	case due && k == KindWhat:
		return whatUser
	case due && k == KindUser:
		return userSet
	}
	return s.Strategy.Pick(p, k, n)
}

// few steps are enough to compare servers: each write waits for a real one.
func few(seed uint64) int { return 20 + int(seed%5)*20 }

func authorityOf(o plan.Object) machinev1beta1.MachineAuthority {
	switch o := o.(type) {
	case *machine.Machine:
		return o.Spec.AuthoritativeAPI
	case *machine.MachineSet:
		return o.Spec.AuthoritativeAPI
	}
	return ""
}

// serve starts an API server whose objects nobody else changes.
func serve(t *testing.T) *rest.Config {
	t.Helper()
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Dir: t.TempDir(), Fresh: true, Args: []string{
		"--kwok=false", "--apiserver-arg=--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
		// The controller manager waits for ever to lead: it would taint Nodes that functions cordon.
		"--controller-manager-arg=--leader-elect=true", "--controller-manager-arg=--leader-elect-resource-namespace=nowhere",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Log("a controller manager that never led ends so:", err)
		}
	})
	if err := plane.InstallAPI(t.Context(), "../../config/crd"); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config
}
