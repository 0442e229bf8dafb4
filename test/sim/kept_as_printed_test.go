// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// talks is a mistake in every function: it tells a secret once a Machine is to go, one of the control plane if there are such.
func talks(masters bool) func(function.Function) function.Function {
	return func(f function.Function) function.Function {
		decide := f.Decide
		f.Decide = func(s snapshot.Snapshot) plan.Plan {
			p := decide(s)
			for _, m := range s.Machines {
				if m.DeletionTimestamp != nil && isMaster(m) == masters {
					p.Notes = append(p.Notes, plan.Note{Reason: "Told", Message: Canary})
				}
			}
			return p
		}
		return f
	}
}

// A violation that a schedule of any kind finds is printed as a line of kept, and that is played to the same one.
func TestViolationsAreKeptAsPrinted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		Config
		strategy func(seed uint64) Strategy
	}{
		"swarm":     {Config{Level: Machines, Steps: 60}, func(seed uint64) Strategy { return NewSwarm(seed) }},
		"rough":     {Config{Level: Healing, Steps: 100}, func(seed uint64) Strategy { return NewRough(seed) }},
		"restored":  {Config{Level: Machines, Steps: 60}, func(seed uint64) Strategy { return NewRestores(seed, 60) }},
		"priority":  {Config{Level: Machines, Steps: 60}, func(seed uint64) Strategy { return NewPriorities(seed, 3, 60) }},
		"masters":   {Config{Level: Machines, Steps: 60, Masters: true}, func(seed uint64) Strategy { return Deletes{NewSwarm(seed)} }},
		"plagues":   {Config{Level: Healing, Steps: 200, Masters: true, Checked: 2}, func(seed uint64) Strategy { return Plagues{NewAils(seed)} }},
		"exact":     {Config{Level: Machines, Steps: 60, Exact: true}, func(seed uint64) Strategy { return NewSwarm(seed) }},
		"sleeper":   {Config{Level: Machines, Steps: 60, Frozen: true}, func(seed uint64) Strategy { return NewSleeper(seed, 60) }},
		"neighbor":  {Config{Level: Machines, Steps: 60, Neighbor: 1}, func(seed uint64) Strategy { return NewSwarm(seed) }},
		"apart":     {Config{Level: Healing, Steps: 60, Neighbor: 1, Apart: true}, func(seed uint64) Strategy { return NewSwarm(seed) }},
		"budget":    {Config{Level: Healing, Steps: 60, Budget: 2, Hourly: 1}, func(seed uint64) Strategy { return NewAils(seed) }},
		"moves":     {Config{Level: Machines, Steps: 60, Neighbor: 1, Moves: true}, func(seed uint64) Strategy { return Moves{NewSwarm(seed)} }},
		"few Nodes": {Config{Level: Scaling, Steps: 60, Nodes: numMasters + 2}, func(seed uint64) Strategy { return NewSwarm(seed) }},
		"hooks":     {Config{Level: Machines, Steps: 60, Early: true}, func(seed uint64) Strategy { return Hooks{NewSwarm(seed)} }},
		"checks":    {Config{Level: Healing, Steps: 60, Unchecks: true}, func(seed uint64) Strategy { return Unchecks{NewSwarm(seed)} }},
		"two sets":  {Config{Level: Scaling, Steps: 60, Neighbor: 1, Scaled: true}, func(seed uint64) Strategy { return Loads{NewSwarm(seed)} }},
		"shared":    {Config{Level: Machines, Steps: 60, Shared: true}, func(seed uint64) Strategy { return NewSwarm(seed) }},
		"rivals":    {Config{Level: Scaling, Steps: 60, Rivals: true}, func(seed uint64) Strategy { return Rivals{NewSwarm(seed)} }},
		"volumes":   {Config{Level: Scaling, Steps: 60, Volumes: true}, func(seed uint64) Strategy { return Empties{NewSwarm(seed)} }},
		"shorts":    {Config{Level: Scaling, Steps: 60, Shorts: true}, func(seed uint64) Strategy { return Shorts{NewSwarm(seed)} }},
		"struck":    {Config{Level: Healing, Steps: 900}, func(seed uint64) Strategy { return &Strike{World: worlds[seed%3], Call: 40, Verdict: fails} }},
		"lost":      {Config{Level: Scaling, Steps: 500}, func(uint64) Strategy { return &Lose{Event: 9, Becomes: eventTwice} }},
		"edits":     {Config{Level: Machines, Steps: 600, Edits: true}, func(seed uint64) Strategy { return &Strike{World: worlds[seed%3], Call: 40, Verdict: dies} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrapped := c.Config
			wrapped.Wrap = talks(c.Masters)
			for seed := range uint64(40) {
				p, err := play(wrapped, &Script{Strategy: c.strategy(seed)})
				if err == nil {
					continue
				}
				k := printed(t, keepWithin(time.Second, wrapped, p.Vector(), err), p.Vector())
				if !reflect.DeepEqual(k.of, setting(c.Config)) {
					t.Errorf("%v is printed, %v was played", k.of, c.Config)
				}
				if again := wrapped.replay(k.choices(t), nil); again == nil || again.Error() != k.was {
					t.Errorf("%v is printed, it is played to %v", k.was, again)
				}
				return
			}
			t.Error("nothing is violated")
		})
	}
}

// The same of small scopes: the first violation is printed with all that makes its scope what it is.
func TestViolationsOfScopesAreKeptAsPrinted(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]Bout{
		"a stage": {Stage: 9, Functions: []int{1, 3}},
		"a call":  {Stage: 8, Before: frees, Functions: []int{1, 1}},
		"upgrade": {Stage: 13, World: upgraded[0], Functions: []int{0, 0}},
		"edits":   {Config: Config{Edits: true}, Stage: 9, Functions: []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b.Faults, b.Switches = 1, 2
			if b.World == nil {
				b.World = worlds[1]
			}
			played := b
			played.Wrap = talks(false)
			played.Prepare()
			defer played.Close()
			var s *Script
			var err error
			for seed := uint64(0); seed < 20 && err == nil; seed++ {
				s = &Script{Strategy: NewSwarm(seed)}
				err = played.Play(s)
			}
			if err == nil {
				t.Fatal("nothing is violated")
			}
			k := printed(t, keepWithin(time.Second, played, s.Vector(), err), s.Vector())
			if !reflect.DeepEqual(k.of, setting(b)) {
				t.Errorf("%v is printed, %v was played", k.of, b)
			}
			again := k.of.(Bout)
			again.Wrap = played.Wrap
			if err := again.replay(k.choices(t), nil); err == nil || err.Error() != k.was {
				t.Errorf("%v is printed, it is played to %v", k.was, err)
			}
		})
	}
}

// printed is what the line to be kept says, of a schedule that is no larger than the one that was found and whose story is told.
func printed(t *testing.T, text string, found []byte) keptSchedule {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\nkeep it: ")
	how, story, _ := strings.Cut(rest, "\n")
	if !ok || !strings.Contains(story, "VIOLATION R-S13: ") {
		t.Fatal(text)
	}
	k, vector := parsed(t, how)
	if zeros := bytes.Count(vector, []byte{0}); len(vector) > len(found) || len(vector)-zeros > len(found)-bytes.Count(found, []byte{0}) {
		t.Errorf("%x was found, %x is printed", found, vector)
	}
	return k
}
