// SPDX-License-Identifier: Apache-2.0

// Package kubemark is the driver for simulated instances: records in a Store, whose kubelets somebody else plays.
package kubemark

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/kubeapi"
)

// horizon is an invocation's time: nothing lags here, and to repeat a create makes nothing more (RELIABILITY G6).
const horizon = 24 * time.Second

// Provider returns the line for simulated instances in the table of drivers; their records are kept in store.
func Provider(store Store) provider.Provider {
	return provider.Provider{
		Name:  "kubemark",
		Kinds: []string{Kind},
		Account: func(spec json.RawMessage) (region, secret string, err error) {
			s, err := parse(spec)
			return s.filled().Region, "", err
		},
		InstanceType: func(spec json.RawMessage) (provider.InstanceType, error) {
			s, err := parse(spec)
			return s.InstanceType(), err
		},
		Open: func(_ context.Context, a provider.Account) (provider.Driver, error) {
			if wrong := validation.IsValidLabelValue(a.ClusterID); a.ClusterID == "" || len(wrong) > 0 {
				return nil, provider.Errorf(provider.Invalid, "cluster id %q cannot be a tag: %s", a.ClusterID, strings.Join(wrong, ", "))
			}
			return &driver{store: store, cluster: a.ClusterID, mark: a.ClusterUID, region: a.Region}, nil
		},
	}
}

// driver is one cluster's view of a region.
type driver struct {
	store           Store
	cluster, region string
	mark            types.UID // goes into the one write that makes a record, so it is in no frozen request
}

var (
	_ provider.Driver      = (*driver)(nil)
	_ provider.PowerCycler = (*driver)(nil)
	_ provider.Updater     = (*driver)(nil)
)

// call does one thing to the cloud, unless its settings let it fail; every error gets a code.
func (d *driver) call(ctx context.Context, name, machine string, effect func(settings) error) error {
	s, err := readSettings(ctx, d.store)
	if err == nil {
		err = s.failure(name, machine, false)
	}
	if err == nil {
		err = effect(s)
	}
	if err == nil {
		err = s.failure(name, machine, true)
	}
	return provider.Coded(err)
}

// Resolve implements [provider.Driver].
func (d *driver) Resolve(ctx context.Context, spec json.RawMessage) (resolved json.RawMessage, err error) {
	err = d.call(ctx, "Resolve", "", func(cloud settings) error {
		s, err := parse(spec)
		if err != nil {
			return err
		}
		s = s.filled()
		if err := cloud.network(s.Network); err != nil {
			return err
		}
		resolved, err = s.encode()
		return err
	})
	return resolved, err
}

// Find implements [provider.Driver].
func (d *driver) Find(ctx context.Context, r provider.Ref) (found []provider.Instance, err error) {
	err = d.call(ctx, "Find", r.Name, func(settings) error {
		records, err := d.named(ctx, r)
		if err == nil {
			found, err = existing(records)
		}
		return err
	})
	return found, err
}

// List implements [provider.Driver].
func (d *driver) List(ctx context.Context) (all []provider.Instance, err error) {
	err = d.call(ctx, "List", "", func(settings) error {
		records, err := load(ctx, d.store, map[string]string{labelRecord: "instance", labelLive: "true", labelCluster: d.cluster})
		if err == nil {
			all, err = existing(slices.DeleteFunc(records, func(r Record) bool { return !d.ours(r) }))
		}
		return err
	})
	return all, err
}

// Delete implements [provider.Driver].
func (d *driver) Delete(ctx context.Context, r provider.Ref) error {
	return d.call(ctx, "Delete", r.Name, func(settings) error {
		return again(ctx, func() error { return d.remove(ctx, r) })
	})
}

// remove asks every instance that r names to go, and takes back claims.
func (d *driver) remove(ctx context.Context, r provider.Ref) error {
	records, err := d.named(ctx, r)
	if err != nil {
		return err
	}
	there := false
	now := time.Now()
	for _, rec := range records {
		switch {
		case rec.IsGone(now):
		case !rec.Admitted:
			if err := rec.Drop(ctx, d.store); err != nil {
				return err
			}
		case rec.Deleted.IsZero():
			there, rec.Deleted = true, now
			if _, err := rec.Save(ctx, d.store); err != nil {
				return err
			}
		default:
			there = true
		}
	}
	if !there {
		return provider.Errorf(provider.NotFound, "delete %s: no instance is there", r.Name)
	}
	return nil
}

// PowerCycle implements [provider.PowerCycler]: what ails the kubelet is over when the instance has booted again.
func (d *driver) PowerCycle(ctx context.Context, r provider.Ref) error {
	return d.call(ctx, "PowerCycle", r.Name, func(settings) error {
		return again(ctx, func() error { return d.restart(ctx, r) })
	})
}

func (d *driver) restart(ctx context.Context, r provider.Ref) error {
	return d.change(ctx, "power-cycle", r, func(rec *Record, now time.Time) {
		rec.Cycled = now
		if rec.Fault != FaultError {
			rec.Fault = FaultNone
		}
	})
}

// Tags implements [provider.Updater].
func (d *driver) Tags(spec json.RawMessage) (map[string]string, error) {
	s, err := parse(spec)
	return s.Tags, err
}

// Update implements [provider.Updater].
func (d *driver) Update(ctx context.Context, r provider.Ref, tags map[string]string) error {
	return d.call(ctx, "Update", r.Name, func(settings) error {
		return again(ctx, func() error {
			return d.change(ctx, "update", r, func(rec *Record, _ time.Time) {
				rec.Spec.Tags = maps.Clone(rec.Spec.Tags)
				if rec.Spec.Tags == nil {
					rec.Spec.Tags = map[string]string{}
				}
				maps.Copy(rec.Spec.Tags, tags)
			})
		})
	})
}

// change writes what an edit makes of every instance that r names and that nobody has asked to go.
func (d *driver) change(ctx context.Context, what string, r provider.Ref, edit func(*Record, time.Time)) error {
	records, err := d.named(ctx, r)
	if err != nil {
		return err
	}
	now := time.Now()
	there := slices.DeleteFunc(records, func(rec Record) bool { return !rec.Admitted || rec.IsGone(now) || !rec.Deleted.IsZero() })
	for _, rec := range there {
		edit(&rec, now)
		if _, err := rec.Save(ctx, d.store); err != nil {
			return err
		}
	}
	if len(there) == 0 {
		return provider.Errorf(provider.NotFound, "%s %s: no instance is there", what, r.Name)
	}
	return nil
}

// InstanceTypes implements [provider.Driver].
func (d *driver) InstanceTypes(ctx context.Context) (all []provider.InstanceType, err error) {
	err = d.call(ctx, "InstanceTypes", "", func(settings) error {
		for _, name := range flavors {
			all = append(all, parseFlavor(name))
		}
		return nil
	})
	return all, err
}

// Horizon implements [provider.Driver].
func (d *driver) Horizon() time.Duration { return horizon }

// named returns the records that r names: by the Machine's tag, or by an id unless the tag is another Machine's. What
// carries no tag is named only by the provider id that a Machine records.
func (d *driver) named(ctx context.Context, r provider.Ref) ([]Record, error) {
	var all []Record
	if r.UID != "" {
		tagged, err := load(ctx, d.store, map[string]string{labelRecord: "instance", labelCluster: d.cluster, labelUID: string(r.UID)})
		if err != nil {
			return nil, err
		}
		all = tagged
	}
	for _, id := range []string{r.ID, r.ProviderID[strings.LastIndexByte(r.ProviderID, '/')+1:]} {
		if !isID(id) || slices.ContainsFunc(all, func(rec Record) bool { return rec.ID == id }) {
			continue
		}
		o, err := d.store.Get(ctx, id)
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("get record %s: %w", id, err)
		}
		rec, err := Load(o)
		if err != nil {
			return nil, err
		}
		all = append(all, rec)
	}
	return slices.DeleteFunc(all, func(rec Record) bool { return !d.means(r, rec) }), nil
}

func (d *driver) means(r provider.Ref, rec Record) bool {
	recorded := r.ProviderID != "" && r.ProviderID == rec.ProviderID()
	switch {
	case r.Attempt && rec.Token != r.Token:
		return false
	case rec.Cluster == "" && rec.UID == "":
		return recorded
	case !d.ours(rec):
		return false
	case r.UID == "" || rec.UID == "":
		return recorded || r.ID == rec.ID
	}
	return r.UID == rec.UID
}

// ours reports whether rec carries the cluster's tag in this region.
func (d *driver) ours(rec Record) bool {
	return rec.Cluster == d.cluster && rec.Spec.Region == d.region
}

// existing returns the instances among records: no claims, nothing that is gone.
func existing(records []Record) ([]provider.Instance, error) {
	var all []provider.Instance
	now := time.Now()
	for _, r := range records {
		if !r.Admitted || r.IsGone(now) {
			continue
		}
		i, err := r.instance(now)
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
}

// again repeats f as long as others are faster.
func again(ctx context.Context, f func() error) error {
	return kubeapi.Again(ctx, f, ErrConflict, ErrExists, ErrGone)
}
