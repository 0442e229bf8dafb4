// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var _ provider.Updater = (*driver)(nil)

// keyTags notes in an instance's own settings which tags the driver has attached to it. So a list tells them without asking
// the tagging service, which is another one, about every instance in every scan.
const keyTags = "machine-functions.tags"

// Tags implements [provider.Updater]: the spec's tagIDs, which have no values.
func (*driver) Tags(spec json.RawMessage) (map[string]string, error) {
	s, err := decode(spec)
	if err != nil {
		return nil, err
	}
	return valueless(s.TagIDs), nil
}

func valueless(ids []string) map[string]string {
	if len(ids) == 0 {
		return nil
	}
	all := map[string]string{}
	for _, id := range ids {
		all[id] = ""
	}
	return all
}

// Update implements [provider.Updater]: attach, then note. What is attached already stays, and an instance that was changed
// since it was read is not noted: then the next call does both again.
func (d *driver) Update(ctx context.Context, r provider.Ref, tags map[string]string) error {
	return d.call(ctx, func(ctx context.Context, c *vim25.Client) error {
		found, err := d.named(ctx, c, r)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return provider.Errorf(provider.NotFound, "tag %s: no instance is there", r.Name)
		}
		if err := ambiguous(r, found); err != nil {
			return err
		}
		for _, m := range found {
			if err := d.tag(ctx, c, m, tags); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *driver) tag(ctx context.Context, c *vim25.Client, m clone, tags map[string]string) error {
	want := slices.Sorted(maps.Keys(tags))
	lacks := slices.DeleteFunc(slices.Clone(want), func(id string) bool { return slices.Contains(m.Tags, id) })
	if len(lacks) == 0 {
		return nil
	}
	err := d.attach(ctx, c, lacks, "", m.Ref)
	if provider.CodeOf(err) == provider.NotFound { // the tag is, not the instance
		return provider.Errorf(provider.Exhausted, "tag %s: %w", m.Name, err)
	}
	if err != nil {
		return err
	}
	all := slices.Concat(m.Tags, lacks)
	slices.Sort(all)
	note, err := noted(keyTags, all)
	if err != nil {
		return err
	}
	task, err := reconfigure(ctx, c, m, types.VirtualMachineConfigSpec{ExtraConfig: []types.BaseOptionValue{note}})
	_, err = d.finished(ctx, c, "note tags of "+m.Name, task, err)
	return err
}
