// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// instance is what the cloud remembers of one.
type instance struct {
	id, zone, address string
	form              url.Values // of the call that made it
	tags              map[string]string
	created, ended    time.Time
	rebooted          int
	reason            string // why it ended
}

// state follows from the clock.
func (i *instance) state(c *Cloud, now time.Time) (code int, name string) {
	switch {
	case !i.ended.IsZero() && now.Sub(i.ended) >= c.Shutdown:
		return 48, "terminated"
	case !i.ended.IsZero():
		return 32, "shutting-down"
	case now.Sub(i.created) >= c.Boot:
		return 16, "running"
	}
	return 0, "pending"
}

// run makes one instance. A token that was used in the zone is answered by what it made
// (https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html).
func (c *Cloud) run(form url.Values) (any, *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if form.Get("ImageId") == "" || form.Get("MinCount") != "1" || form.Get("MaxCount") != "1" {
		return nil, refuse(http.StatusBadRequest, "MissingParameter", "The request must contain the parameter ImageId")
	}
	zone := form.Get("Placement.AvailabilityZone")
	key, request := form.Get("ClientToken")+"/"+zone, form.Encode()
	if t, used := c.tokens[key]; used && form.Get("ClientToken") != "" {
		if t.request != request {
			return nil, refuse(http.StatusBadRequest, "IdempotentParameterMismatch", "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).")
		}
		if _, state := t.instance.state(c, time.Now()); state == "terminated" || state == "shutting-down" {
			return nil, refuse(http.StatusBadRequest, "IdempotentInstanceTerminated", "The instance of this idempotent request was terminated.")
		}
		return reservation(c, t.instance), nil
	}
	if c.exhausted {
		return nil, refuse(http.StatusInternalServerError, "InsufficientInstanceCapacity", "We currently do not have sufficient %s capacity in the Availability Zone you requested (%s).", form.Get("InstanceType"), zone)
	}
	tags := tagsOf(form, "TagSpecification.1.")
	if no := cmp.Or(tooMuch(tags), noRate(form)); no != nil {
		return nil, no
	}
	n := len(c.instances) + 1
	i := &instance{
		id: fmt.Sprintf("i-%017x", 0xb000+n), zone: zone, address: fmt.Sprintf("10.0.%d.%d", n/250, n%250+1), form: form,
		tags: tags, created: time.Now(),
	}
	c.instances = append(c.instances, i)
	if c.tokens == nil {
		c.tokens = map[string]token{}
	}
	c.tokens[key] = token{request, i}
	return reservation(c, i), nil
}

// noRate refuses a rate of operations for volumes of a type that has none (API_EbsBlockDevice).
func noRate(form url.Values) *refusal {
	for n := 1; form.Has(fmt.Sprintf("BlockDeviceMapping.%d.DeviceName", n)); n++ {
		ebs := fmt.Sprintf("BlockDeviceMapping.%d.Ebs.", n)
		if kind := form.Get(ebs + "VolumeType"); form.Has(ebs+"Iops") && slices.Contains([]string{"gp2", "st1", "sc1", "standard"}, kind) {
			return refuse(http.StatusBadRequest, "InvalidParameterCombination", "The parameter iops is not supported for %s volumes.", kind)
		}
	}
	return nil
}

// Add makes an instance of a type as somebody else does, with these tags, and returns its provider id: those that are
// made first have the ids i-0000000000000b001, i-0000000000000b002 and so on, the addresses 10.0.0.2, 10.0.0.3 and so on.
func (c *Cloud) Add(zone, instanceType string, tags map[string]string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.instances) + 1
	i := &instance{id: fmt.Sprintf("i-%017x", 0xb000+n), zone: zone, address: fmt.Sprintf("10.0.%d.%d", n/250, n%250+1), form: url.Values{"InstanceType": {instanceType}}, tags: tags, created: time.Now().Add(-time.Hour)}
	c.instances = append(c.instances, i)
	return "aws:///" + zone + "/" + i.id
}

// Copy makes an instance like another one, with its tags, as a backup that is restored or a person who wants one more like it does: with a
// client token of theirs. It returns its provider id.
func (c *Cloud) Copy(id, token string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	of, n := c.named(id), len(c.instances)+1
	form := maps.Clone(of.form)
	form.Set("ClientToken", token)
	i := &instance{id: fmt.Sprintf("i-%017x", 0xb000+n), zone: of.zone, address: fmt.Sprintf("10.0.%d.%d", n/250, n%250+1), form: form, tags: maps.Clone(of.tags), created: time.Now()}
	c.instances = append(c.instances, i)
	return "aws:///" + i.zone + "/" + i.id
}

// Live returns the requests of the instances that are there, by id.
func (c *Cloud) Live() map[string]url.Values {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]url.Values{}
	for _, i := range c.instances {
		if i.ended.IsZero() {
			all[i.id] = i.form
		}
	}
	return all
}

// TagsOf returns the tags of an instance.
func (c *Cloud) TagsOf(id string) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.named(id); i != nil {
		return maps.Clone(i.tags)
	}
	return nil
}

// End terminates an instance as its own power switch does.
func (c *Cloud) End(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.named(id); i != nil {
		i.ended = time.Now()
	}
}

// Fail ends an instance as a launch ends that fails after it was accepted, for a reason such as Client.InternalError.
func (c *Cloud) Fail(id, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.named(id); i != nil {
		i.ended, i.reason = time.Now(), reason
	}
}

func (c *Cloud) named(id string) *instance {
	k := slices.IndexFunc(c.instances, func(i *instance) bool { return i.id == id })
	if k < 0 {
		return nil
	}
	return c.instances[k]
}

// describe shows instances, page by page, those that are new only after the lag
// (https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html).
func (c *Cloud) describe(form url.Values) (any, *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	seen := slices.DeleteFunc(slices.Clone(c.instances), func(i *instance) bool { return now.Sub(i.created) < c.Lag })
	if ids := list(form, "InstanceId"); len(ids) > 0 {
		seen = slices.DeleteFunc(seen, func(i *instance) bool { return !slices.Contains(ids, i.id) })
		if len(seen) < len(ids) {
			return nil, refuse(http.StatusBadRequest, "InvalidInstanceID.NotFound", "The instance IDs '%s' do not exist", strings.Join(ids, ", "))
		}
	}
	for _, f := range filtersOf(form) {
		seen = slices.DeleteFunc(seen, func(i *instance) bool { return !i.matches(c, f, now) })
	}
	size, _ := strconv.Atoi(form.Get("MaxResults"))
	if c.Page > 0 {
		size = c.Page
	}
	from, _ := strconv.Atoi(form.Get("NextToken"))
	out := describeInstances{}
	for k := from; k < len(seen); k++ {
		if size > 0 && k == from+size {
			out.NextToken = strconv.Itoa(k)
			break
		}
		out.Reservations = append(out.Reservations, *reservation(c, seen[k]))
	}
	return out, nil
}

func (i *instance) matches(c *Cloud, f filter, now time.Time) bool {
	tag, isTag := strings.CutPrefix(f.name, "tag:")
	switch {
	case isTag:
		v, has := i.tags[tag]
		return has && slices.Contains(f.values, v)
	case f.name == "tag-key":
		return slices.ContainsFunc(f.values, func(k string) bool { _, has := i.tags[k]; return has })
	case f.name == "instance-id":
		return slices.ContainsFunc(f.values, func(pattern string) bool { return like(pattern, i.id) })
	case f.name == "client-token":
		return slices.Contains(f.values, i.form.Get("ClientToken"))
	case f.name == "instance-state-name":
		_, state := i.state(c, now)
		return slices.Contains(f.values, state)
	}
	return false
}

// each does something to the instances that a call names.
func (c *Cloud) each(form url.Values, f func(*instance)) (any, *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*instance
	for _, id := range list(form, "InstanceId") {
		i := c.named(id)
		if i == nil {
			return nil, refuse(http.StatusBadRequest, "InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
		}
		all = append(all, i)
	}
	for _, i := range all {
		f(i)
	}
	return struct {
		ID     string `xml:"requestId"`
		Return bool   `xml:"return"`
	}{"5a71e8e6", true}, nil
}

func (c *Cloud) terminate(form url.Values) (any, *refusal) {
	return c.each(form, func(i *instance) {
		if i.ended.IsZero() {
			i.ended = time.Now()
		}
	})
}

func (c *Cloud) reboot(form url.Values) (any, *refusal) {
	return c.each(form, func(i *instance) { i.rebooted++ })
}

func (c *Cloud) start(form url.Values) (any, *refusal) { return c.each(form, func(*instance) {}) }

func (c *Cloud) tag(form url.Values) (any, *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range list(form, "ResourceId") {
		i := c.named(id)
		if i == nil {
			return nil, refuse(http.StatusBadRequest, "InvalidID", "The ID '%s' is not valid", id)
		}
		tags := maps.Clone(i.tags)
		maps.Copy(tags, tagsOf(form, ""))
		if no := tooMuch(tags); no != nil {
			return nil, no
		}
		i.tags = tags
	}
	return struct {
		Return bool `xml:"return"`
	}{true}, nil
}
