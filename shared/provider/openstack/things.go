// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/beside"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// server is what is read of an instance of Nova's. Of one in a cell that does not answer only the id is told, with the
// status UNKNOWN.
type server struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Status   string            `json:"status"`
	Created  time.Time         `json:"created"`
	Updated  time.Time         `json:"updated"` // when a task began or ended, among others
	Task     string            `json:"OS-EXT-STS:task_state"`
	Zone     string            `json:"OS-EXT-AZ:availability_zone"`
	Launched *string           `json:"OS-SRV-USG:launched_at"`
	Tags     []string          `json:"tags"`
	Metadata map[string]string `json:"metadata"`
	Flavor   struct {
		Name string `json:"original_name"`
	} `json:"flavor"`
	Addresses map[string][]struct {
		Address string `json:"addr"`
		Type    string `json:"OS-EXT-IPS:type"`
	} `json:"addresses"`
	Fault struct {
		Message string `json:"message"`
	} `json:"fault"`
}

func (s server) id() string { return s.ID }

// errNoTags is an answer in which an instance does not even have no tags: the header with the microversion got lost on the way.
var errNoTags = errors.New("it tells of no tags: see whether a gateway before Nova drops the header OpenStack-API-Version")

// told returns an error where whose an instance is was not said.
func (s server) told(doing string) error {
	if s.Tags != nil || s.unknown() {
		return nil
	}
	return provider.Errorf(provider.Unknown, "%s: instance %s: %w", doing, s.ID, errNoTags)
}

// told returns servers, or an error where whose one of them is was not said.
func told(doing string, all []server) ([]server, error) {
	for _, s := range all {
		if err := s.told(doing); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// unknown reports whether nobody knows how the instance is, or whose.
func (s server) unknown() bool { return s.Status == "UNKNOWN" && s.Name == "" }

func (s server) deleting() bool {
	return s.Status == "DELETED" || s.Status == "SOFT_DELETED" || s.Task == "deleting" || s.Task == "soft-deleting"
}

// withdrawn reports whether a removal was put off, as clouds do that let people take it back for hours or days. Its ports and
// volumes stay until then.
func (s server) withdrawn() bool { return s.Status == "SOFT_DELETED" && s.Task == "" }

// forgotten reports whether the removal of an instance was accepted so long ago that nobody is at it any more: the compute
// service that should be was gone when it was asked. Nova removes the instance itself when it is asked again meanwhile.
func (s server) forgotten() bool {
	return s.Task == "deleting" && !s.Updated.IsZero() && time.Since(s.Updated) >= stuckAfter
}

// port is what is read of a port of Neutron's.
type port struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	MAC         string    `json:"mac_address"`
	Device      string    `json:"device_id"`
	Tags        []string  `json:"tags"`
	Created     time.Time `json:"created_at"`
	Revision    int       `json:"revision_number"`
	Trunk       *struct {
		ID string `json:"trunk_id"`
	} `json:"trunk_details"`
}

func (p port) id() string { return p.ID }

// volume is what is read of a volume of Cinder's.
type volume struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Status      string            `json:"status"`
	Created     string            `json:"created_at"` // in UTC, without saying so
	Updated     string            `json:"updated_at"` // likewise; empty before the first change
	Metadata    map[string]string `json:"metadata"`
	Attachments []struct {
		Server string `json:"server_id"`
	} `json:"attachments"`
}

func (v volume) id() string { return v.ID }

func (v volume) tag(name string) string { return v.Metadata[name] }

// copied reports whether a volume has the metadata of another: Cinder gives it to what it restores from a backup. Whose that is people know.
// Of one that does not say its own id nobody knows: it may be new.
func (v volume) copied() bool { return v.tag(tagVolume) != "" && v.tag(tagVolume) != v.ID }

// named is anything with a name: a network, an image, a flavor, a group.
type named struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Status  string   `json:"status"`
	Project string   `json:"project_id"`
	Network string   `json:"network_id"`            // of subnets
	Secured *bool    `json:"port_security_enabled"` // of networks
	Members []string `json:"members"`               // of server groups
}

func (n named) id() string { return n.ID }

// String names it as a person would search for it.
func (n named) String() string { return fmt.Sprintf("%s (%s)", cmp.Or(n.Name, "without name"), n.ID) }

// everyServer lists the instances of the project. Nova needs seconds for the details of a thousand, so beyond the first
// page they are asked for side by side: a list of the ids alone, which is fast, tells where each page begins. New
// instances come first, so none is missed between two pages; one that is deleted meanwhile may be told twice.
func (c caller) everyServer(ctx context.Context) ([]server, error) {
	const doing, path, key = "list instances", "servers/detail", "servers"
	first, more, err := page[server](ctx, c, c.compute, doing, path, key, nil)
	if err != nil {
		return nil, err
	}
	if first, err = told(doing, first); err != nil || !more {
		return first, err
	}
	ids, err := pages[named](ctx, c, c.compute, doing, "servers", key, url.Values{"marker": {first[len(first)-1].ID}})
	if err != nil {
		return nil, err
	}
	var markers []string
	for i := -1; i < len(ids); i += len(first) {
		if i < 0 {
			markers = append(markers, first[len(first)-1].ID)
		} else if i+1 < len(ids) {
			markers = append(markers, ids[i].ID)
		}
	}
	rest := make([][]server, len(markers))
	g, side := beside.WithContext(ctx)
	g.SetLimit(5)
	for i, marker := range markers {
		g.Go(func() (err error) {
			rest[i], _, err = page[server](side, c, c.compute, doing, path, key, url.Values{"marker": {marker}, "limit": {strconv.Itoa(len(first))}})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var all []server
	for _, s := range slices.Concat(first, slices.Concat(rest...)) {
		if !seen[s.ID] {
			seen[s.ID] = true
			all = append(all, s)
		}
	}
	few, err := c.untold(ctx, ids, seen)
	if err != nil {
		return nil, err
	}
	return told(doing, append(all, few...))
}

// untold gets what no page told of in detail: some are deleted in between, of which only a 404 is the proof. Many more
// than that are an error, and not as many requests.
func (c caller) untold(ctx context.Context, ids []named, seen map[string]bool) ([]server, error) {
	missing := slices.DeleteFunc(slices.Clone(ids), func(n named) bool { return seen[n.ID] })
	if len(missing) > len(ids)/100+1 {
		return nil, provider.Errorf(provider.Unknown, "list instances: %d of %d are not told of in detail", len(missing), len(ids))
	}
	var all []server
	for _, n := range missing {
		s, err := c.server(ctx, n.ID)
		if provider.CodeOf(err) == provider.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// What a list is asked for is looked at once more in its answer: a service leaves out, without a word, filters that it does
// not know or whose use it was not allowed (Cinder's query_volume_filters, Neutron without its extension for tags), and
// whatever such a list shows would be removed with the Machine.

// carries reports whether a thing has all of some tags.
func carries(list, tags []string) bool {
	return !slices.ContainsFunc(tags, func(t string) bool { return !slices.Contains(list, t) })
}

// servers lists instances that carry all of some tags. Cells that do not answer are left out: absence has to be proven
// otherwise.
func (c caller) servers(ctx context.Context, tags ...string) ([]server, error) {
	const doing = "list instances"
	all, err := pages[server](ctx, c, c.compute, doing, "servers/detail", "servers", url.Values{"tags": {join(tags)}})
	if err == nil {
		all, err = told(doing, all)
	}
	return slices.DeleteFunc(all, func(s server) bool { return !s.unknown() && !carries(s.Tags, tags) }), err
}

func (c caller) server(ctx context.Context, id string) (server, error) {
	var answer struct {
		Server *server `json:"server"`
	}
	err := c.get(ctx, c.compute, "get instance "+id, "servers/"+url.PathEscape(id), &answer)
	if err == nil && (answer.Server == nil || answer.Server.ID == "") {
		err = coded("get instance "+id, errEmpty)
	}
	if err != nil {
		return server{}, err
	}
	return *answer.Server, answer.Server.told("get instance " + id)
}

// portFields keeps the lists of ports short.
var portFields = []string{"id", "name", "description", "mac_address", "device_id", "tags", "created_at", "revision_number", "trunk_details"}

// ports lists ports that carry all of some tags.
func (c caller) ports(ctx context.Context, tags ...string) ([]port, error) {
	all, err := c.portsWith(ctx, url.Values{"tags": {join(tags)}})
	return slices.DeleteFunc(all, func(p port) bool { return !carries(p.Tags, tags) }), err
}

func (c caller) portsWith(ctx context.Context, q url.Values) ([]port, error) {
	q["fields"] = portFields
	return pages[port](ctx, c, c.network, "list ports", "ports", "ports", q)
}

func (c caller) port(ctx context.Context, id string) (port, error) {
	var answer struct {
		Port *port `json:"port"`
	}
	err := c.get(ctx, c.network, "get port "+id, "ports/"+url.PathEscape(id), &answer)
	if err == nil && (answer.Port == nil || answer.Port.ID == "") {
		err = coded("get port "+id, errEmpty)
	}
	if err != nil {
		return port{}, err
	}
	return *answer.Port, nil
}

// portsOf lists the ports of a Machine, with those that have no tags yet.
func (c caller) portsOf(ctx context.Context, t tags, uid types.UID) ([]port, error) {
	all, err := c.ports(ctx, tag(tagUID, string(uid)), tag(tagCluster, t.cluster))
	if err != nil {
		return nil, err
	}
	fresh, err := c.portsWith(ctx, url.Values{"description": {t.description(uid)}})
	fresh = slices.DeleteFunc(fresh, func(p port) bool { o := t.ownerOfPort(p); return !o.cluster || o.uid != uid })
	return union(all, fresh), err
}

// portsOfCluster lists the ports of a cluster, with those that have no tags yet.
func (c caller) portsOfCluster(ctx context.Context, t tags) ([]port, error) {
	mark := tag(tagCluster, t.cluster)
	all, err := c.ports(ctx, mark)
	if err != nil {
		return nil, err
	}
	fresh, err := c.portsWith(ctx, url.Values{"not-tags": {mark}, "device_id": {""}})
	fresh = slices.DeleteFunc(fresh, func(p port) bool { return !t.ownerOfPort(p).cluster })
	return union(all, fresh), err
}

// union adds what is in b alone: a port may get its tags between two lists.
func union(a, b []port) []port {
	for _, p := range b {
		if !slices.ContainsFunc(a, func(q port) bool { return q.ID == p.ID }) {
			a = append(a, p)
		}
	}
	return a
}

// ownVolumes lists volumes that carry some metadata, and no other's.
func (c caller) ownVolumes(ctx context.Context, metadata map[string]string) ([]volume, error) {
	all, err := c.volumes(ctx, metadata)
	return slices.DeleteFunc(all, volume.copied), err
}

// volumes lists volumes that carry some metadata. A cloud without Cinder has none.
func (c caller) volumes(ctx context.Context, metadata map[string]string) ([]volume, error) {
	if c.volume == nil {
		return nil, nil
	}
	text, err := json.Marshal(metadata)
	if err != nil {
		return nil, coded("list volumes", err)
	}
	all, err := pages[volume](ctx, c, c.volume, "list volumes", "volumes/detail", "volumes", url.Values{"metadata": {string(text)}})
	return slices.DeleteFunc(all, func(v volume) bool {
		for name, value := range metadata {
			if v.Metadata[name] != value {
				return true
			}
		}
		return false
	}), err
}

// removePort deletes a port, with the trunk that it is the parent of.
func (c caller) removePort(ctx context.Context, p port) error {
	if p.Trunk != nil && p.Trunk.ID != "" {
		if err := c.remove(ctx, c.network, "delete trunk "+p.Trunk.ID, "trunks/"+p.Trunk.ID); err != nil {
			return err
		}
	}
	return c.remove(ctx, c.network, "delete port "+p.ID, "ports/"+p.ID)
}

// tagPort gives a port these tags, and no others.
func (c caller) tagPort(ctx context.Context, p port, tags []string) error {
	return c.request(ctx, c.network, "tag port "+p.ID, http.MethodPut, "ports/"+p.ID+"/tags", gophercloud.RequestOpts{JSONBody: map[string]any{"tags": tags}})
}

// describe changes a port's description if the port is still as it was read, and says so if it is not: of several calls
// that do this at the same time one succeeds.
func (c caller) describe(ctx context.Context, p port, text string) (bool, error) {
	err := c.request(ctx, c.network, "claim port "+p.ID, http.MethodPut, "ports/"+p.ID, gophercloud.RequestOpts{
		JSONBody:    map[string]any{"port": map[string]any{"description": text}},
		MoreHeaders: map[string]string{"If-Match": fmt.Sprintf("revision_number=%d", p.Revision)},
	})
	if refusedWith(err, http.StatusPreconditionFailed) {
		return false, nil
	}
	return err == nil, err
}

func join(tags []string) string {
	text := ""
	for i, t := range tags {
		if i > 0 {
			text += ","
		}
		text += t
	}
	return text
}
