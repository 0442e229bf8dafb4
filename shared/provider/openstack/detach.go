// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"net/url"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

const (
	// attachmentsSince is the microversion of Cinder, of its release Ocata (2017), that lists attachments and removes them.
	attachmentsSince = "volume 3.27"
	// stuckAfter is how long Cinder and Nova may need for what they were asked for. A volume that is made of a big image takes
	// longest.
	stuckAfter = 10 * time.Minute
)

// attachment is what Cinder says of a volume and the instance that has it, or is about to. A volume itself tells only of
// those that are complete.
type attachment struct {
	ID       string `json:"id"`
	Volume   string `json:"volume_id"`
	Instance string `json:"instance"`
}

func (a attachment) id() string { return a.ID }

// release frees a volume of instances that are gone. While Nova removes an instance it asks Cinder to detach its volumes;
// if Cinder does not answer it forgets the instance all the same, and the volume would stay attached for ever. Cinder lets
// its owner detach it then, and asks Nova itself whether the instance is gone. What people gave to another instance is theirs to
// detach.
func (c caller) release(ctx context.Context, v volume) error {
	if v.Status == "creating" || v.Status == "deleting" || v.Status == "downloading" {
		return v.stuck()
	}
	service := *c.volume
	service.MoreHeaders = map[string]string{"OpenStack-API-Version": attachmentsSince}
	all, err := pages[attachment](ctx, c, &service, "list attachments of volume "+v.ID, "attachments", "attachments", url.Values{"volume_id": {v.ID}})
	if err != nil {
		return err
	}
	for _, a := range all {
		if !isID(a.Instance) || a.Volume != v.ID { // see carries
			continue
		}
		s, err := c.server(ctx, a.Instance)
		if err == nil && valueOf(s.Tags, tagUID) == v.tag(tagUID) {
			return nil // it is Nova's to detach
		}
		if err == nil {
			return provider.Errorf(provider.Exhausted, "delete volume %s (%s): the instance %s (%s) has it, which is not this Machine's: detach it", v.Name, v.ID, s.Name, s.ID)
		}
		if provider.CodeOf(err) != provider.NotFound {
			return err
		}
		if err := c.remove(ctx, &service, "detach volume "+v.ID+" from instance "+a.Instance+", which is gone", "attachments/"+url.PathEscape(a.ID)); err != nil {
			return err
		}
	}
	return v.stuck()
}

// stuck says so of a volume that Cinder has been busy with for too long.
func (v volume) stuck() error {
	since, err := time.Parse("2006-01-02T15:04:05.999999", first(v.Updated, v.Created))
	if err == nil && time.Since(since) >= stuckAfter {
		return provider.ErrorAfter(provider.Unknown, time.Minute, "delete volume %s (%s): it has been in the state %s since %s: see whether Cinder's service for volumes runs (openstack volume service list)",
			v.Name, v.ID, v.Status, since.Format(time.RFC3339))
	}
	return nil // Cinder may need a while, and may not say since when it does
}
