// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/machine-functions/machine-functions/shared/beside"
)

// parts are how the ids of instances end, which are written in hexadecimal digits: each part of a long list has two.
var parts = [][]string{{"*0", "*1"}, {"*2", "*3"}, {"*4", "*5"}, {"*6", "*7"}, {"*8", "*9"}, {"*a", "*b"}, {"*c", "*d"}, {"*e", "*f"}}

// every lists the live instances of the cluster. EC2 needs seconds for a page of a thousand, and tells where the next one
// begins only with the one before. So where one page is not enough the parts of the list are asked for side by side, and page
// by page only in a cloud of this protocol that knows no such parts.
func (d *driver) every(ctx context.Context) ([]types.Instance, error) {
	ours := []types.Filter{d.ours(), has("instance-state-name", alive...)}
	first, more, err := d.page(ctx, ours...)
	if err != nil || !more {
		return first, err
	}
	found := make([][]types.Instance, len(parts))
	g, side := beside.WithContext(ctx)
	for k, ends := range parts {
		g.Go(func() (err error) {
			found[k], err = d.describe(side, append(slices.Clone(ours), has("instance-id", ends...))...)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	all := slices.Concat(found...)
	untold := missing(first, all)
	if len(untold) > len(all)/100+1 { // a few may have ended in between
		return d.describe(ctx, ours...)
	}
	return append(all, untold...), nil
}

// missing returns those of some instances that are not among all.
func missing(some, all []types.Instance) []types.Instance {
	told := map[string]bool{}
	for _, i := range all {
		told[aws.ToString(i.InstanceId)] = true
	}
	return slices.DeleteFunc(some, func(i types.Instance) bool { return told[aws.ToString(i.InstanceId)] })
}
