// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Shadow is the memory of a function that runs dry. What it decides to remember in ConfigMaps is kept here instead, so that
// timers run and a decision follows from those before; other changes of objects are pretended for the rest of the
// invocation. It holds what nobody else has written meanwhile, key by key: whoever runs in earnest beside it is believed. It may
// be used by several invocations at a time.
type Shadow struct {
	mu   sync.Mutex
	kept map[snapshot.Query]map[string]kept // by ConfigMap and key
}

// kept is the value of one key, and the one that really stood there when it was decided.
type kept struct{ found, wanted string }

// pretended is what one dry invocation would have done to objects.
type pretended struct {
	objects map[snapshot.Query]plan.Object
	found   map[snapshot.Query]map[string]string // what ConfigMaps really hold, of those that are covered in this observation
}

func queryOf(o plan.Object) snapshot.Query {
	return snapshot.One(plan.KindOf(o), o.GetNamespace(), o.GetName())
}

// cover lays over a snapshot what would be there if nothing had run dry.
func (i *invocation) cover(s *snapshot.Snapshot) {
	if !i.DryRun || i.Shadow == nil {
		return
	}
	*s = s.Clone() // its lists may be everybody's
	for q, o := range i.pretended.objects {
		if s.Has(q) || s.Has(snapshot.All(q.Kind)) {
			s.Add(o)
		}
	}
	i.Shadow.mu.Lock()
	defer i.Shadow.mu.Unlock()
	for q, keys := range i.Shadow.kept {
		if _, done := i.pretended.found[q]; done || !s.Has(q) {
			continue
		}
		cm := &corev1.ConfigMap{}
		cm.Namespace, cm.Name = q.Namespace, q.Name
		if found := s.ConfigMap(q.Namespace, q.Name); found != nil {
			cm = found.DeepCopy()
		}
		i.pretended.found[q] = maps.Clone(cm.Data)
		if recall(cm, keys); len(keys) > 0 {
			s.Add(cm)
		}
	}
}

// recall writes into a ConfigMap what is kept of it, and forgets what somebody else has written.
func recall(cm *corev1.ConfigMap, keys map[string]kept) {
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	for key, k := range keys {
		if cm.Data[key] != k.found {
			delete(keys, key)
			continue
		}
		cm.Data[key] = k.wanted
	}
}

// pretend keeps what a plan would have changed, and reports whether looking again shows what would come next. That is so while
// nothing but changes of objects is wanted: what is created, deleted or asked of a cloud would have an answer that nobody knows.
func (i *invocation) pretend(p plan.Plan) bool {
	if i.Shadow == nil {
		return false
	}
	next, changed := len(p.Actions()) > 0, map[snapshot.Query]bool{}
	for _, a := range p.Actions() {
		switch a := a.(type) {
		case plan.Create:
			cm, is := a.Object.(*corev1.ConfigMap)
			if next = next && is; is {
				i.keep(&corev1.ConfigMap{}, cm)
			}
		case plan.Update:
			if cm, is := a.New.(*corev1.ConfigMap); is {
				i.keep(a.Old.(*corev1.ConfigMap), cm)
			} else {
				next = i.assume(a.New, changed) && next
			}
		case plan.UpdateStatus:
			next = i.assume(a.New, changed) && next
		case plan.Delete, plan.Evict, plan.Approve, plan.CreateInstance, plan.DeleteInstance, plan.UpdateInstance, plan.PowerCycle:
			next = false
		}
	}
	return next
}

// assume makes an object stand as a plan wants it. A second change in the same plan would have to be one of the first's result.
func (i *invocation) assume(o plan.Object, changed map[snapshot.Query]bool) bool {
	q := queryOf(o)
	if changed[q] {
		return false
	}
	changed[q] = true
	if i.pretended.objects == nil {
		i.pretended.objects = map[snapshot.Query]plan.Object{}
	}
	i.pretended.objects[q] = o
	return true
}

// keep remembers what a ConfigMap would say.
func (i *invocation) keep(old, wanted *corev1.ConfigMap) {
	q := queryOf(wanted)
	found, covered := i.pretended.found[q]
	if !covered {
		found = old.Data
	}
	i.Shadow.mu.Lock()
	defer i.Shadow.mu.Unlock()
	if i.Shadow.kept == nil {
		i.Shadow.kept = map[snapshot.Query]map[string]kept{}
	}
	if i.Shadow.kept[q] == nil {
		i.Shadow.kept[q] = map[string]kept{}
	}
	for key, value := range wanted.Data {
		if delete(i.Shadow.kept[q], key); value != found[key] {
			i.Shadow.kept[q][key] = kept{found[key], value}
		}
	}
}
