// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// launchValid launches a Machine whose spec can work. The rules are those of admission (SPEC B72–B79), so a cluster
// without the policies is as safe; what they only warn of is logged when the Machine is first seen.
func (l life) launchValid() plan.Sequence {
	problem, warnings := judge(l.Snapshot, l.m)
	if problem != "" {
		return l.fail(reasonInvalid, problem)
	}
	seq := l.launch()
	if len(seq.Do) > 0 {
		seq.Notes = append([]plan.Note{plan.Log(l.m.Name + ": reconciling Machine")}, seq.Notes...) // as operators grep (S24)
	}
	if phase(l.m) == "" {
		if why := machine.CarriedBy(l.m).Unfit(); why != "" { // once, before there is a Node; link-node tells it of the Node
			seq.Notes = append(seq.Notes, l.warning("FailedUpdate", why))
		}
		for _, w := range warnings {
			seq.Notes = append(seq.Notes, plan.Log(l.m.Name+": "+w))
		}
	}
	return seq
}

// judge returns why m's spec can never work, naming field and value, and what is strange about it. Once a cloud was
// asked for an instance, what stands in the spec decides nothing any more. Kinds without rules are left to their driver.
func judge(s snapshot.Snapshot, m *machine.Machine) (problem string, warnings []string) {
	if machine.ProviderID(m) != "" || readable(s, m).Called() || unrecorded(s, m) {
		return "", nil
	}
	return s.JudgeSpec(m)
}

// hopeless reports whether m's spec can never work: then its cloud has nothing to say.
func hopeless(s snapshot.Snapshot, m *machine.Machine) bool {
	problem, _ := judge(s, m)
	return problem != ""
}
