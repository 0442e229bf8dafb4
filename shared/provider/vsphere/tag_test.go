// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"slices"
	"testing"

	"github.com/vmware/govmomi/vapi/tags"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// What OpenShift's installer finds by the cluster's tag goes with the cluster. A vCenter without that tag is asked once; one whose tag went is
// asked anew, and nothing is made untagged for that.
func TestInstanceHasTheTagOfTheCluster(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, _ := v.wired(t, v.account())
	v.tag(t, d, "openshift-of-another", "of-another", reference{})
	id := v.tag(t, d, clusterCategory+v.account().ClusterID, v.account().ClusterID, reference{})
	attached := func(name string) (ids []string) {
		t.Helper()
		c, err := d.session.connect(t.Context())
		must(t, err)
		must(t, d.session.tagging(t.Context(), c, func(m *tags.Manager) error {
			ids, err = m.ListAttachedTags(t.Context(), v.machines(t)[name].Self)
			return err
		}))
		return ids
	}
	if _, _, err := create(t, d, "worker-a", v.spec(nil)); err != nil || !slices.Equal(attached("worker-a"), []string{id}) {
		t.Errorf("%v: its tags are %q, want %q", err, attached("worker-a"), id)
	}
	own := v.tag(t, d, "owner", "team-a", reference{})
	if _, _, err := create(t, d, "worker-b", v.spec(map[string]any{"tagIDs": []string{own}})); err != nil || len(attached("worker-b")) != 2 {
		t.Errorf("%v: beside the spec's its tags are %q", err, attached("worker-b"))
	}
	c, err := d.session.connect(t.Context())
	must(t, err)
	must(t, d.session.tagging(t.Context(), c, func(m *tags.Manager) error { return m.DeleteTag(t.Context(), &tags.Tag{ID: id}) }))
	if _, _, err := create(t, d, "worker-c", v.spec(nil)); provider.CodeOf(err) != provider.Unknown {
		t.Errorf("a tag that is gone: %v", err)
	}
	if found, err := d.ofCluster(t.Context(), c); found != "" || err != nil {
		t.Errorf("a tag that is gone is %q, %v", found, err)
	}
	if _, _, err := create(t, d, "worker-d", v.spec(nil)); err != nil || len(attached("worker-d")) != 0 {
		t.Errorf("without a tag of the cluster: %v, %q", err, attached("worker-d"))
	}
}
