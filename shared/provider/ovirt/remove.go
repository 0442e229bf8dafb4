// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// remove takes every instance that r names further on its way out, and then the disks that outlived one.
func (d *driver) remove(ctx context.Context, r provider.Ref) error {
	found, err := d.named(ctx, r, "")
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return d.clear(ctx, r)
	}
	var errs []error
	for _, i := range found {
		errs = append(errs, present(d.dismiss(ctx, r, i)))
	}
	return errors.Join(errs...)
}

// present returns err of what was listed: whatever part of it the engine lacks, it is not gone before a list says so.
func present(err error) error {
	if provider.CodeOf(err) == provider.NotFound {
		return provider.ErrorAfter(provider.Unknown, after(err), "%w", err)
	}
	return err
}

// dismiss makes the next step of the removal of i: it is noted, stopped, rid of disks that are not its own, removed.
func (d *driver) dismiss(ctx context.Context, r provider.Ref, i instance) error {
	if i.copied() {
		return provider.Errorf(provider.Exhausted, "delete %s: %s has the Machine's mark and the id that it records, but the mark is another instance's: "+
			"a copy is left alone; remove it, or empty its comment", r.Name, i.ID)
	}
	if i.Protected { // nothing else is done to it, as no removal will follow
		return provider.Errorf(provider.Exhausted, "delete %s: Delete protection is enabled for it in the engine: disable that there", r.Name)
	}
	if i.Status == "image_locked" { // the engine changes nothing of it before its disks are ready: what lasts the Machine tells by its own time
		return nil
	}
	if i.Mark.UID != "" && (!i.Mark.Leaving || i.Mark.ID == "") {
		m, err := d.known(ctx, i)
		if err != nil {
			return err
		}
		m.Leaving = true
		err = d.write(ctx, i, m)
		if refuses(err) { // for ever, it may be: no removal ends for that
			err = d.unnoted(ctx, i, err)
		}
		if err != nil {
			return passing(err)
		}
		i.Mark = m
	}
	if i.Status != "down" {
		if off, err := d.stop(ctx, i); !off {
			return err
		}
	}
	freed, err := d.free(ctx, i)
	if !freed || err != nil {
		return passing(err)
	}
	return passing(d.session.ask(ctx, "delete "+i.Name, http.MethodDelete, i.at(), nil, nil, nil))
}

// unnoted returns the refusal of a note on i, unless what i owns is known without: it was noted before, or each of its disks is called so. What is
// not may be a volume.
func (d *driver) unnoted(ctx context.Context, i instance, refusal error) error {
	if i.Mark.ID != "" {
		return nil
	}
	all, err := d.attached(ctx, i)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(a attachment) bool { return !a.Disk.belongs(i) }) {
		return refusal
	}
	return nil
}

// passing returns err unless it is none for long: somebody else is at it, or it is gone. The next call looks again.
func passing(err error) error {
	if busy(err) || refusedWith(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// still reports whether the engine's word for i is one of what surely has no process, as where its disks are broken.
func (i instance) still() bool {
	return slices.Contains([]string{"", "down", "unassigned", "image_illegal"}, i.Status)
}

// stop cuts the power of i, and reports whether it was off before. That it "is not running" the engine says too where it has not heard of the
// host: then it may run, and nothing is taken away from it.
func (d *driver) stop(ctx context.Context, i instance) (off bool, err error) {
	err = d.session.ask(ctx, "stop "+i.Name, http.MethodPost, i.at("/stop"), nil, content{}, nil)
	if says(err, "the vm is during a backup operation") { // which may hang, and ends with the instance anyway
		err = d.session.ask(ctx, "stop "+i.Name, http.MethodPost, i.at("/stop"), nil, content{"force": true}, nil)
	}
	switch idle := says(err, "not running"); {
	case err != nil && (i.Status == "unknown" || i.Status == "not_responding"):
		return false, provider.ErrorAfter(provider.CodeOf(err), after(err), "%w: %s", err, i.message())
	case idle:
		return i.still(), nil
	}
	return false, passing(err)
}

// free takes the disks off i that must outlive it: volumes of pods, which the engine would remove with it (R-B29). It reports whether there is
// none left.
func (d *driver) free(ctx context.Context, i instance) (bool, error) {
	for range 2 { // one may be attached meanwhile
		all, err := d.attached(ctx, i)
		if err != nil {
			return false, err
		}
		foreign := slices.DeleteFunc(slices.Clone(all), i.owns)
		if len(foreign) == 0 {
			return true, d.describe(ctx, i, all)
		}
		if off, err := d.off(ctx, i); !off || err != nil { // people, or its host, may have brought it back
			return false, err
		}
		for _, a := range foreign {
			q := url.Values{"detach_only": {"true"}}
			if err := d.session.ask(ctx, "detach disk "+a.ID+" from "+i.Name, http.MethodDelete, i.at("/diskattachments/", a.ID), q, nil, nil); err != nil && !refusedWith(err, http.StatusNotFound) && !says(err, "not attached", "already detached") {
				return false, err
			}
		}
	}
	return false, nil
}

// off looks at i once more, and reports whether it surely has no process.
func (d *driver) off(ctx context.Context, i instance) (bool, error) {
	all, err := d.seen(ctx, "look at "+i.Name, byID(i.ID), "")
	return slices.ContainsFunc(all, func(now instance) bool { return now.ID == i.ID && now.still() }), err
}

// describe gives the disks of i their marks, where it did not come to that: one that outlives it is found by them. A disk that takes none, as
// what is broken, goes without.
func (d *driver) describe(ctx context.Context, i instance, all []attachment) error {
	for _, a := range all {
		if i.Mark.UID == "" || a.Disk.mark().UID != "" {
			continue
		}
		description, err := describing(i.Mark, a)
		if err != nil {
			return err
		}
		err = d.session.ask(ctx, "name disk of "+i.Name, http.MethodPut, i.at("/diskattachments/", a.ID), nil, content{"disk": content{"description": description}}, nil)
		if err != nil && (busy(err) || !provider.CodeOf(err).Definite()) {
			return err
		}
	}
	return nil
}

// owns reports whether a disk is i's own: one that has its mark, or was noted; before that one that is called so, or that i boots from. Of one
// that another system made it is what it boots from.
func (i instance) owns(a attachment) bool {
	m := i.Mark
	switch {
	case m.UID != "" && a.Disk.mark().UID == m.UID, slices.Contains(m.Disks, a.ID):
		return true
	case m.ID != "":
		return false
	}
	return bool(a.Bootable) || m.UID != "" && strings.HasPrefix(a.Disk.Alias, prefix(m.Cluster, m.UID))
}

// clear removes the disks that outlived what r names, and returns NotFound once there are none.
func (d *driver) clear(ctx context.Context, r provider.Ref) error {
	var (
		left []disk
		err  error
	)
	switch {
	case r.UID != "":
		left, err = d.loose(ctx, string(r.UID))
	case uuids.MatchString(r.ID):
		left, err = d.loose(ctx, "")
		left = slices.DeleteFunc(left, func(k disk) bool { return !strings.EqualFold(k.ID, r.ID) })
	}
	if err != nil {
		return err
	}
	if r.Attempt {
		left = slices.DeleteFunc(left, func(k disk) bool { return k.mark().Token != r.Token })
	}
	if len(left) == 0 {
		return provider.Errorf(provider.NotFound, "delete %s: no instance is there", r.Name)
	}
	var errs []error
	for _, k := range left {
		if k.Status != "locked" {
			errs = append(errs, passing(d.session.ask(ctx, "delete disk "+k.ID+" of "+r.Name, http.MethodDelete, "/disks/"+k.ID, nil, nil, nil)))
		}
	}
	return errors.Join(errs...)
}
