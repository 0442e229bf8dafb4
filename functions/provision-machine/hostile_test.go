// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// Whatever stands on a Machine, in its intent or the record of its tags: it is decided about, since a panic would be that of a scan, in
// which all Machines are (R-L4); of an intent that cannot be read nothing comes in a cloud, and what is written can be read.
func FuzzIntent(f *testing.F) {
	var worlds []func(intent, tags string, deleted bool) (was *machine.Intent, p plan.Plan, unread error)
	for _, name := range []string{"refusal-is-retried-later", "refused-midway-and-clean-makes-room", "tags-that-are-refused-are-told"} {
		s, _, err := scenario.Load("testdata/" + name + ".txtar")
		if err != nil {
			f.Fatal(err)
		}
		seen, _, err := scenario.Observe(Function, s)
		if err != nil || len(seen.Machines) != 1 {
			f.Fatalf("%s: %d Machines, error %v", name, len(seen.Machines), err)
		}
		f.Add(seen.Machines[0].Annotations[machine.AnnotationIntent], `{"schema":1,"failures":-3,"notBefore":"2026-01-01T00:00:00Z"}`, byte(len(worlds)), false)
		worlds = append(worlds, func(intent, tags string, deleted bool) (*machine.Intent, plan.Plan, error) {
			world, m := seen.Clone(), seen.Machines[0].DeepCopy()
			m.Annotations[machine.AnnotationIntent] = intent
			if tags != "" {
				m.Annotations[machine.AnnotationTagsRefused] = tags
			}
			if deleted {
				m.DeletionTimestamp = &metav1.Time{Time: seen.Now}
			}
			world.Machines = []*machine.Machine{m}
			was, err := machine.ParseIntent(m)
			return was, Decide(world), err
		})
	}
	const own = `{"schema":1,"attempt":1,"token":"68236otbolnafp1veue04n8qlbteklnl","account":"kubemark","startedAt":"2026-01-01T00:00:00Z","request":{"flavor":"4c12g30d"},"holder":"this-invocation","until":"2026-01-01T00:01:30Z"`
	for _, more := range []string{
		`,"failures":-9223372036854775808}`, `,"failures":9223372036854775807}`, `,"outcome":"partial","progress":"AAAA","failures":3}`, `,"outcome":"?"}`,
		`,"unanswered":"9999-12-31T23:59:59Z","notBefore":"0001-01-01T00:00:00Z"}`, `,"failures":1,"failures":-1}`,
	} {
		f.Add(own+more, "", byte(0), false)
		f.Add(own+more, `{"schema":2}`, byte(1), true)
	}
	f.Fuzz(func(t *testing.T, intent, tags string, world byte, deleted bool) {
		was, p, unread := worlds[int(world)%len(worlds)](intent, tags, deleted)
		for _, a := range p.Actions() {
			if unread != nil && inCloud(a) {
				t.Errorf("%s, though %v", a.Key(), unread)
			}
			u, is := a.(plan.Update)
			if !is || was != nil && (was.Failures > 1<<30 || was.Attempt > 1<<30) { // whoever uses up the counts
				continue
			}
			if n, is := u.New.(*machine.Machine); is && n.Annotations[machine.AnnotationIntent] != intent {
				if _, err := machine.ParseIntent(n); err != nil {
					t.Errorf("of %q it writes %q: %v", intent, n.Annotations[machine.AnnotationIntent], err)
				}
			}
		}
	})
}

func inCloud(a plan.Action) bool {
	switch a.(type) {
	case plan.CreateInstance, plan.DeleteInstance, plan.UpdateInstance, plan.PowerCycle:
		return true
	case plan.Create, plan.Update, plan.UpdateStatus, plan.Delete, plan.Evict, plan.Approve:
	}
	return false
}
