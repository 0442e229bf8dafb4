// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// driver is one account's and cluster's view of a Cloud.
type driver struct {
	cloud                    *Cloud
	account, cluster, region string
	mark                     types.UID
}

// untokened is a driver whose Create is not idempotent.
type untokened struct{ *driver }

// Untokened marks the driver.
func (untokened) Untokened() {}

var (
	_ provider.Driver    = (*driver)(nil)
	_ provider.Updater   = (*driver)(nil)
	_ provider.Untokened = untokened{}
)

// call does one thing to the cloud, with the faults before and after it. The effect runs with the cloud locked.
func call[T any](ctx context.Context, d *driver, c Call, effect func() (T, error)) (T, error) {
	var none T
	c.Account = d.account
	if err := d.strike(ctx, c); err != nil {
		return none, err
	}
	d.cloud.mu.Lock()
	answer, err := effect()
	d.cloud.mu.Unlock()
	c.After = true
	if fault := d.strike(ctx, c); fault != nil {
		return none, fault
	}
	return answer, err
}

func (d *driver) strike(ctx context.Context, c Call) error {
	err := ctx.Err()
	if err == nil && d.cloud.Fault != nil {
		err = d.cloud.Fault(ctx, c)
	}
	if _, classified := errors.AsType[*provider.Error](err); err == nil || classified {
		return err
	}
	return provider.Errorf(provider.Unknown, "%s: %w", c.Op, err)
}

// Resolve implements [provider.Driver].
func (d *driver) Resolve(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	return call(ctx, d, Call{Op: OpResolve}, func() (json.RawMessage, error) {
		s, err := d.cloud.resolve(raw, d.region)
		if err != nil {
			return nil, err
		}
		return json.Marshal(s)
	})
}

// Create implements [provider.Driver].
func (d *driver) Create(ctx context.Context, r provider.Ref, resolved json.RawMessage) (provider.Instance, error) {
	return call(ctx, d, Call{Op: OpCreate, Ref: r}, func() (provider.Instance, error) {
		s, err := parse(resolved)
		if err != nil {
			return provider.Instance{}, err
		}
		return d.create(r, s)
	})
}

// Find implements [provider.Driver]; ports are not instances.
func (d *driver) Find(ctx context.Context, r provider.Ref) ([]provider.Instance, error) {
	return call(ctx, d, Call{Op: OpFind, Ref: r}, func() ([]provider.Instance, error) {
		return d.shown(ctx, Call{Op: OpFind, Ref: r}, func(t *thing) bool { return !t.Child && d.means(r, t) }), nil
	})
}

// List implements [provider.Driver].
func (d *driver) List(ctx context.Context) ([]provider.Instance, error) {
	return call(ctx, d, Call{Op: OpList}, func() ([]provider.Instance, error) {
		return d.shown(ctx, Call{Op: OpList}, func(t *thing) bool { return d.ours(t) && !t.owned }), nil
	})
}

// Delete implements [provider.Driver].
func (d *driver) Delete(ctx context.Context, r provider.Ref) error {
	_, err := call(ctx, d, Call{Op: OpDelete, Ref: r}, func() (struct{}, error) {
		now, seen := d.cloud.now(), d.seen(ctx, Call{Op: OpDelete, Ref: r})
		there, unseen := false, recorded(r)
		for _, t := range d.cloud.all {
			if t.Created.After(seen) {
				continue
			}
			unseen = slices.DeleteFunc(unseen, func(id string) bool { return id == t.ID })
			if t.owned || t.gone(now) || !d.means(r, t) {
				continue
			}
			there = true
			at := now
			if !t.Child {
				at = now.Add(d.cloud.Removal)
			}
			d.cloud.remove(t, at, Deleted)
		}
		if !there && (len(unseen) == 0 || !r.Fresh(d.cloud.local(), d.Horizon())) {
			return struct{}{}, provider.Errorf(provider.NotFound, "delete %s: nothing is there", r.Name)
		}
		return struct{}{}, nil
	})
	return err
}

// recorded returns the ids that r knows: its instance's, and those of the ports of an attempt that is under way.
func recorded(r provider.Ref) (ids []string) {
	_ = json.Unmarshal(r.Progress, &ids) // where nobody can read it, the tags lead to what there is
	if r.ID != "" {
		ids = append(ids, r.ID)
	}
	return ids
}

// Tags implements [provider.Updater].
func (d *driver) Tags(raw json.RawMessage) (map[string]string, error) {
	s, err := parse(raw)
	return s.Tags, err
}

// Update implements [provider.Updater].
func (d *driver) Update(ctx context.Context, r provider.Ref, tags map[string]string) error {
	_, err := call(ctx, d, Call{Op: OpUpdate, Ref: r}, func() (struct{}, error) {
		there := false
		for _, t := range d.cloud.all {
			if t.Child || !t.removed.IsZero() || !d.means(r, t) {
				continue
			}
			next := map[string]string{}
			maps.Copy(next, t.Tags)
			maps.Copy(next, tags)
			there, t.Tags = true, next
		}
		if !there {
			return struct{}{}, provider.Errorf(provider.NotFound, "update %s: nothing is there", r.Name)
		}
		return struct{}{}, nil
	})
	return err
}

// InstanceTypes implements [provider.Driver].
func (d *driver) InstanceTypes(ctx context.Context) ([]provider.InstanceType, error) {
	return call(ctx, d, Call{Op: OpInstanceTypes}, func() ([]provider.InstanceType, error) {
		return d.cloud.types(), nil
	})
}

// Horizon implements [provider.Driver].
func (d *driver) Horizon() time.Duration {
	if d.cloud.Window != 0 {
		return d.cloud.Window
	}
	return defaultHorizon + d.cloud.Lag
}

// shown returns what there is as a call is told of it.
func (d *driver) shown(ctx context.Context, c Call, keep func(*thing) bool) []provider.Instance {
	all := d.cloud.existing(d.seen(ctx, c), keep)
	if d.cloud.Shown != nil {
		return d.cloud.Shown(ctx, c, all)
	}
	return all
}

// seen is the time of which the cloud's lists tell.
func (d *driver) seen(ctx context.Context, c Call) time.Time {
	lag := d.cloud.Lag
	if d.cloud.Behind != nil {
		lag = min(lag, d.cloud.Behind(ctx, c))
	}
	return d.cloud.now().Add(-lag)
}

// ours reports whether t carries the cluster's tag in this account.
func (d *driver) ours(t *thing) bool { return t.cluster == d.cluster && t.account == d.account }

// means reports whether r names t: by the Machine's tag, or by an id, unless the tag is another Machine's. What
// carries no tag at all is named only by the provider id that a Machine records. Of one attempt is what carries its token.
func (d *driver) means(r provider.Ref, t *thing) bool {
	recorded := r.ProviderID != "" && r.ProviderID == t.ProviderID
	named := recorded || r.ID != "" && r.ID == t.ID
	switch {
	case r.Attempt && t.Token != r.Token:
		return false
	case t.UID == "" && t.cluster == "":
		return recorded
	case !d.ours(t):
		return false
	case r.UID == "" || t.UID == "":
		return named
	}
	return t.UID == r.UID
}
