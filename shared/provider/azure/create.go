// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// An instance is made in steps, each of which is on record before the next: its public address, its network interface, then the
// instance, which nobody's call ever changes: it is asked for as what is not there yet (If-None-Match). What a step makes is named after
// the Machine, and looked for before it is asked for. So each may be repeated by anybody.

// nameable are the names that an instance of Linux can have.
var nameable = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?$`)

// create makes the next step.
func (d *driver) create(ctx context.Context, r provider.Ref, req request) (provider.Instance, error) {
	if !nameable.MatchString(r.Name) {
		return provider.Instance{}, provider.Errorf(provider.Invalid, "metadata.name: %q: Azure's instances have names of at most 64 characters", r.Name)
	}
	p, err := provider.ProgressOf[progress](r)
	if err != nil {
		return provider.Instance{}, err
	}
	return d.patiently(ctx, r, &p, func() (provider.Instance, string, error) { return d.step(ctx, r, req, &p) })
}

// step makes one, or tells what has to be waited for before it.
func (d *driver) step(ctx context.Context, r provider.Ref, req request, p *progress) (in provider.Instance, waits string, err error) {
	have, err := d.at(ctx, d.id(instanceKind, r.Name))
	if err == nil {
		return d.existing(ctx, r, p, have)
	}
	if !gone(err) {
		return in, "", err
	}
	if req.Spec.PublicIP {
		made, waits, err := d.haveAddress(ctx, r, req)
		if p.Address = addressName(r.Name); made || waits != "" || err != nil {
			return p.after(r, waits, err)
		}
	}
	made, waits, err := d.haveCard(ctx, r, req)
	if p.Card = cardName(r.Name); made || waits != "" || err != nil {
		return p.after(r, waits, err)
	}
	return d.launch(ctx, r, req, p)
}

// after is the answer to a step that was made, or failed, or has to wait.
func (p *progress) after(r provider.Ref, waits string, err error) (in provider.Instance, _ string, _ error) {
	if waits != "" || err != nil {
		return in, waits, err
	}
	in, err = provider.Incomplete(r, p)
	return in, "", err
}

// launch asks for the instance.
func (d *driver) launch(ctx context.Context, r provider.Ref, req request, p *progress) (in provider.Instance, waits string, err error) {
	data, _, err := d.userData(ctx, req.Spec.UserDataSecret.Name)
	if err != nil {
		return in, "", err
	}
	wanted, err := d.order(r, req, data)
	if err != nil {
		return in, "", err
	}
	if waits, err := d.haveNoDisks(ctx, r, wanted); waits != "" || err != nil {
		return in, waits, err
	}
	id := d.id(instanceKind, r.Name)
	made, err := put(ctx, d.client, id, wanted, map[string]string{"If-None-Match": "*"})
	if refused(err, http.StatusPreconditionFailed) || refused(err, http.StatusConflict) { // somebody was faster, perhaps
		have, lookup := d.at(ctx, id)
		if lookup == nil {
			return d.existing(ctx, r, p, have)
		}
		if !gone(lookup) || refused(err, http.StatusPreconditionFailed) { // which says that it is there
			return in, "", provider.Errorf(provider.Unknown, "look for what is there already: %v", d.coded(lookup))
		}
	}
	if err != nil {
		return in, "", notYet(err, p.Card)
	}
	p.Instance = made.Properties.VMID
	return p.after(r, "", nil)
}

// existing is the answer where an instance of that name is there already.
func (d *driver) existing(ctx context.Context, r provider.Ref, p *progress, i instance) (in provider.Instance, waits string, err error) {
	switch {
	case i.tag(tagUID) != string(r.UID) || copied(i.thing, i.called()) || !d.ours(i.thing):
		return in, "", d.foreign("an instance", i.thing)
	case i.tag(tagToken) != r.Token:
		return in, "", provider.Errorf(provider.Exhausted, "the instance %s of another attempt for this Machine is there", r.Name)
	}
	p.Instance = i.Properties.VMID
	state, code, message := i.state()
	switch {
	case i.Properties.State == creating:
		return in, "for Azure to make the instance", nil
	case i.Properties.State == deleting: // what failed goes, and is made anew
		return in, "for the instance that failed to go", nil
	case state == provider.StateFailed && code == provider.Exhausted:
		// Without a word of its power it may run, and be a Node: Azure leaves that out now and then. What found no room never ran.
		doubt := "for Azure to say whether instance " + p.Instance + " has power"
		if reason, _ := i.reason(); !shortages.MatchString(reason) && !p.waited(doubt, doubtFor) {
			return in, doubt, nil
		}
		if err := d.drop(ctx, i.ID); err != nil {
			return in, "", err
		}
		p.Instance = ""
		in, err := provider.Halted(r, p, true, provider.Errorf(provider.Exhausted, "Azure in %s could not make the instance: %s", d.location, message))
		return in, "", err
	}
	return d.launched(ctx, i), "", nil
}

// launched is the view of an instance that is there: a read that fails would refuse the attempt that made it, so its addresses are left
// to the next list.
func (d *driver) launched(ctx context.Context, i instance) provider.Instance {
	cards, addresses, err := d.connections(ctx, []instance{i})
	if err != nil {
		cards, addresses = nil, nil
	}
	return d.view(i, cards, addresses)
}

// haveNoDisks removes what an instance of the Machine's left under the names of the disks that the next one gets, and tells which of
// them is still there: Azure would accept that instance and let it fail. What is kept, and another attempt's, stays: perhaps
// that one ran. Where disks may not be read Azure says so itself.
func (d *driver) haveNoDisks(ctx context.Context, r provider.Ref, wanted instance) (waits string, err error) {
	for _, w := range append([]osDisk{*wanted.Properties.Storage.OS}, wanted.Properties.Storage.Data...) {
		have, err := get[disk](ctx, d.client, d.id(diskKind, w.Name), nil)
		if gone(err) || err != nil && d.unlessHidden(err) == nil {
			continue
		}
		if err != nil {
			return "", err
		}
		c := childOfDisk(have)
		made, kept := d.made(c)
		mine := (made || kept && have.tag(tagToken) == r.Token) && have.tag(tagUID) == string(r.UID)
		switch {
		case have.Properties.State == deleting:
		case strings.EqualFold(c.user, d.id(instanceKind, r.Name)):
			waits = "for Azure to take disk " + w.Name + " off an instance that is gone"
			continue
		case !mine || c.user != "":
			return "", d.foreign("a disk", have.thing)
		default:
			if err := d.drop(ctx, have.ID); err != nil {
				return "", err
			}
		}
		waits = "for disk " + w.Name + " to go"
	}
	return waits, nil
}

// haveAddress makes the public address unless it is there, and reports whether it did, or tells that it is not ready yet.
func (d *driver) haveAddress(ctx context.Context, r provider.Ref, req request) (made bool, waits string, err error) {
	id := d.id(addressKind, addressName(r.Name))
	have, err := get[address](ctx, d.client, id, nil)
	switch {
	case err == nil && !d.belongs(r, have.thing, addressName):
		return false, "", d.foreign("a public address", have.thing)
	case err == nil && have.tag(tagToken) == r.Token && have.Properties.State != failed:
		return false, untilReady(have.Properties.State, "the public address"), nil
	case err != nil && !gone(err):
		return false, "", err
	}
	_, failure := put(ctx, d.client, id, d.addressOrder(r, req), nil)
	return asked(err == nil && have.tag(tagToken) == r.Token, "the public address", d.about(at("publicIP"), failure))
}

// haveCard does so with the network interface.
func (d *driver) haveCard(ctx context.Context, r provider.Ref, req request) (made bool, waits string, err error) {
	id := d.id(cardKind, cardName(r.Name))
	have, err := get[card](ctx, d.client, id, nil)
	switch {
	case err == nil && !d.belongs(r, have.thing, cardName):
		return false, "", d.foreign("a network interface", have.thing)
	case err == nil && have.Properties.Instance != nil && !have.Properties.Instance.is(d.id(instanceKind, r.Name)):
		return false, "", d.foreign("a network interface", have.thing)
	case err == nil && have.tag(tagToken) == r.Token && have.Properties.State != failed:
		return false, untilReady(have.Properties.State, "the network interface"), nil
	case err != nil && !gone(err):
		return false, "", err
	}
	_, failure := put(ctx, d.client, id, d.cardOrder(r, req), nil)
	return asked(err == nil && have.tag(tagToken) == r.Token, "the network interface", d.about(at("subnet"), notYet(failure, addressName(r.Name))))
}

// notYet takes from a refusal that what this attempt made a moment ago is not there: Azure looks for it in a copy that lags.
func notYet(err error, own string) error {
	r, ok := errors.AsType[*refusal](err)
	if ok && codeOf(r.status, r.code, r.message) == provider.NotFound && strings.Contains(strings.ToLower(r.message), strings.ToLower("/"+own)) {
		return provider.Errorf(provider.Exhausted, "Azure does not find yet what it has just made: %s", r.message)
	}
	return err
}

// asked is the answer to a request for what comes before the instance. Where it is not the attempt's first, what that made has failed: it is
// waited for as what is not ready, and told once that takes long.
func asked(again bool, what string, err error) (made bool, waits string, _ error) {
	if again && err == nil {
		return false, untilReady(failed, what), nil
	}
	return true, "", err
}

func untilReady(state, what string) string {
	if state == succeeded {
		return ""
	}
	return "for " + what + " to be ready"
}

// belongs reports whether what is there under the name that r's would have is r's.
func (d *driver) belongs(r provider.Ref, t thing, name func(string) string) bool {
	return t.tag(tagUID) == string(r.UID) && d.ours(t) && strings.EqualFold(t.called(), name(t.tag(tagMachine)))
}

// foreign is a thing of somebody else's that has the name of the Machine's, or of one of its own: nobody touches it.
func (d *driver) foreign(what string, t thing) error {
	const says = "resource group %s has %s %s that is not this Machine's: it stays as it is; remove it, or give the Machine another name"
	return provider.Errorf(provider.Exhausted, says, d.group, what, t.called())
}
