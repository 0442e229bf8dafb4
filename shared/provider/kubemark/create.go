// SPDX-License-Identifier: Apache-2.0

package kubemark

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Create implements [provider.Driver]. The token names the record, so that only one can be made of it; the record
// first claims an address and stock, and becomes an instance once no earlier claim speaks against it.
func (d *driver) Create(ctx context.Context, r provider.Ref, resolved json.RawMessage) (i provider.Instance, err error) {
	err = d.call(ctx, "Create", r.Name, func(cloud settings) error {
		s, err := parse(resolved)
		if err != nil {
			return err
		}
		var rec Record
		err = again(ctx, func() (err error) {
			if rec, err = d.claim(ctx, r, s); err == nil {
				rec, err = d.admit(ctx, rec, cloud)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("create instance %s: %w", r.Name, err)
		}
		i, err = rec.instance(time.Now())
		return err
	})
	if err != nil {
		return provider.Instance{}, err
	}
	return i, nil
}

// claim returns the record of r's token, and makes it if there is none.
func (d *driver) claim(ctx context.Context, r provider.Ref, s Spec) (Record, error) {
	id := identity(d.cluster, r.Token)
	o, err := d.store.Get(ctx, id)
	if errors.Is(err, ErrGone) {
		if wrong := validation.IsDNS1123Subdomain(r.Name); len(wrong) > 0 {
			return Record{}, provider.Errorf(provider.Invalid, "name %q: %s", r.Name, wrong[0])
		}
		if o, err = (Record{
			ID: id, Cluster: d.cluster, Mark: d.mark, UID: r.UID, Token: r.Token, Name: r.Name, Spec: s, Address: address(id, ""), Created: time.Now(),
		}).object(); err == nil {
			o, err = d.store.Create(ctx, o)
		}
	}
	if err != nil {
		return Record{}, fmt.Errorf("claim %s: %w", id, err)
	}
	return Load(o)
}

// admit makes an instance of a claim. Claims are ordered by their versions: of two that want the last of something,
// the earlier gets it, and each sees the other because both were written before either looked.
func (d *driver) admit(ctx context.Context, rec Record, cloud settings) (Record, error) {
	now := time.Now()
	switch {
	case rec.IsGone(now), !rec.Deleted.IsZero():
		return rec, provider.Errorf(provider.NotFound, "instance %s of this token was removed", rec.ID)
	case rec.Admitted:
		return rec, nil
	}
	for _, l := range cloud.limits(rec.Spec.InstanceType().Name, rec.Spec.Zone) {
		n, err := d.before(ctx, rec, l.labels)
		if err != nil {
			return rec, err
		}
		if n >= l.most {
			if err := rec.Drop(ctx, d.store); err != nil {
				return rec, err
			}
			return rec, provider.Errorf(provider.Exhausted, "no %s is left in zone %s: all %d exist", rec.Spec.InstanceType().Name, rec.Spec.Zone, l.most)
		}
	}
	taken, err := d.before(ctx, rec, map[string]string{labelAddress: rec.Address})
	if err != nil {
		return rec, err
	}
	if taken > 0 {
		rec.Address = address(rec.ID, rec.Address)
		if rec, err = rec.Save(ctx, d.store); err != nil {
			return rec, err
		}
		return d.admit(ctx, rec, cloud)
	}
	rec.Admitted, rec.Created = true, now
	return rec.Save(ctx, d.store)
}

// before counts the instances, and the earlier claims, that have some labels.
func (d *driver) before(ctx context.Context, rec Record, labels map[string]string) (int, error) {
	want := map[string]string{labelRecord: "instance", labelLive: "true"}
	for k, v := range labels {
		want[k] = v
	}
	all, err := load(ctx, d.store, want)
	if err != nil {
		return 0, err
	}
	n, now := 0, time.Now()
	for _, other := range all {
		if other.ID != rec.ID && !other.IsGone(now) && (other.Admitted || other.earlier(rec)) {
			n++
		}
	}
	return n, nil
}

// earlier reports whether r was written before other.
func (r Record) earlier(other Record) bool {
	a, errA := strconv.ParseUint(r.version, 10, 64)
	b, errB := strconv.ParseUint(other.version, 10, 64)
	return errA != nil || errB != nil || a < b // a version that is no number speaks for nobody
}
