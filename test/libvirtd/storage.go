// SPDX-License-Identifier: Apache-2.0

package libvirtd

import (
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"html"
	"maps"
	"path"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
)

// pool is a storage pool.
type pool struct {
	name, kind, folder string
	uuid               libvirt.UUID
	active             bool
	volumes            map[string]*volume
}

// volume is a file in a pool.
type volume struct {
	name, format, backing string
	capacity              uint64
	data                  []byte
	known                 bool // of the administrator
}

func (p *pool) path(v *volume) string { return path.Join(p.folder, v.name) }

func (p *pool) ref(v *volume) libvirt.StorageVol {
	return libvirt.StorageVol{Pool: p.name, Name: v.name, Key: p.path(v)}
}

// pool returns a pool, which has to be active if it is to be used.
func (d *Daemon) pool(name string, use bool) (*pool, error) {
	p := d.pools[name]
	switch {
	case p == nil:
		return nil, failure(libvirt.ErrNoStoragePool, "Storage pool not found: no storage pool with matching name '%s'", name)
	case use && !p.active:
		return nil, failure(libvirt.ErrOperationInvalid, "Requested operation is not valid: storage pool '%s' is not active", name)
	}
	return p, nil
}

// definePool keeps a pool, which is not active. One of the same name and UUID it is already.
func (d *Daemon) definePool(text string) (libvirt.StoragePool, error) {
	var def struct {
		Type   string `xml:"type,attr"`
		Name   string `xml:"name"`
		UUID   string `xml:"uuid"`
		Folder string `xml:"target>path"`
	}
	id, err := uuid.UUID{}, xml.Unmarshal([]byte(text), &def)
	if err == nil {
		id, err = uuid.Parse(def.UUID)
	}
	if err != nil {
		return libvirt.StoragePool{}, failure(libvirt.ErrXMLError, "XML error: %v", err)
	}
	it := &pool{name: def.Name, kind: def.Type, folder: def.Folder, uuid: libvirt.UUID(id), volumes: map[string]*volume{}}
	for _, other := range d.pools {
		switch same := other.uuid == it.uuid; {
		case same != (other.name == it.name):
			return libvirt.StoragePool{}, failure(libvirt.ErrOperationFailed, "operation failed: pool '%s' is already defined with uuid %s", other.name, uuid.UUID(other.uuid))
		case same:
			it = other
		}
	}
	d.pools[it.name] = it
	return libvirt.StoragePool{Name: it.name, UUID: it.uuid}, nil
}

// volume returns a volume of a pool.
func (d *Daemon) volume(pool, name string) (*pool, *volume, error) {
	p, err := d.pool(pool, true)
	if err != nil {
		return nil, nil, err
	}
	v := p.volumes[name]
	if v == nil {
		return nil, nil, failure(libvirt.ErrNoStorageVol, "Storage volume not found: no storage vol with matching name '%s'", name)
	}
	return p, v, nil
}

// make makes a volume of its description.
func (d *Daemon) make(pool, text string) (libvirt.StorageVol, error) {
	var none libvirt.StorageVol
	p, err := d.pool(pool, true)
	if err != nil {
		return none, err
	}
	var def struct {
		Name     string `xml:"name"`
		Capacity uint64 `xml:"capacity"`
		Format   struct {
			Type string `xml:"type,attr"`
		} `xml:"target>format"`
		Backing string `xml:"backingStore>path"`
	}
	if err := xml.Unmarshal([]byte(text), &def); err != nil || def.Name == "" || path.Base(def.Name) != def.Name || len(def.Name) > 255 {
		return none, failure(libvirt.ErrXMLError, "XML error: volume %q: %v", def.Name, err)
	}
	if p.volumes[def.Name] != nil {
		return none, failure(libvirt.ErrStorageVolExist, "storage volume '%s' exists already", def.Name)
	}
	if def.Backing != "" {
		if _, base := d.at(def.Backing); base == nil {
			return none, failure(libvirt.ErrSystemError, "Cannot access backing file '%s': No such file or directory", def.Backing)
		}
	}
	if d.room == 0 {
		return none, failure(libvirt.ErrInternalError, "internal error: Child process (qemu-img create) unexpected exit status 1: No space left on device")
	}
	v := &volume{name: def.Name, format: def.Format.Type, backing: def.Backing, capacity: def.Capacity}
	p.volumes[v.name] = v
	return p.ref(v), nil
}

// write ends an upload.
func (d *Daemon) write(up *upload) {
	d.mu.Lock()
	defer d.mu.Unlock()
	up.volume.data = up.data
	up.volume.probe()
}

// probe takes the format of a volume from what is in it, as a daemon does that looks at its pool after an upload.
func (v *volume) probe() {
	const magic, most = "QFI\xfb", 1 << 10
	if len(v.data) < 20 || string(v.data[:4]) != magic {
		return
	}
	at, size := binary.BigEndian.Uint64(v.data[8:]), uint64(binary.BigEndian.Uint32(v.data[16:]))
	v.format = "qcow2"
	if size <= most && at <= uint64(len(v.data)) && at+size <= uint64(len(v.data)) {
		v.backing = string(v.data[at : at+size])
	}
}

func (p *pool) describe() string {
	return fmt.Sprintf(`<pool type='%s'><name>%s</name><target><path>%s</path></target></pool>`, p.kind, html.EscapeString(p.name), html.EscapeString(p.folder))
}

func (v *volume) describe(p *pool) string {
	backing := ""
	if v.backing != "" {
		backing = "<backingStore><path>" + html.EscapeString(v.backing) + "</path></backingStore>"
	}
	return fmt.Sprintf(`<volume type='file'><name>%s</name><key>%s</key><capacity unit='bytes'>%d</capacity><target><path>%s</path><format type='%s'/></target>%s</volume>`,
		html.EscapeString(v.name), html.EscapeString(p.path(v)), v.capacity, html.EscapeString(p.path(v)), v.format, backing)
}

// Volume is what a test sees of a volume.
type Volume struct {
	Format, Backing string
	Capacity        uint64
	Data            string
}

// Volumes returns the volumes of a pool by name, but for those that the administrator made.
func (d *Daemon) Volumes(pool string) map[string]Volume {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[string]Volume{}
	for _, v := range d.pools[pool].volumes {
		if !v.known {
			all[v.name] = Volume{v.format, v.backing, v.capacity, string(v.data)}
		}
	}
	return all
}

// AddPool makes a pool of a type. Its folder is that of its name.
func (d *Daemon) AddPool(name, kind string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pools[name] = &pool{name: name, kind: kind, folder: "/var/lib/libvirt/" + name, active: true, volumes: map[string]*volume{}}
}

// AddVolume makes a volume as people do.
func (d *Daemon) AddVolume(pool, name string, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pools[pool].volumes[name] = &volume{name: name, format: "raw", capacity: 1 << 20, known: known}
}

// AddImage makes a volume as the administrator does, of a format and perhaps over another.
func (d *Daemon) AddImage(pool, name string, as Volume) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pools[pool].volumes[name] = &volume{name: name, format: as.Format, backing: as.Backing, capacity: as.Capacity, data: []byte(as.Data), known: true}
}

// DropPool undefines a pool.
func (d *Daemon) DropPool(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pools, name)
}

// Activate starts a pool or stops it.
func (d *Daemon) Activate(pool string, active bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pools[pool].active = active
}

// Share shows in a pool what another host has in its pool of the name, as one file system behind both does.
func (d *Daemon) Share(pool string, other *Daemon) {
	other.mu.Lock()
	theirs := maps.Clone(other.pools[pool].volumes)
	other.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.Copy(d.pools[pool].volumes, theirs)
}
