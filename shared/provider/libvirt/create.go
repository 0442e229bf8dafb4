// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"context"
	"time"

	"github.com/digitalocean/go-libvirt"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// progress says that something may be there; what it is the domain says itself.
type progress struct {
	Step  string `json:"step"`            // that was begun last
	Since int64  `json:"since,omitempty"` // when it was first seen to be under way, in seconds, where that is waited for
}

// The steps of a creation, in their order. The domain comes first, before anything that is its: it carries the marks, no two have one
// UUID or name, and whatever is made for it is found through it.
const (
	stepClear   = "clear" // what another attempt left
	stepDefine  = "define"
	stepDisk    = "disk"
	stepData    = "user data"
	stepAddress = "address"
	stepStart   = "start"
	stepNote    = "note"
)

// margin is what a call keeps to answer in time: no step begins in it.
const margin = 3 * time.Second

// create makes the next steps. What they are follows from the domain itself, so that steps may be lost, repeated, or made by several at
// once: each is a request that the daemon carries out once.
func (d *driver) create(ctx context.Context, l *daemon, r provider.Ref, req request) (provider.Instance, error) {
	if err := nameable(r, req.Mark); err != nil {
		return provider.Instance{}, err
	}
	m, err := d.one(l, r)
	if err != nil {
		return kept(r, err)
	}
	switch {
	case m == nil:
		if err := d.begin(l, r, req); err != nil {
			return kept(r, err)
		}
		return incomplete(r, stepDefine) // recorded before anything else: what is refused from here on leaves something behind
	case m.Deleting, // as of a Machine whose deletion a restored backup knows nothing of: what was begun is ended first
		m.Mark.Token != r.Token && !m.Launched && !m.active(): // or another attempt's, of a spec that may have been another
		if err := d.destroy(l, *m); err != nil {
			return refused(r, stepClear, err)
		}
		return incomplete(r, stepClear)
	case m.Starting && !m.Launched: // by somebody else, and it may fail yet
		now, err := l.await(ctx, *m)
		if err != nil {
			return provider.Halted(r, starting(r), true, err)
		}
		if now.Starting {
			return waits(r, now)
		}
		m = &now
	}
	for _, s := range d.steps(ctx, l, r, req, *m) {
		if m.Launched {
			break
		}
		if hurried(ctx) {
			return incomplete(r, s.name)
		}
		if err := s.do(); err != nil {
			return refused(r, s.name, err)
		}
	}
	return d.made(l, r, *m)
}

// made looks at a domain whose steps are done.
func (d *driver) made(l *daemon, r provider.Ref, m domain) (provider.Instance, error) {
	now, there, err := l.read(m.Ref)
	switch {
	case err != nil:
		return refused(r, stepNote, err)
	case !there:
		return refused(r, stepNote, provider.Errorf(provider.Unknown, "domain %s was removed while it was made", m.Ref.Name))
	case !m.Launched && (now.Starting || now.Failed): // what was noted waited for a start that failed
		if err := l.unflag(m.Ref, spaceLaunched); err != nil {
			return refused(r, stepStart, err)
		}
		return incomplete(r, stepStart)
	}
	i, err := d.instance(l, now)
	if err != nil {
		return refused(r, stepNote, err)
	}
	return i, nil
}

// step is one that is made of a domain that has yet to be started. Repeating it changes nothing.
type step struct {
	name string
	do   func() error
}

func (d *driver) steps(ctx context.Context, l *daemon, r provider.Ref, req request, m domain) []step {
	note := step{stepNote, func() error { return l.flag(m.Ref, spaceLaunched) }}
	if m.active() { // who started it was cut off before it was noted
		return []step{note}
	}
	all := []step{
		{stepDisk, func() error {
			pool, err := d.active(l, m.Mark.Pool)
			if err != nil {
				return err
			}
			return d.root(l, pool, m.Mark.volume(roleRoot), req)
		}},
		{stepData, func() error { return d.userData(ctx, l, r, req, m) }},
	}
	if m.Mark.Network != "" {
		all = append(all, step{stepAddress, func() error { return d.reserve(l, r, req) }})
	}
	return append(all, step{stepStart, func() error {
		if m.Held {
			return provider.Errorf(provider.Exhausted, "create %s: it is held off: let it have power again", r.Name)
		}
		return d.start(l, m)
	}}, note)
}

// one returns the Machine's domain, or nil. That it is another's is a refusal.
func (d *driver) one(l *daemon, r provider.Ref) (*domain, error) {
	ref, err := l.DomainLookupByUUID(uuidOf(r.UID))
	if is(err, libvirt.ErrNoDomain) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, there, err := l.read(ref)
	if err != nil || !there {
		return nil, err
	}
	if m.Mark.Cluster != d.account.ClusterID || m.Mark.UID != r.UID {
		return nil, provider.Errorf(provider.Exhausted, "create %s: libvirt %s has domain %q with the UUID %s, which carries the mark of another Machine or none: remove it, or restore its mark",
			r.Name, d.account.Region, ref.Name, idOf(ref.UUID))
	}
	m.Launched = m.Launched || recorded(r, m)
	return &m, nil
}

// begin defines the domain. Somebody else may do so at the same time: then it is defined as the same again.
func (d *driver) begin(l *daemon, r provider.Ref, req request) error {
	host, err := d.keep(l)
	if err != nil {
		return err
	}
	text, err := define(req, d.mark(r, req, host, time.Now()))
	if err != nil {
		return err
	}
	_, err = l.DomainDefineXMLFlags(text, 0)
	if _, answer := answered(err); !answer {
		return err
	}
	other, look := l.DomainLookupByName(r.Name)
	switch {
	case is(look, libvirt.ErrNoDomain):
		return err
	case look != nil:
		return look
	case other.UUID != uuidOf(r.UID):
		return provider.Errorf(provider.Exhausted, "create %s: libvirt %s has a domain of that name (%s) that is not this Machine's: rename or remove it",
			r.Name, d.account.Region, idOf(other.UUID))
	}
	return nil
}

// active returns a pool that is there and active.
func (d *driver) active(l *daemon, name string) (libvirt.StoragePool, error) {
	pool, err := l.StoragePoolLookupByName(name)
	if err != nil {
		return pool, d.failed("pool "+name, err)
	}
	active, err := l.StoragePoolIsActive(pool)
	if err == nil && active == 0 {
		err = provider.Errorf(provider.Exhausted, "%s: %q is not active: start it", at("volume", "poolName"), name)
	}
	return pool, err
}

// start starts a domain, unless it has power, after saying whether its host starts it too.
func (d *driver) start(l *daemon, m domain) error {
	if err := l.autostart(m.Ref, m.Mark.Autostart); err != nil {
		return d.failed("autostart of "+m.Ref.Name, err)
	}
	return d.powerOn(l, m)
}

func (l *daemon) autostart(ref libvirt.Domain, on bool) error {
	var flag int32
	if on {
		flag = 1
	}
	return l.DomainSetAutostart(ref, flag)
}

// powerOn starts a domain, unless it has power.
func (d *driver) powerOn(l *daemon, m domain) error {
	if m.active() {
		return nil
	}
	err := l.boot(m.Ref)
	if _, refused := answered(err); !refused {
		return err
	}
	now, there, look := l.read(m.Ref)
	switch {
	case look != nil:
		return look
	case !there:
		return provider.Errorf(provider.Unknown, "start %s: it was removed meanwhile", m.Ref.Name)
	case now.Starting: // somebody else is at it
		return provider.Errorf(provider.Unknown, "start %s: it is being started", m.Ref.Name)
	case now.active(): // somebody else did
		return nil
	}
	return d.failed("start "+m.Ref.Name, err)
}

// boot starts a domain from its beginning: what its host saved of it, as when that was shut down, is given up.
func (l *daemon) boot(ref libvirt.Domain) error {
	_, err := l.DomainCreateWithFlags(ref, uint32(libvirt.DomainStartForceBoot))
	if is(err, libvirt.ErrInvalidArg) || is(err, libvirt.ErrArgumentUnsupported) || is(err, libvirt.ErrNoSupport) { // a daemon that saves nothing
		return l.DomainCreate(ref)
	}
	return err
}

// hurried reports whether too little of the call is left to begin a step.
func hurried(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < margin
}

// incomplete is what a creation looks like that has further steps.
func incomplete(r provider.Ref, began string) (provider.Instance, error) {
	return provider.Incomplete(r, progress{Step: began})
}

// refused is what a call leaves behind that failed where something is there.
func refused(r provider.Ref, began string, err error) (provider.Instance, error) {
	return provider.Halted(r, progress{Step: began}, true, err)
}

// kept is what a call leaves behind that failed where nothing is seen: what was recorded stays so, as else another attempt might begin
// elsewhere beside it.
func kept(r provider.Ref, err error) (provider.Instance, error) {
	return provider.Halted(r, progress{Step: stepDefine}, len(r.Progress) > 0, err)
}
