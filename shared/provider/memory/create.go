// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"encoding/json"
	"slices"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// create makes the next step towards an instance. The caller holds the lock.
func (d *driver) create(r provider.Ref, s spec) (provider.Instance, error) {
	c, key := d.cloud, d.account+"|"+d.cluster+"|"+r.Token
	if t, ok := c.byToken[key]; ok && !c.Untokened {
		if t.gone(c.now()) {
			return provider.Instance{}, provider.Errorf(provider.NotFound, "create %s: instance %s of this token was removed", r.Name, t.ID)
		}
		return c.view(t, c.now()), nil
	}
	ports, err := d.ports(r, key)
	if err != nil {
		return provider.Instance{}, err
	}
	tags := provider.Instance{UID: r.UID, ClusterUID: d.mark, Token: r.Token, Name: r.Name, Region: s.Region, Zone: s.Zone}
	if len(ports) < c.Ports {
		port := tags
		port.Child = true
		p := c.add(&thing{Instance: port, account: d.account, cluster: d.cluster}, "port")
		tags.State, tags.Progress = provider.StateIncomplete, progress(append(ports, p.ID))
		c.ports[key] = append(ports, p.ID)
		return tags, nil
	}
	if d.exhausted(s.Type) {
		return provider.Instance{}, provider.Errorf(provider.Exhausted, "create %s: no %s is left", r.Name, s.Type)
	}
	tags.Type, tags.Tags = s.Type, s.Tags
	t := c.add(&thing{Instance: tags, account: d.account, cluster: d.cluster, ports: ports}, "i")
	for _, id := range ports {
		c.byID[id].owned = true
	}
	c.byToken[key] = t
	delete(c.ports, key)
	return c.view(t, c.now()), nil
}

// ports returns the ports that were made for an attempt: those of its progress, or with tokens those that the cloud
// remembers.
func (d *driver) ports(r provider.Ref, key string) ([]string, error) {
	var ids []string
	if !d.cloud.Untokened {
		ids = slices.Clone(d.cloud.ports[key])
	}
	if len(r.Progress) > 0 && len(ids) == 0 {
		if err := json.Unmarshal(r.Progress, &ids); err != nil {
			return nil, provider.Errorf(provider.Unknown, "create %s: progress: %w", r.Name, err)
		}
	}
	for _, id := range ids {
		if p, ok := d.cloud.byID[id]; !ok || p.gone(d.cloud.now()) || p.owned {
			return nil, provider.Errorf(provider.NotFound, "create %s: port %s is gone or in use", r.Name, id)
		}
	}
	return ids, nil
}

func progress(ports []string) []byte {
	b, err := json.Marshal(ports)
	if err != nil { // strings only
		return nil
	}
	return b
}

func (d *driver) exhausted(instanceType string) bool {
	limit, limited := d.cloud.stock[instanceType]
	if !limited {
		return false
	}
	now := d.cloud.now()
	return len(d.cloud.existing(now, func(t *thing) bool { return t.Type == instanceType })) >= limit
}
