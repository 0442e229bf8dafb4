// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/ec2"
)

// Backups that are restored, launch templates made of an instance and whoever wants one more like it copy the tags of an instance, and
// none of them its client token: what such a copy is for people know, and nobody removes it for the Machine whose tags it has (R-S3).
func TestCopyIsNobodysInstance(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	region := serve(t, cloud)
	d, _ := region.wired(t, region.account())
	r, in, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	id := cloud.Copy(in.ID, string(uuid.NewUUID()))
	copied := provider.Ref{ID: id[strings.LastIndexByte(id, '/')+1:], ProviderID: id}

	found, err := d.Find(t.Context(), r)
	if err != nil || len(found) != 1 || found[0].ID != in.ID {
		t.Errorf("the Machine has %+v, %v", found, err)
	}
	all, err := d.List(t.Context())
	must(t, err)
	for _, i := range all {
		if is := i.ID == copied.ID; is != (i.UID == "") || is != (i.Token == "") || is != strings.Contains(i.Message, string(r.UID)) {
			t.Errorf("the list tells of %+v", i)
		}
	}
	if len(all) != 2 {
		t.Errorf("the list has %d instances", len(all))
	}
	deleted(t, d, r)
	if live := cloud.Live(); len(live) != 1 || live[copied.ID] == nil {
		t.Errorf("left are %v", live)
	}
	if err := d.Delete(t.Context(), provider.Ref{ID: copied.ID}); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("Delete by an id that no Machine records = %v", err)
	}
	r.ProviderID = copied.ProviderID // whoever writes that into a Machine says whose it is
	deleted(t, d, r)
	if live := cloud.Live(); len(live) != 0 {
		t.Errorf("left are %v", live)
	}
}

// Clouds of this protocol that tell no client tokens tell of no copies either.
func TestInstanceWithoutAClientTokenIsTheMachines(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	region := serve(t, cloud)
	d, _ := region.wired(t, region.account())
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a"}
	cloud.Add("us-east-2b", "m5.large", map[string]string{tagUID: string(r.UID), d.tagCluster(): owned})
	if found, err := d.Find(t.Context(), r); err != nil || len(found) != 1 || found[0].UID != r.UID {
		t.Errorf("Find = %+v, %v", found, err)
	}
}

// For a spot instance EC2 makes a request of its own, whose client token nothing promises to be the caller's: it is judged by its tags.
func TestSpotInstanceIsTheMachinesWhateverItsToken(t *testing.T) {
	t.Parallel()
	i := types.Instance{ClientToken: new("0b0b8c5e"), Tags: []types.Tag{{Key: new(tagUID), Value: new("uid")}}}
	if !copied(i) {
		t.Error("an instance of another's client token is the Machine's")
	}
	i.InstanceLifecycle = types.InstanceLifecycleTypeSpot
	if copied(i) {
		t.Error("a spot instance is nobody's")
	}
}
