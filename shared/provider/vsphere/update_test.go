// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/vapi/tags"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// The tags of a spec are on the instance from the beginning, those that it names later come to it, and what is in place costs
// no change (SPEC E1, B20). A tag that is not there is no missing instance.
func TestTagsFollowTheSpec(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	first, second := v.tag(t, d, "owner", "team-a", reference{}), v.tag(t, d, "cost", "7", reference{})
	r, i, err := create(t, d, "worker-a", v.spec(map[string]any{"tagIDs": []string{first}}))
	must(t, err)
	if want := map[string]string{first: ""}; !maps.Equal(i.Tags, want) {
		t.Errorf("made with %v, want %v", i.Tags, want)
	}
	r.ID, r.ProviderID, r.Progress = i.ID, i.ProviderID, nil
	wanted, err := d.Tags(v.spec(map[string]any{"tagIDs": []string{first, second}}))
	must(t, err)
	must(t, d.Update(t.Context(), r, wanted))
	changes := w.count("ReconfigVM_Task")
	must(t, d.Update(t.Context(), r, wanted))
	if n := w.count("ReconfigVM_Task") - changes; n != 0 {
		t.Errorf("repeating it makes %d changes", n)
	}
	all, err := d.List(t.Context())
	must(t, err)
	if len(all) != 1 || !maps.Equal(all[0].Tags, wanted) {
		t.Errorf("listed %+v, want one with the tags %v", all, wanted)
	}
	c := v.client(t)
	vm := v.machines(t)["worker-a"]
	must(t, d.session.tagging(t.Context(), c, func(m *tags.Manager) error {
		ids, err := m.ListAttachedTags(t.Context(), vm.Self)
		if err == nil && (!slices.Contains(ids, first) || !slices.Contains(ids, second)) {
			t.Errorf("attached are %v, want %v", ids, wanted)
		}
		return err
	}))
	const prefix = "urn:vmomi:InventoryServiceTag:"
	missing := prefix + "00000000" + first[len(prefix)+8:]
	if err := d.Update(t.Context(), r, map[string]string{missing: ""}); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "is no such tag") {
		t.Errorf("a tag that is not there: %v", err)
	}
	asked := len(w.sent)
	for _, bad := range []string{missing + "/../../session", "team-a"} { // one leads elsewhere, the other to all tags
		if err := d.Update(t.Context(), r, map[string]string{bad: ""}); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "can be no such tag") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, sent := range w.sent[asked:] {
		if strings.HasPrefix(sent, "/rest") || strings.HasPrefix(sent, "/api") {
			t.Errorf("the tagging service was asked for %s", sent)
		}
	}
}
