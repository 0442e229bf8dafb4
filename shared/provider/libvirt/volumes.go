// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"bytes"
	"encoding/xml"

	"github.com/digitalocean/go-libvirt"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// newVolume is a volume as the daemon is told to make it.
type newVolume struct {
	XMLName  xml.Name `xml:"volume"`
	Name     string   `xml:"name"`
	Capacity struct {
		Unit  string `xml:"unit,attr"`
		Value uint64 `xml:",chardata"`
	} `xml:"capacity"`
	Format struct {
		Type string `xml:"type,attr"`
	} `xml:"target>format"`
	Compat  string   `xml:"target>compat,omitempty"`
	Backing *backing `xml:"backingStore"`
}

// linking are the formats of qemu's that no base volume may have: their files may name others, which not every daemon tells of.
var linking = []string{"qcow", "qed", "vmdk", "vdi", "vhdx", "vpc"}

// formatOf returns the format of a base volume. Any other than qcow2 is what a daemon takes its bytes for, such as an ISO's: to qemu they
// are a disk.
func formatOf(named string) string {
	if named == "qcow2" {
		return named
	}
	return "raw"
}

// backing is what a copy-on-write volume lies over.
type backing struct {
	Path   string `xml:"path"`
	Format struct {
		Type string `xml:"type,attr"`
	} `xml:"format"`
}

// root makes the domain's own volume over the base, unless it is there.
func (d *driver) root(l *daemon, pool libvirt.StoragePool, name string, req request) error {
	v := newVolume{Name: name, Backing: &backing{Path: req.Base}}
	v.Capacity.Unit, v.Capacity.Value, v.Format.Type, v.Backing.Format.Type = "bytes", req.Size, "qcow2", formatOf(req.Format)
	v.Compat = "1.1" // of qemu since 2012; a daemon's own default is older
	_, err := d.have(l, pool, v)
	return err
}

// have returns a volume, made if it is not there yet. Somebody else may make it at the same time: the daemon makes one of a name.
func (d *driver) have(l *daemon, pool libvirt.StoragePool, v newVolume) (libvirt.StorageVol, error) {
	vol, err := l.StorageVolLookupByName(pool, v.Name)
	if !is(err, libvirt.ErrNoStorageVol) {
		return vol, err
	}
	text, err := xml.Marshal(v)
	if err != nil {
		return vol, provider.Errorf(provider.Invalid, "describe volume %s: %w", v.Name, err)
	}
	vol, err = l.StorageVolCreateXML(pool, string(text), 0)
	if _, refused := answered(err); !refused {
		return vol, err
	}
	there, look := l.StorageVolLookupByName(pool, v.Name)
	switch {
	case is(look, libvirt.ErrNoStorageVol): // it was not made
		return vol, d.failed("make volume "+v.Name+" in pool "+pool.Name, err)
	case look != nil:
		return vol, look
	}
	return there, nil
}

// filled makes a volume that holds exactly what the guest is to read. Until the domain has been started it is written each time: of
// one whose writer was cut off nobody knows how much is there.
func (d *driver) filled(l *daemon, pool libvirt.StoragePool, name string, data []byte) error {
	v := newVolume{Name: name}
	v.Capacity.Unit, v.Capacity.Value, v.Format.Type = "bytes", uint64(len(data)), "raw"
	vol, err := d.have(l, pool, v)
	if err != nil {
		return err
	}
	_, capacity, _, err := l.StorageVolGetInfo(vol)
	if err != nil {
		return err
	}
	if capacity != uint64(len(data)) { // of other user data, as when the Secret changed since
		if err := d.discard(l, vol); err != nil {
			return err
		}
		if vol, err = d.have(l, pool, v); err != nil {
			return err
		}
	}
	if err := l.upload(vol, data); err != nil {
		return d.failed("write volume "+name, err)
	}
	return nil
}

// upload writes a volume. The SDK may wait for ever where a stream goes wrong: then the connection is given up, with what waits on it.
func (l *daemon) upload(vol libvirt.StorageVol, data []byte) error {
	done := make(chan error, 1)
	go func() { done <- l.StorageVolUpload(vol, bytes.NewReader(data), 0, uint64(len(data)), 0) }()
	err := libvirt.ErrInterrupted
	select {
	case err = <-done:
	case <-l.conn.ended:
	}
	select {
	case why := <-l.conn.broken:
		return why
	default:
		return err
	}
}

// discard deletes a volume, unless it is gone.
func (d *driver) discard(l *daemon, vol libvirt.StorageVol) error {
	err := l.StorageVolDelete(vol, libvirt.StorageVolDeleteNormal)
	if err == nil || missing(err) {
		return nil
	}
	if _, refused := answered(err); !refused {
		return err
	}
	_, look := l.StorageVolLookupByKey(vol.Key)
	switch {
	case missing(look):
		return nil
	case look != nil:
		return look
	}
	return d.failed("delete volume "+vol.Name+" in pool "+vol.Pool, err)
}
