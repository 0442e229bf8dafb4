// SPDX-License-Identifier: Apache-2.0

package libvirtd

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
)

// domain is a virtual machine. All of them are kept.
type domain struct {
	Domain    libvirt.Domain
	def       definition
	text      string            // of the definition
	metadata  map[string]string // elements by namespace
	state     libvirt.DomainState
	reason    int32 // of the state
	saved     bool  // its memory is, for the next start
	restored  bool  // of such
	autostart bool
	starts    int
}

// definition is what counts of a domain's.
type definition struct {
	Type   string `xml:"type,attr"`
	Name   string `xml:"name"`
	UUID   string `xml:"uuid"`
	Memory struct {
		Unit  string `xml:"unit,attr"`
		Value int64  `xml:",chardata"`
	} `xml:"memory"`
	VCPU     int64 `xml:"vcpu"`
	Metadata struct {
		Inner []byte `xml:",innerxml"`
	} `xml:"metadata"`
	Firmware []struct {
		File string `xml:"file,attr"`
	} `xml:"sysinfo>entry"`
	Disks []struct {
		Source struct {
			Pool   string `xml:"pool,attr"`
			Volume string `xml:"volume,attr"`
			File   string `xml:"file,attr"`
		} `xml:"source"`
	} `xml:"devices>disk"`
	Cards []struct {
		MAC struct {
			Address string `xml:"address,attr"`
		} `xml:"mac"`
		Source struct {
			Network string `xml:"network,attr"`
		} `xml:"source"`
	} `xml:"devices>interface"`
}

func (m *domain) active() bool {
	return m.state != libvirt.DomainShutoff && m.state != libvirt.DomainCrashed
}

// find returns a domain that somebody means.
func (d *Daemon) find(id libvirt.UUID) (*domain, error) {
	if m := d.domains[id]; m != nil {
		return m, nil
	}
	return nil, failure(libvirt.ErrNoDomain, "Domain not found: no domain with matching uuid '%s'", uuid.UUID(id))
}

// define makes a domain of its description, or changes the one with its UUID and name: that keeps what it is doing.
func (d *Daemon) define(text string) (*domain, error) {
	m := &domain{text: text, state: libvirt.DomainShutoff}
	if err := xml.Unmarshal([]byte(text), &m.def); err != nil || m.def.Name == "" {
		return nil, failure(libvirt.ErrXMLError, "XML error: %v", err)
	}
	id, err := uuid.Parse(m.def.UUID)
	if err != nil {
		id = uuid.New()
	}
	m.Domain = libvirt.Domain{Name: m.def.Name, UUID: libvirt.UUID(id), ID: -1}
	for _, other := range d.domains {
		if same := other.Domain.UUID == m.Domain.UUID; same != (other.Domain.Name == m.Domain.Name) {
			return nil, failure(libvirt.ErrOperationFailed, "operation failed: domain '%s' already exists with uuid %s", other.Domain.Name, uuid.UUID(other.Domain.UUID))
		}
	}
	if m.metadata, err = elements(m.def.Metadata.Inner); err != nil {
		return nil, failure(libvirt.ErrXMLError, "XML error: %v", err)
	}
	if old := d.domains[m.Domain.UUID]; old != nil {
		m.state, m.reason, m.autostart, m.Domain.ID, m.starts = old.state, old.reason, old.autostart, old.Domain.ID, old.starts
	}
	d.domains[m.Domain.UUID] = m
	return m, nil
}

// elements splits metadata by the namespaces of its elements.
func elements(inner []byte) (map[string]string, error) {
	all := map[string]string{}
	r := xml.NewDecoder(bytes.NewReader(inner))
	for {
		from := r.InputOffset()
		token, err := r.Token()
		if token == nil {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if e, begins := token.(xml.StartElement); begins {
			if err := r.Skip(); err != nil {
				return nil, err
			}
			all[e.Name.Space] = string(inner[from:r.InputOffset()])
		}
	}
}

var metadataPart = regexp.MustCompile(`(?s)\s*<metadata>.*</metadata>`)

// describe returns a domain's definition.
func (m *domain) describe() string {
	var all strings.Builder
	for _, space := range slices.Sorted(maps.Keys(m.metadata)) {
		all.WriteString(m.metadata[space])
	}
	bare := metadataPart.ReplaceAllString(m.text, "")
	at := strings.LastIndex(bare, "</domain>")
	return bare[:at] + "<metadata>" + all.String() + "</metadata>" + bare[at:]
}

var opening = regexp.MustCompile(`^<(\w+)`)

// note writes an element of a domain's metadata, or takes it away.
func (m *domain) note(text, key, space string) error {
	switch {
	case space == "" || key == "" && text != "":
		return failure(libvirt.ErrInvalidArg, "invalid argument: key and uri must be given")
	case text == "" && m.metadata[space] == "":
		return failure(libvirt.ErrNoDomainMetadata, "metadata not found: Requested metadata element is not present")
	case text == "":
		delete(m.metadata, space)
		return nil
	}
	m.metadata[space] = opening.ReplaceAllString(text, fmt.Sprintf(`<%s:$1 xmlns:%s="%s"`, key, key, space))
	return nil
}

// start gives a domain power, if all is there that it needs.
func (d *Daemon) start(m *domain) error {
	if m.active() {
		return failure(libvirt.ErrOperationInvalid, "Requested operation is not valid: domain is already running")
	}
	used := m.def.Memory.Value
	for _, other := range d.domains {
		if other.active() {
			used += other.def.Memory.Value
		}
	}
	if used > d.memory {
		return failure(libvirt.ErrInternalError, "internal error: process exited while connecting to monitor: cannot set up guest memory 'pc.ram': Cannot allocate memory")
	}
	for _, disk := range m.def.Disks {
		at := disk.Source.File
		if disk.Source.Volume != "" {
			p := d.pools[disk.Source.Pool]
			if p == nil || !p.active || p.volumes[disk.Source.Volume] == nil {
				return failure(libvirt.ErrNoStorageVol, "Storage volume not found: no storage vol with matching name '%s'", disk.Source.Volume)
			}
			continue
		}
		if _, v := d.at(at); v == nil {
			return failure(libvirt.ErrSystemError, "Cannot access storage file '%s': No such file or directory", at)
		}
	}
	for _, f := range m.def.Firmware {
		if _, v := d.at(f.File); v == nil {
			return failure(libvirt.ErrInternalError, "internal error: qemu unexpectedly closed the monitor: can't load %s", f.File)
		}
	}
	for _, c := range m.def.Cards {
		if n := d.networks[c.Source.Network]; n == nil || !n.active {
			return failure(libvirt.ErrOperationInvalid, "Requested operation is not valid: network '%s' is not active", c.Source.Network)
		}
	}
	d.ids++
	m.starts++
	m.state, m.reason, m.Domain.ID = libvirt.DomainRunning, 0, d.ids
	m.restored, m.saved = m.saved, false
	return nil
}

// boot is start from the beginning, whatever was saved.
func (d *Daemon) boot(m *domain, flags uint32) error {
	was := m.saved
	m.saved = m.saved && flags&uint32(libvirt.DomainStartForceBoot) == 0
	err := d.start(m)
	if err != nil {
		m.saved = was
	}
	return err
}

func (m *domain) stop() error {
	if !m.active() {
		return failure(libvirt.ErrOperationInvalid, "Requested operation is not valid: domain is not running")
	}
	m.state, m.reason, m.Domain.ID = libvirt.DomainShutoff, int32(libvirt.DomainShutoffDestroyed), -1
	return nil
}

// at returns the volume at a path.
func (d *Daemon) at(file string) (*pool, *volume) {
	for _, p := range d.pools {
		if p.folder == path.Dir(file) {
			if v := p.volumes[path.Base(file)]; v != nil {
				return p, v
			}
		}
	}
	return nil, nil
}

func (d *Daemon) sorted() []*domain {
	return slices.SortedFunc(maps.Values(d.domains), func(a, b *domain) int { return cmp.Compare(a.Domain.Name, b.Domain.Name) })
}

// Seen is what a test sees of a domain.
type Seen struct {
	Name, UUID, XML string
	State           libvirt.DomainState
	Autostart       bool
	Starts          int
	Restored        bool // it goes on with what was saved
}

// Domains returns all domains by name.
func (d *Daemon) Domains() map[string]Seen {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[string]Seen{}
	for _, m := range d.domains {
		all[m.Domain.Name] = Seen{m.Domain.Name, uuid.UUID(m.Domain.UUID).String(), m.describe(), m.state, m.autostart, m.starts, m.restored}
	}
	return all
}

// Define makes a domain as people do, and starts it.
func (d *Daemon) Define(text string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, err := d.define(text)
	if err != nil {
		return err
	}
	return d.start(m)
}

// Undefine removes a domain as people do, with its volumes left.
func (d *Daemon) Undefine(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.domains, func(_ libvirt.UUID, m *domain) bool { return m.Domain.Name == name })
}

// Set puts a domain into a state, as its guest or the host does.
func (d *Daemon) Set(name string, state libvirt.DomainState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.domains {
		if m.Domain.Name == name {
			m.state, m.reason = state, 0
		}
	}
}

// Starting puts a domain into the state in which its hypervisor is being started.
func (d *Daemon) Starting(name string) {
	d.Set(name, libvirt.DomainPaused)
	d.because(name, int32(libvirt.DomainPausedStartingUp))
}

// FailStart ends that: the domain is off, as it failed.
func (d *Daemon) FailStart(name string) {
	d.Set(name, libvirt.DomainShutoff)
	d.because(name, int32(libvirt.DomainShutoffFailed))
}

func (d *Daemon) because(name string, reason int32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.domains {
		if m.Domain.Name == name {
			m.reason = reason
		}
	}
}

// Save switches a domain off with its memory saved, as libvirt-guests does when the host is shut down.
func (d *Daemon) Save(name string) {
	d.Set(name, libvirt.DomainShutoff)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.domains {
		if m.Domain.Name == name {
			m.saved, m.reason = true, int32(libvirt.DomainShutoffSaved)
		}
	}
}
