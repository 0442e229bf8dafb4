// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// progress is what the next step needs to know: the instance, and which steps are done that leave no trace in a list. If it is lost, they are
// looked at again, which changes nothing.
type progress struct {
	ID      string   `json:"id,omitempty"`
	Done    []string `json:"done,omitempty"`
	Resized int      `json:"resized,omitempty"` // how often the engine took the size of the first disk
	At      string   `json:"step,omitempty"`    // what is waited for
	Since   int64    `json:"since,omitempty"`   // when that began, in seconds

	runs bool // the engine does not let that be written down
}

// patience is how long an engine may be at one thing before that is told, and each toldEvery again: disks of hundreds of GiB are copied meanwhile.
const patience, toldEvery = time.Hour, 5 * time.Minute

// waits notes that the creation waits, and for what, and tells what lasts. That is no refusal, after however many the attempt would be over: the
// engine is at it, and what it made would be copied once more. Who noted it may have had another clock.
func (p *progress) waits(r provider.Ref, i *instance) error {
	at := "request"
	if i != nil {
		at = fmt.Sprintf("%s after %d steps, %d sizes", i.Status, len(p.Done), p.Resized)
	}
	since := time.Since(time.Unix(p.Since, 0))
	if p.At != at || since < 0 {
		p.At, p.Since = at, time.Now().Unix()
		return nil
	}
	if since < patience {
		return nil
	}
	return provider.ErrorAfter(provider.Throttled, toldEvery, "create %s: %s", r.Name, stuck)
}

// stuck is what people can do about an engine that does not end what it began.
const stuck = "the engine is at it for long: its events say whether that goes on; " +
	"what stays locked after a task that failed its administrator frees with unlock_entity.sh"

// progressOf returns what r records, as far as it can be read: of a record that nobody can read the UID alone leads to what there is.
func progressOf(r provider.Ref) progress {
	p, err := provider.ProgressOf[progress](r)
	if err != nil {
		return progress{}
	}
	return p
}

// mostRounds is how many looks one call takes: a creation has five at most without a wait, and one that goes in circles ends so.
const mostRounds = 8

// hurried reports whether too little of the call is left to begin a step.
func hurried(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < margin
}

// create makes the next steps, as far as none has to be waited for. Which they are follows from the instance itself, so that steps may be lost,
// repeated, or made by several at once: of an instance that two ask for the engine makes one, because it makes no second of a name in a data
// center.
func (d *driver) create(ctx context.Context, r provider.Ref, req request) (provider.Instance, error) {
	p, err := provider.ProgressOf[progress](r)
	if err != nil {
		return provider.Instance{}, err
	}
	there := len(r.Progress) > 0
	for round := 0; ; round++ {
		i, err := d.one(ctx, r, p)
		there = there || i != nil
		switch {
		case err != nil:
			return provider.Halted(r, p, there, err)
		case i == nil && p.ID != "": // the engine removes what it cannot finish: its disks, as where the room ended
			p = progress{}
			return provider.Halted(r, p, there, provider.Errorf(provider.Exhausted, "create %s: the engine took the instance back that it was making: its events say why", r.Name))
		case i != nil && (i.Mark.Launched || p.runs) && !i.Mark.Leaving:
			return d.told(*i), nil
		case round > 0 && hurried(ctx), round == mostRounds:
			return provider.Incomplete(r, p)
		}
		waits, err := d.step(ctx, r, req, i, &p)
		if waits && err == nil {
			err = p.waits(r, i)
		}
		if err != nil {
			return provider.Halted(r, p, there, err)
		}
		if waits || i == nil { // record what was made before anything else
			return provider.Incomplete(r, p)
		}
	}
}

// one returns the Machine's instance, or nil. Two cannot be in one data center; of those in several that counts which is recorded, else the
// first, so that everybody goes on with the same.
func (d *driver) one(ctx context.Context, r provider.Ref, p progress) (*instance, error) {
	found, err := d.named(ctx, provider.Ref{UID: r.UID, ID: p.ID, Name: r.Name}, "")
	if err != nil || len(found) == 0 {
		return nil, err
	}
	n := slices.IndexFunc(found, func(i instance) bool { return i.ID == p.ID })
	return &found[max(0, n)], nil
}

// step begins what is missing of i, and reports whether it has to be waited for.
func (d *driver) step(ctx context.Context, r provider.Ref, req request, i *instance, p *progress) (waits bool, err error) {
	switch {
	case i == nil:
		waits, err = d.begin(ctx, r, req, p)
	case i.Mark.Leaving:
		return false, provider.Errorf(provider.Unknown, "create %s: its instance is being removed", r.Name)
	default:
		if p.ID != i.ID { // what was done of another is not of this one
			*p = progress{ID: i.ID}
		}
		waits, err = d.further(ctx, r, req, *i, p)
	}
	if busy(err) {
		return true, nil
	}
	if provider.CodeOf(err) == provider.NotFound { // a part of it: whether it is there itself, the next look says
		err = provider.Errorf(provider.Exhausted, "%w", err)
	}
	return waits, err
}

// further begins what is missing of i, which is there.
func (d *driver) further(ctx context.Context, r provider.Ref, req request, i instance, p *progress) (waits bool, err error) {
	switch {
	case i.running():
		err := d.launched(ctx, i, *p)
		if refuses(err) && i.Mark.ID == i.ID { // which is for the whole of it, and may be for ever
			p.runs, err = true, nil
		}
		return false, err
	case i.Status == "image_illegal": // which does not end by itself
		return false, provider.Errorf(provider.Exhausted, "create %s: its disks are illegal: the engine's events say why", i.Name)
	case i.Status != "down": // its disks are being made, or resized; a word that nobody knows, or none
		return true, nil
	case i.Mark.ID == "":
		return false, d.note(ctx, i)
	}
	if waits, err := d.prepare(ctx, r, req, i, p); waits || err != nil {
		return waits, err
	}
	return false, roomless(d.start(ctx, i))
}

// roomAgain is when the first start is asked for again that no host has room for.
const roomAgain = time.Minute

// roomless says of a start for which there is no room when it may be asked for again: another copy of the template would have no more, and what
// was made waits for as long as it takes.
func roomless(err error) error {
	if says(err, "no host that satisfies") {
		return provider.ErrorAfter(provider.Exhausted, roomAgain, "%w", err)
	}
	return err
}

// begin asks for the instance. Whose it is stands in the same request.
func (d *driver) begin(ctx context.Context, r provider.Ref, req request, p *progress) (bool, error) {
	body, err := d.wanted(ctx, r, req)
	if err != nil {
		return false, err
	}
	var made reference
	err = d.session.ask(ctx, "create "+r.Name, http.MethodPost, "/vms", url.Values{"clone": {strconv.FormatBool(req.Spec.Copies())}}, body, &made)
	switch {
	case says(err, "name is already in use"):
		return d.taken(ctx, r)
	case err != nil:
		return false, err
	case !uuids.MatchString(made.ID):
		return false, provider.Errorf(provider.Unknown, "create %s: the answer has no id", r.Name)
	}
	p.ID = made.ID
	return false, nil
}

// wanted is the request for an instance (SPEC E43).
func (d *driver) wanted(ctx context.Context, r provider.Ref, req request) (content, error) {
	s := req.Spec
	data, err := d.userData(ctx, s.UserDataSecret.Name)
	if err != nil {
		return nil, err
	}
	comment, err := d.owner(r, req).comment()
	if err != nil {
		return nil, err
	}
	body := content{
		"name": r.Name, "comment": comment, "description": fmt.Sprintf("Machine %s/%s of cluster %s", d.account.Namespace, r.Name, d.account.ClusterID),
		"cluster": reference{s.ClusterID}, "template": reference{req.Template}, "type": s.Type,
		"initialization": content{"custom_script": data, "host_name": r.Name},
	}
	if s.InstanceTypeID != "" {
		body["instance_type"] = reference{s.InstanceTypeID}
	} else {
		body["memory"] = s.MemoryMB << 20
		body["cpu"] = content{"topology": content{"sockets": s.CPU.Sockets, "cores": s.CPU.Cores, "threads": s.CPU.Threads}}
	}
	if s.GuaranteedMemoryMB > 0 {
		body["memory_policy"] = content{"guaranteed": s.GuaranteedMemoryMB << 20}
	}
	if s.Hugepages > 0 {
		body["custom_properties"] = content{"custom_property": []content{{"name": "hugepages", "value": strconv.FormatInt(s.Hugepages, 10)}}}
	}
	if len(req.Hosts) > 0 {
		var hosts []reference
		for _, id := range req.Hosts {
			hosts = append(hosts, reference{id})
		}
		body["placement_policy"] = content{"affinity": "migratable", "hosts": content{"host": hosts}}
	}
	if s.Type == "high_performance" {
		perform(body)
	}
	body["disk_attachments"] = content{"disk_attachment": d.copies(r, req)}
	return body, nil
}

// perform says what people who choose high performance get from the engine's own pages, and the API does not do by itself: the host's CPU, which
// nothing moves to another host by itself, memory that stays, a serial console and no sound.
func perform(body content) {
	for _, it := range []struct {
		of, name string
		value    any
	}{{"cpu", "mode", "host_passthrough"}, {"memory_policy", "ballooning", false}, {"placement_policy", "affinity", "user_migratable"}, {"console", "enabled", true}} {
		of, _ := body[it.of].(content)
		if of == nil {
			of = content{}
		}
		of[it.name] = it.value
		body[it.of] = of
	}
	body["soundcard_enabled"] = false
}

// copies says how the disks differ from the template's: in their names above all, by which one that outlives its instance is known from the
// beginning.
func (d *driver) copies(r provider.Ref, req request) (all []content) {
	s := req.Spec
	for n, id := range req.Disks {
		k := content{"id": id, "alias": prefix(d.account.ClusterID, string(r.UID)) + strconv.Itoa(n+1)}
		if s.Format != "" {
			k["format"] = s.Format
		}
		if s.Sparse != nil {
			k["sparse"] = *s.Sparse
		}
		if s.StorageDomainID != "" {
			k["storage_domains"] = content{"storage_domain": []reference{{s.StorageDomainID}}}
		}
		all = append(all, content{"disk": k})
	}
	return all
}

// mostUserData is what other clouds take as well: refusals of an engine may quote what they are about, and up to this length it is known as what
// nobody is told.
const mostUserData = 64 << 10

// userData reads what the guest gets at its first start: Ignition or cloud-init, as the template's operating system has it.
func (d *driver) userData(ctx context.Context, secret string) (string, error) {
	values, _, err := d.account.Guest(ctx, secret, mostUserData)
	if err != nil {
		return "", err
	}
	data := values[provider.KeyUserData]
	if !utf8.Valid(data) {
		return "", provider.Errorf(provider.Exhausted, "user data secret %s/%s: key userData is no text, such as one that is compressed, and the engine takes no other", d.account.Namespace, secret)
	}
	return string(data), nil
}

// taken is a name that exists in the data center: as that of the Machine's own, made by somebody faster, or of a stranger.
func (d *driver) taken(ctx context.Context, r provider.Ref) (bool, error) {
	all, err := d.seen(ctx, "find "+r.Name, "name="+r.Name, "")
	if err != nil {
		return false, err
	}
	all = slices.DeleteFunc(all, func(i instance) bool { return i.Name != r.Name })
	if slices.ContainsFunc(all, func(i instance) bool { return d.means(provider.Ref{UID: r.UID}, i) }) {
		return true, nil
	}
	if len(all) == 0 {
		return false, provider.Errorf(provider.Unknown, "create %s: its name is taken by an instance that is being made, or is just gone", r.Name)
	}
	return false, provider.Errorf(provider.Exhausted, "create %s: the engine has a virtual machine of that name (%s) that is not this Machine's: rename or remove it", r.Name, all[0].ID)
}
