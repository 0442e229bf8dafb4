// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"errors"

	"github.com/digitalocean/go-libvirt"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// remove takes every domain that r names off the daemon, and the volumes that are left of others that it names. It says that nothing is
// there only once it saw that: what it removed itself the next call does not see.
func (d *driver) remove(l *daemon, r provider.Ref) (gone bool, err error) {
	found, err := d.named(l, r)
	if err != nil {
		return false, err
	}
	var errs []error
	for _, m := range found {
		errs = append(errs, d.destroy(l, m))
	}
	left, err := d.left(l, r)
	if err != nil {
		return false, errors.Join(append(errs, err)...)
	}
	for _, v := range left {
		errs = append(errs, d.discard(l, v.Vol))
	}
	if len(found) > 0 || len(left) > 0 {
		return false, errors.Join(errs...)
	}
	forgotten, err := d.forget(l, r)
	return err == nil && !forgotten, err
}

// forget releases what networks reserve for the card of a Machine that has no domain, as where people undefined it, and reports whether
// any did: a creation defines the domain before it reserves, so it is nobody's. It says nothing of an attempt: what is to remove but one of
// those comes as late as it likes, between the looks of which another may have begun.
func (d *driver) forget(l *daemon, r provider.Ref) (had bool, err error) {
	if r.UID == "" || r.Attempt {
		return false, nil
	}
	_, err = l.DomainLookupByUUID(uuidOf(r.UID))
	if !is(err, libvirt.ErrNoDomain) { // it has one, of another attempt or mark
		return false, err
	}
	networks, _, err := l.ConnectListAllNetworks(1, 0)
	if err != nil {
		return false, err
	}
	for _, net := range networks {
		released, err := d.release(l, net, r.UID)
		if err != nil {
			return false, err
		}
		had = had || released
	}
	return had, nil
}

// left returns the volumes that r names and no domain has: of the Machine, or of its attempt, or the one with r's id.
func (d *driver) left(l *daemon, r provider.Ref) ([]leftover, error) {
	all, err := d.volumes(l)
	if err != nil {
		return nil, err
	}
	var left []leftover
	for _, v := range all {
		if v.named(r) {
			left = append(left, v)
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	domains, err := d.marked(l)
	if err != nil {
		return nil, err
	}
	var nobodys []leftover
	for _, v := range left {
		had := false
		for _, m := range domains {
			had = had || v.of(m)
		}
		if !had {
			nobodys = append(nobodys, v)
		}
	}
	return nobodys, nil
}

func (v leftover) named(r provider.Ref) bool {
	switch {
	case r.Attempt && v.Name.Token != r.Token:
		return false
	case r.UID == "":
		return r.ID == v.id()
	}
	return v.uid() == r.UID
}

// destroy removes a domain: power off, volumes, reservation, definition. The definition goes last: as long as anything is left of a
// domain, it says whose that is. Power goes first, which alone ends what the daemon waits for in a domain.
func (d *driver) destroy(l *daemon, m domain) error {
	if err := d.cut(l, m); err != nil {
		return err
	}
	ours := m.Mark.Cluster == d.account.ClusterID && !m.copied()
	if ours && !m.Deleting {
		if err := l.flag(m.Ref, spaceDeleting); err != nil && !missing(err) && !is(err, libvirt.ErrOperationInvalid) { // or it is kept nowhere
			return d.failed("mark "+m.Ref.Name+" as going", err)
		}
		if err := d.cutAgain(l, m); err != nil {
			return err
		}
	}
	if ours {
		if err := d.strip(l, m); err != nil {
			return err
		}
	}
	return d.undefine(l, m)
}

// strip removes what was made for a domain. Disks that somebody attached to it are not.
func (d *driver) strip(l *daemon, m domain) error {
	pool, err := l.StoragePoolLookupByName(m.Mark.Pool)
	switch {
	case missing(err): // and its volumes with it
	case err != nil:
		return err
	default:
		if err := d.empty(l, pool, m); err != nil {
			return err
		}
	}
	if m.Mark.Network == "" {
		return nil
	}
	net, err := l.NetworkLookupByName(m.Mark.Network)
	if err == nil {
		_, err = d.release(l, net, m.Mark.UID)
	}
	return ignoreMissing(err)
}

// empty removes what was made for a domain in its pool, which has to be active.
func (d *driver) empty(l *daemon, pool libvirt.StoragePool, m domain) error {
	active, err := l.StoragePoolIsActive(pool)
	if err != nil {
		return err
	}
	if active == 0 {
		return provider.Errorf(provider.Exhausted, "delete %s: pool %q, in which its volumes are, is not active: start it, or undefine it if it is gone for good", m.Ref.Name, m.Mark.Pool)
	}
	for _, role := range roles {
		vol, err := l.StorageVolLookupByName(pool, m.Mark.volume(role))
		if is(err, libvirt.ErrNoStorageVol) {
			continue
		}
		if err == nil {
			err = d.discard(l, vol)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cut switches a domain off, at once.
func (d *driver) cut(l *daemon, m domain) error {
	if !m.active() {
		return nil
	}
	err := l.DomainDestroyFlags(m.Ref, libvirt.DomainDestroyDefault)
	if _, refused := answered(err); !refused || missing(err) {
		return ignoreMissing(err)
	}
	now, there, look := l.read(m.Ref)
	switch {
	case look != nil:
		return look
	case !there || !now.active():
		return nil
	}
	return d.failed("power off "+m.Ref.Name, err)
}

// cutAgain switches off what somebody else, who saw it without a flag, started meanwhile.
func (d *driver) cutAgain(l *daemon, m domain) error {
	now, there, err := l.read(m.Ref)
	if err != nil || !there {
		return err
	}
	return d.cut(l, now)
}

func ignoreMissing(err error) error {
	if missing(err) {
		return nil
	}
	return err
}

// undefine takes a domain's definition away, with what the daemon itself keeps of it.
func (d *driver) undefine(l *daemon, m domain) error {
	with := libvirt.DomainUndefineManagedSave | libvirt.DomainUndefineSnapshotsMetadata
	err := l.DomainUndefineFlags(m.Ref, with|libvirt.DomainUndefineNvram|libvirt.DomainUndefineCheckpointsMetadata)
	if is(err, libvirt.ErrInvalidArg) || is(err, libvirt.ErrArgumentUnsupported) || is(err, libvirt.ErrNoSupport) { // a daemon that keeps no such things
		err = l.DomainUndefineFlags(m.Ref, with)
	}
	if _, refused := answered(err); !refused || missing(err) {
		return ignoreMissing(err)
	}
	_, look := l.DomainLookupByUUID(m.Ref.UUID)
	switch {
	case missing(look): // one that was kept nowhere went when it was switched off
		return nil
	case look != nil:
		return look
	}
	return d.failed("undefine "+m.Ref.Name, err)
}
