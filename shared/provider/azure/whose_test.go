// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
	"github.com/machine-functions/machine-functions/test/arm"
)

// Which instance a call is about, and nothing else, is removed, tagged or power-cycled (R-S3): that with the Machine's tag and the
// cluster's, under the Machine's name; else the one that the Machine records, unless it is another's.
func TestWhoseInstanceItIs(t *testing.T) {
	t.Parallel()
	const id, other = "5c0d55a7-c407-4ed6-bf7d-ddb810267c85", "00000000-0000-4000-8000-000000000000"
	ours := map[string]string{tagUID: "mine", tagMachine: "worker-a", tagToken: "t", tagCluster + "prod": owned}
	with := func(tags map[string]string) map[string]string {
		all := maps.Clone(ours)
		maps.Copy(all, tags)
		return all
	}
	at := arm.ID(arm.Instances, "worker-a")
	byTag := provider.Ref{UID: "mine", Name: "worker-a"}
	recording := provider.Ref{UID: "mine", ID: id, ProviderID: providerID(at)}
	for name, c := range map[string]struct {
		ref  provider.Ref
		tags map[string]string
		want bool
	}{
		"by its tag":                            {byTag, ours, true},
		"by its tag, in other letters":          {byTag, map[string]string{strings.ToUpper(tagUID): "mine", strings.ToUpper(tagMachine): "WORKER-A", tagCluster + "PROD": owned}, true},
		"of another Machine":                    {byTag, with(map[string]string{tagUID: "theirs"}), false},
		"of another Machine, though recorded":   {recording, with(map[string]string{tagUID: "theirs"}), false},
		"of another cluster":                    {byTag, map[string]string{tagUID: "mine", tagMachine: "worker-a", tagCluster + "test": owned}, false},
		"of another cluster, though recorded":   {recording, map[string]string{tagUID: "mine", tagMachine: "worker-a", tagCluster + "test": owned}, false},
		"without the cluster's tag":             {byTag, map[string]string{tagUID: "mine", tagMachine: "worker-a"}, false},
		"without it, and recorded":              {recording, map[string]string{tagUID: "mine", tagMachine: "worker-a"}, true},
		"of another Machine without it":         {recording, map[string]string{tagUID: "theirs", tagMachine: "worker-a"}, false},
		"another one of that name without it":   {provider.Ref{UID: "mine", ID: other, ProviderID: providerID(at)}, map[string]string{tagUID: "mine", tagMachine: "worker-a"}, false},
		"shared with the cluster, and recorded": {recording, with(map[string]string{strings.ToUpper(tagCluster) + "prod": "shared", tagCluster + "prod": "shared"}), true},
		"shared with the cluster":               {byTag, with(map[string]string{tagCluster + "prod": "shared"}), false},
		"a copy":                                {byTag, with(map[string]string{tagMachine: "worker-b"}), false},
		"a copy that is recorded":               {recording, with(map[string]string{tagMachine: "worker-b"}), true},
		"another cluster's, and recorded":       {recording, map[string]string{tagCluster + "test": owned}, false},
		"the cluster's, and recorded":           {recording, map[string]string{tagCluster + "prod": owned}, true},
		"without tags":                          {byTag, nil, false},
		"without tags, and recorded":            {recording, nil, true},
		"without tags, and another is recorded": {provider.Ref{UID: "mine", ID: id, ProviderID: providerID(arm.ID(arm.Instances, "worker-b"))}, nil, false},
		"another one of that name":              {provider.Ref{ID: other, ProviderID: providerID(at)}, ours, false},
		"another one of that name, untagged":    {provider.Ref{UID: "mine", ID: other, ProviderID: providerID(at)}, nil, false},
		"of the attempt":                        {provider.Ref{UID: "mine", Attempt: true, Token: "t"}, ours, true},
		"of another attempt":                    {provider.Ref{UID: "mine", Attempt: true, Token: "u"}, ours, false},
		"of another attempt, though recorded":   {provider.Ref{UID: "mine", ProviderID: recording.ProviderID, Attempt: true, Token: "u"}, ours, false},
		"a leftover by its id":                  {provider.Ref{ID: strings.ToUpper(id)}, with(map[string]string{tagUID: "gone"}), true},
		"a leftover by its provider id":         {provider.Ref{ProviderID: strings.ToUpper(recording.ProviderID[:20]) + recording.ProviderID[20:]}, ours, false},
		"another than the leftover":             {provider.Ref{ID: other}, ours, false},
		"a leftover of another cluster":         {provider.Ref{ID: id}, map[string]string{tagUID: "gone", tagMachine: "worker-a"}, false},
		"a leftover by its id, a copy":          {provider.Ref{ID: id}, with(map[string]string{tagMachine: "worker-b"}), false},
		"a leftover by its id, without tags":    {provider.Ref{ID: id}, nil, false},
	} {
		i := instance{thing: thing{ID: at, Name: "worker-a", Tags: c.tags}, Properties: instanceProperties{VMID: id}}
		d := &driver{account: provider.Account{ClusterID: "prod"}, client: &client{subscription: arm.Subscription, group: arm.Group}}
		if got := d.means(c.ref, i); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Which disk, network interface or address a call is about: what carries all tags, under the name that goes with them, and is not kept.
func TestWhoseChildItIs(t *testing.T) {
	t.Parallel()
	ours := map[string]string{tagUID: "mine", tagMachine: "worker-a", tagToken: "t", tagDisks: "logs data kept", tagKept: "data kept", tagCluster + "prod": owned}
	with := func(key, value string) map[string]string {
		all := maps.Clone(ours)
		all[key] = value
		return all
	}
	byTag := provider.Ref{UID: "mine", Name: "worker-a"}
	for name, c := range map[string]struct {
		ref        provider.Ref
		kind, name string
		tags       map[string]string
		used       bool
		want       bool
	}{
		"its interface":                    {byTag, cardKind, "worker-a-nic", ours, false, true},
		"its address":                      {byTag, addressKind, "worker-a-ip", ours, false, true},
		"its disk":                         {byTag, diskKind, "worker-a_OSDisk", ours, false, true},
		"another disk":                     {byTag, diskKind, "Worker-A_logs", ours, false, true},
		"a disk that is kept":              {byTag, diskKind, "worker-a_data", ours, false, false},
		"a disk that is kept, in capitals": {byTag, diskKind, "worker-a_KEPT", ours, false, false},
		"a disk restored from its":         {byTag, diskKind, "worker-a_OSDisk-restored-20260101", ours, false, false},
		"a disk that no spec had":          {byTag, diskKind, "worker-a_backup", ours, false, false},
		"a kept disk of the attempt":       {provider.Ref{UID: "mine", Attempt: true, Token: "t"}, diskKind, "worker-a_data", ours, false, true},
		"a kept disk of another attempt":   {provider.Ref{UID: "mine", Attempt: true, Token: "u"}, diskKind, "worker-a_data", ours, false, false},
		"a disk made of its":               {byTag, diskKind, "restored", ours, false, false},
		"one whose name begins like it":    {byTag, diskKind, "worker-abc_OSDisk", ours, false, false},
		"an interface of another name":     {byTag, cardKind, "worker-a-nic2", ours, false, false},
		"an address of another name":       {byTag, addressKind, "worker-a-nic", ours, false, false},
		"of another Machine":               {byTag, cardKind, "worker-a-nic", with(tagUID, "theirs"), false, false},
		"nobody's":                         {byTag, cardKind, "worker-a-nic", with(tagUID, ""), false, false},
		"without a name":                   {byTag, cardKind, "-nic", with(tagMachine, ""), false, false},
		"of another cluster":               {byTag, cardKind, "worker-a-nic", with(tagCluster+"prod", "shared"), false, false},
		"of the attempt":                   {provider.Ref{UID: "mine", Attempt: true, Token: "t"}, cardKind, "worker-a-nic", ours, false, true},
		"of another attempt":               {provider.Ref{UID: "mine", Attempt: true, Token: "u"}, cardKind, "worker-a-nic", ours, false, false},
		"a leftover":                       {provider.Ref{ID: cardKind + "/worker-a-nic/guid"}, cardKind, "worker-a-nic", ours, false, true},
		"a leftover that is used again":    {provider.Ref{ID: cardKind + "/worker-a-nic/guid"}, cardKind, "worker-a-nic", ours, true, false},
		"another one of that name":         {provider.Ref{ID: cardKind + "/worker-a-nic/other"}, cardKind, "worker-a-nic", ours, false, false},
		"none of the leftovers":            {provider.Ref{}, cardKind, "worker-a-nic", ours, false, false},
	} {
		d := &driver{account: provider.Account{ClusterID: "prod"}, client: &client{location: "eastus2"}}
		it := child{thing: thing{Name: c.name, Tags: c.tags, Location: "East US 2"}, kind: c.kind, guid: "GUID"}
		if c.used {
			it.user = arm.ID(arm.Instances, "worker-a")
		}
		if got := d.meansChild(c.ref, it); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if it.Location = "westus"; d.meansChild(c.ref, it) {
			t.Errorf("%s: in another location it is the same", name)
		}
	}
}

// No spec says whose an instance is: a tag of it that would is left out, in whatever letters, on a new instance and of what is written
// on one that runs.
func TestSpecDoesNotSayWhoseItIs(t *testing.T) {
	t.Parallel()
	d := &driver{account: provider.Account{ClusterID: "prod"}}
	s := providerspec.Azure{Tags: map[string]string{
		"team": "a", tagUID: "theirs", "Machine-Functions.Token": "theirs", tagMark: "theirs", tagKept: "OSDisk", tagCluster + "prod": "shared",
		"KUBERNETES.io_cluster.test": owned, "kubernetes.io-cluster-test": owned,
	}}
	if got := wanted(s); !maps.Equal(got, map[string]string{"team": "a"}) {
		t.Errorf("the spec's own tags are %v", got)
	}
	all := d.tags(provider.Ref{Name: "worker-a", UID: "mine", Token: "t"}, request{Spec: s})
	if want := map[string]string{"team": "a", tagMachine: "worker-a", tagUID: "mine", tagToken: "t", tagCluster + "prod": owned}; !maps.Equal(all, want) {
		t.Errorf("a new instance has %v, want %v", all, want)
	}
}

// Of Azure's 50 tags those say whose an instance is that it gets: a spec has as many as OpenShift lets it have, but for those that data
// disks need.
func TestSpecHasTheTagsThatAreLeft(t *testing.T) {
	t.Parallel()
	d := &driver{account: provider.Account{ClusterID: "prod"}}
	stays, goes := providerspec.AzureDataDisk{NameSuffix: "a", DeletionPolicy: detach}, providerspec.AzureDataDisk{NameSuffix: "b", DeletionPolicy: "Delete"}
	for _, c := range []struct {
		tags  int
		disks []providerspec.AzureDataDisk
		want  int // of its instance; 0: refused
	}{
		{45, nil, 50}, {46, nil, 0}, {44, []providerspec.AzureDataDisk{goes}, 50}, {45, []providerspec.AzureDataDisk{goes}, 0},
		{43, []providerspec.AzureDataDisk{goes, stays}, 50}, {44, []providerspec.AzureDataDisk{goes, stays}, 0},
	} {
		s := providerspec.Azure{DataDisks: c.disks, Tags: map[string]string{tagUID: "theirs"}}
		for n := range c.tags {
			s.Tags[fmt.Sprintf("t%d", n)] = "x"
		}
		err := taggable(s)
		if c.want == 0 {
			if provider.CodeOf(err) != provider.Invalid {
				t.Errorf("%d tags with %d disks: %v, want Invalid", c.tags, len(c.disks), err)
			}
			continue
		}
		all := d.tags(provider.Ref{Name: "worker-a", UID: "mine", Token: "t"}, request{Spec: s, Mark: "m"})
		if err != nil || len(all) != c.want {
			t.Errorf("%d tags with %d disks: %v, and the instance has %d", c.tags, len(c.disks), err, len(all))
		}
	}
}

// Restored, cloned and made by hand like it: a copy is nobody's, and told as such (R-S3).
func TestCopyIsNobodysInstance(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	r, in, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	id := providerID(cloud.Copy("worker-a", "restored"))
	found, err := d.Find(t.Context(), r)
	if err != nil || len(found) != 1 || found[0].ID != in.ID {
		t.Errorf("the Machine has %+v, %v", found, err)
	}
	all, err := d.List(t.Context())
	must(t, err)
	for _, i := range all {
		if is := i.ProviderID == id; is != (i.UID == "") || is != (i.Token == "") || is != strings.Contains(i.Message, string(r.UID)) || i.Child {
			t.Errorf("the list tells of %+v", i)
		}
	}
	if len(all) != 2 {
		t.Errorf("the list has %d instances", len(all))
	}
	deleted(t, d, r)
	if left := cloud.Names(arm.Instances); len(left) != 1 || left[0] != "restored" {
		t.Errorf("left are %v", left)
	}
	r.ProviderID = id // whoever writes that into a Machine says whose it is
	deleted(t, d, r)
	if left := cloud.Names(arm.Instances); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// An attempt goes on with the tags that it was begun with, whoever goes on with it (R-S17).
func TestAttemptKeepsTheMarkItWasBegunWith(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	before, _ := wired(t, cloud, account())
	resolved, err := before.Resolve(t.Context(), spec(nil))
	must(t, err)
	r := provider.Ref{UID: "uid-1", Name: "worker-a", Token: "t"}
	first, err := before.Create(t.Context(), r, resolved)
	must(t, err)
	r.Progress = first.Progress
	a := account()
	a.ClusterUID = "f6b2c5ea-2a3c-4b0e-9f1e-2f5d1d1c0a11"
	after, _ := wired(t, cloud, a)
	in, err := proceed(t.Context(), after, r, resolved)
	if err != nil || in.ClusterUID != "" {
		t.Errorf("it goes on with %q, %v", in.ClusterUID, err)
	}
}
