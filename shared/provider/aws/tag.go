// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// Tags by which an instance is known. The cluster's is also on what the installer made: the Machine's tells ours.
const (
	tagName      = "Name"
	tagUID       = "machine-functions/machine-uid"
	tagMark      = "machine-functions/cluster-uid"    // the one cluster's, whatever other has its id
	tagBalancers = "machine-functions/load-balancers" // that the instance is to join, as type:name
	tagBalancer  = "machine-functions/load-balancer/" // and the name of a network one that the instance is to leave, whoever let it join
	tagJoined    = "machine-functions/joined"         // set once it has
	tagCluster   = providerspec.AWSTagCluster         // and the cluster's id
	owned        = "owned"
)

func (d *driver) tagCluster() string { return tagCluster + d.account.ClusterID }

// ours filters what carries the cluster's tag.
func (d *driver) ours() types.Filter { return has("tag:"+d.tagCluster(), owned) }

// tags are those of a new instance, and of its volumes.
func (d *driver) tags(r provider.Ref, req request) []types.Tag {
	all := d.owning(wanted(req.Spec), r, req)
	if b := req.Spec.Balancers(); b != "" {
		all[tagBalancers] = b
	}
	return pairs(all)
}

// owning adds to tags those that say whose a new thing is.
func (d *driver) owning(all map[string]string, r provider.Ref, req request) map[string]string {
	all[tagName], all[tagUID], all[d.tagCluster()] = r.Name, string(r.UID), owned
	if req.Mark != "" {
		all[tagMark] = req.Mark
	}
	return all
}

func pairs(all map[string]string) []types.Tag {
	var tags []types.Tag
	for _, k := range slices.Sorted(maps.Keys(all)) {
		tags = append(tags, types.Tag{Key: aws.String(k), Value: aws.String(all[k])})
	}
	return tags
}

// wanted are the spec's own tags; of several with one name the first counts.
func wanted(s providerspec.AWS) map[string]string {
	all := map[string]string{}
	for _, t := range s.Tags {
		if _, seen := all[t.Name]; !seen && !t.Reserved() {
			all[t.Name] = t.Value
		}
	}
	return all
}

// reserved reports whether a tag says whose an instance is.
func reserved(name string) bool {
	return providerspec.AWSTag{Name: name}.Reserved()
}

// Tags implements [provider.Updater]. With the spec's own go those by which Delete finds the load balancers of what another
// system made.
func (*driver) Tags(spec json.RawMessage) (map[string]string, error) {
	s, err := decode(spec)
	if err != nil {
		return nil, err
	}
	all := wanted(s)
	maps.Copy(all, left(s))
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// Update implements [provider.Updater].
func (d *driver) Update(ctx context.Context, r provider.Ref, tags map[string]string) error {
	return d.call(ctx, func(ctx context.Context) error {
		all, err := d.named(ctx, r)
		if err != nil {
			return err
		}
		var ids []string
		for _, i := range live(all) {
			ids = append(ids, aws.ToString(i.InstanceId))
		}
		if len(ids) == 0 {
			return provider.Errorf(provider.NotFound, "tag %s: no instance is there", r.Name)
		}
		mine := maps.Clone(tags)
		maps.DeleteFunc(mine, func(name, _ string) bool { return reserved(name) && !strings.HasPrefix(name, tagBalancer) })
		if len(mine) == 0 {
			return nil
		}
		_, err = d.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: ids, Tags: pairs(mine)})
		return err
	})
}
