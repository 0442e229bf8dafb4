// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// retag gives the instance the tags that its providerSpec wants and that it lacks, where the cloud can (SPEC E1, B20).
// Tags that the spec no longer names stay, as labels do on Nodes: nobody knows who else set them. What just came out of a
// call has the tags that it was made with.
func (l life) retag() plan.Sequence {
	in := l.in
	if _, called := created(l.Snapshot, l.m, l.intent); called || in == nil || !settled(l.m) {
		return plan.Sequence{}
	}
	var lacks map[string]string
	for name, value := range l.cloud.Tags {
		if has, ok := in.Tags[name]; !ok || has != value {
			if lacks == nil {
				lacks = map[string]string{}
			}
			lacks[name] = value
		}
	}
	if lacks == nil {
		return plan.Sequence{}
	}
	names := strings.Join(slices.Sorted(maps.Keys(lacks)), ", ")
	a := plan.UpdateInstance{Account: l.cloud.Account, Tags: lacks, Why: "tags that the providerSpec wants"}
	a.Ref = provider.Ref{UID: l.m.UID, Name: l.m.Name, ID: in.ID, ProviderID: in.ProviderID}
	switch o, tried := l.Outcome(a); {
	case !tried:
		return plan.Sequence{Do: []plan.Action{a}, Notes: []plan.Note{l.normal("Update", "Updated tags of instance "+in.ID+": "+names)}}
	case o.Result == plan.Done, o.Result == plan.Gone:
		return plan.Sequence{} // the cloud's list tells in the next scan
	default: // tried again by the next scan
		return l.tell("FailedUpdate", "tags "+names+": "+cmp.Or(o.Message, "there is no such instance"))
	}
}
