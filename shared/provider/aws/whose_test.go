// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// Which instance a call is about, and nothing else, is terminated, tagged or power-cycled (R-S3): that with the Machine's tag and the
// cluster's, which our call made; else the one that the Machine records, unless it is another's.
func TestWhoseInstanceItIs(t *testing.T) {
	t.Parallel()
	const id, other = "i-0123456789abcdef0", "i-00000000000000000"
	ours := map[string]string{tagUID: "mine", tagCluster + "prod": owned}
	with := func(tags map[string]string) map[string]string {
		all := maps.Clone(ours)
		maps.Copy(all, tags)
		return all
	}
	byTag := provider.Ref{UID: "mine"}
	recording := provider.Ref{UID: "mine", ID: id, ProviderID: "aws:///z/" + id}
	for name, c := range map[string]struct {
		ref   provider.Ref
		tags  map[string]string
		token string
		spot  bool
		want  bool
	}{
		"by its tag":                              {ref: byTag, tags: ours, token: "t.z", want: true},
		"of a cloud without client tokens":        {ref: byTag, tags: ours, want: true},
		"of another Machine":                      {ref: byTag, tags: with(map[string]string{tagUID: "theirs"}), token: "t.z"},
		"of another Machine, though recorded":     {ref: recording, tags: with(map[string]string{tagUID: "theirs"}), token: "t.z"},
		"of another cluster":                      {ref: byTag, tags: map[string]string{tagUID: "mine", tagCluster + "test": owned}, token: "t.z"},
		"of another cluster, though recorded":     {ref: recording, tags: map[string]string{tagUID: "mine", tagCluster + "test": owned}, token: "t.z"},
		"without the cluster's tag":               {ref: byTag, tags: map[string]string{tagUID: "mine"}, token: "t.z"},
		"without it, and recorded":                {ref: recording, tags: map[string]string{tagUID: "mine"}, token: "t.z", want: true},
		"of another Machine without it":           {ref: recording, tags: map[string]string{tagUID: "theirs"}, token: "t.z"},
		"shared with the cluster, and recorded":   {ref: recording, tags: with(map[string]string{tagCluster + "prod": "shared"}), token: "t.z", want: true},
		"shared with the cluster":                 {ref: byTag, tags: with(map[string]string{tagCluster + "prod": "shared"}), token: "t.z"},
		"a copy":                                  {ref: byTag, tags: ours, token: "theirs"},
		"a copy that is recorded":                 {ref: recording, tags: ours, token: "theirs", want: true},
		"a spot instance of another token":        {ref: byTag, tags: ours, token: "theirs", spot: true, want: true},
		"without tags":                            {ref: byTag, token: "t.z"},
		"without tags, and recorded":              {ref: recording, want: true},
		"without tags, and another is recorded":   {ref: provider.Ref{UID: "mine", ID: id, ProviderID: "aws:///z/" + other}},
		"of the attempt":                          {ref: provider.Ref{UID: "mine", Attempt: true, Token: "t"}, tags: ours, token: "t.z", want: true},
		"of another attempt":                      {ref: provider.Ref{UID: "mine", Attempt: true, Token: "t"}, tags: ours, token: "u.z"},
		"of another attempt, though recorded":     {ref: provider.Ref{UID: "mine", ProviderID: recording.ProviderID, Attempt: true, Token: "t"}, tags: ours, token: "u.z"},
		"a leftover by its id":                    {ref: provider.Ref{ID: id}, tags: with(map[string]string{tagUID: "gone"}), token: "t.z", want: true},
		"a leftover by its provider id":           {ref: provider.Ref{ProviderID: recording.ProviderID}, tags: ours, token: "t.z", want: true},
		"another than the leftover":               {ref: provider.Ref{ID: other}, tags: ours, token: "t.z"},
		"a leftover by its id, not the cluster's": {ref: provider.Ref{ID: id}, tags: map[string]string{tagUID: "gone"}, token: "t.z"},
		"a leftover by its id, a copy":            {ref: provider.Ref{ID: id}, tags: ours, token: "theirs"},
		"a leftover by its id, without tags":      {ref: provider.Ref{ID: id}},
	} {
		i := types.Instance{InstanceId: aws.String(id), Tags: pairs(c.tags), Placement: &types.Placement{AvailabilityZone: aws.String("z")}}
		if c.token != "" {
			i.ClientToken = &c.token
		}
		if c.spot {
			i.InstanceLifecycle = types.InstanceLifecycleTypeSpot
		}
		d := &driver{account: provider.Account{ClusterID: "prod"}}
		if got := d.means(c.ref, i); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// No spec says whose an instance is: a tag of it that would is left out, on a new instance and of what is written on one that runs. Under
// another cluster's name that cluster would terminate it as nobody's.
func TestSpecDoesNotSayWhoseItIs(t *testing.T) {
	t.Parallel()
	d := &driver{account: provider.Account{ClusterID: "prod"}}
	s := providerspec.AWS{Tags: []providerspec.AWSTag{
		{Name: "team", Value: "a"}, {Name: "team", Value: "b"}, {Name: tagName, Value: "theirs"}, {Name: tagUID, Value: "theirs"}, {Name: tagMark, Value: "theirs"},
		{Name: tagBalancers, Value: "network:theirs"}, {Name: tagJoined, Value: "true"}, {Name: tagCluster + "prod", Value: "shared"},
		{Name: tagCluster + "test", Value: owned}, {Name: "aws:theirs", Value: "theirs"},
	}}
	if got := wanted(s); !maps.Equal(got, map[string]string{"team": "a"}) {
		t.Errorf("the spec's own tags are %v", got)
	}
	all := map[string]string{}
	for _, tag := range d.tags(provider.Ref{Name: "worker-a", UID: "mine"}, request{Spec: s}) {
		all[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	if want := map[string]string{"team": "a", tagName: "worker-a", tagUID: "mine", tagCluster + "prod": owned}; !maps.Equal(all, want) {
		t.Errorf("a new instance has %v, want %v", all, want)
	}
}
