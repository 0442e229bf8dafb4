// SPDX-License-Identifier: Apache-2.0

package libvirtd

import (
	"reflect"
	"strings"

	"github.com/digitalocean/go-libvirt"
)

// procedure carries out the calls of one procedure.
type procedure struct {
	name string
	do   func(c *client, h head, body []byte) (any, error)
}

// call is a procedure with arguments, which nobody else changes meanwhile.
func call[A any](name string, f func(*Daemon, A) (any, error)) procedure {
	return procedure{name, func(c *client, _ head, body []byte) (any, error) {
		var a A
		if _, err := decode(body, reflect.ValueOf(&a).Elem()); err != nil {
			return nil, failure(libvirt.ErrRPC, "%s: %v", name, err)
		}
		c.daemon.mu.Lock()
		defer c.daemon.mu.Unlock()
		return f(c.daemon, a)
	}}
}

type nothing struct{}

// networkUpdateInOrder is a feature of daemons that take the arguments of NetworkUpdate as they are documented.
const networkUpdateInOrder = 16

// procedures are those that the driver calls, by their numbers in remote_protocol.x.
var procedures = map[uint32]procedure{
	1: call("ConnectOpen", func(*Daemon, nothing) (any, error) { return nil, nil }),
	2: call("ConnectClose", func(*Daemon, nothing) (any, error) { return nil, nil }),
	66: call("AuthList", func(d *Daemon, _ nothing) (any, error) {
		return libvirt.AuthListRet{Types: []libvirt.AuthType{libvirt.AuthType(2 * flag(d.polkit))}}, nil // none, or polkit
	}),
	70: call("AuthPolkit", func(*Daemon, nothing) (any, error) { return libvirt.AuthPolkitRet{Complete: 1}, nil }),
	7:  call("ConnectGetCapabilities", (*Daemon).capabilities),
	60: call("ConnectSupportsFeature", func(_ *Daemon, a libvirt.ConnectSupportsFeatureArgs) (any, error) {
		return libvirt.ConnectSupportsFeatureRet{Supported: flag(a.Feature == networkUpdateInOrder)}, nil
	}),
	273: call("ConnectListAllDomains", func(d *Daemon, _ nothing) (any, error) {
		var ret libvirt.ConnectListAllDomainsRet
		for _, m := range d.sorted() {
			ret.Domains = append(ret.Domains, m.Domain)
			ret.Ret++
		}
		return ret, nil
	}),
	24: call("DomainLookupByUUID", func(d *Daemon, a libvirt.DomainLookupByUUIDArgs) (any, error) {
		m, err := d.find(a.UUID)
		if err != nil {
			return nil, err
		}
		return libvirt.DomainLookupByUUIDRet{Dom: m.Domain}, nil
	}),
	23: call("DomainLookupByName", func(d *Daemon, a libvirt.DomainLookupByNameArgs) (any, error) {
		for _, m := range d.domains {
			if m.Domain.Name == a.Name {
				return libvirt.DomainLookupByNameRet{Dom: m.Domain}, nil
			}
		}
		return nil, failure(libvirt.ErrNoDomain, "Domain not found: no domain with matching name '%s'", a.Name)
	}),
	14: ofDomain("DomainGetXMLDesc", func(_ *Daemon, m *domain, _ libvirt.DomainGetXMLDescArgs) (any, error) {
		return libvirt.DomainGetXMLDescRet{XML: m.describe()}, nil
	}),
	212: ofDomain("DomainGetState", func(_ *Daemon, m *domain, _ libvirt.DomainGetStateArgs) (any, error) {
		return libvirt.DomainGetStateRet{State: int32(m.state), Reason: m.reason}, nil
	}),
	353: ofDomain("DomainInterfaceAddresses", func(d *Daemon, m *domain, a libvirt.DomainInterfaceAddressesArgs) (any, error) {
		switch {
		case !m.active():
			return nil, failure(libvirt.ErrOperationInvalid, "Requested operation is not valid: domain is not running")
		case a.Source != uint32(libvirt.DomainInterfaceAddressesSrcLease):
			return nil, failure(libvirt.ErrArgumentUnsupported, "argument unsupported: Unknown IP address data source %d", a.Source)
		}
		return libvirt.DomainInterfaceAddressesRet{Ifaces: d.cards(m)}, nil
	}),
	350: call("DomainDefineXMLFlags", func(d *Daemon, a libvirt.DomainDefineXMLFlagsArgs) (any, error) {
		m, err := d.define(a.XML)
		if err != nil {
			return nil, err
		}
		return libvirt.DomainDefineXMLFlagsRet{Dom: m.Domain}, nil
	}),
	264: ofDomain("DomainSetMetadata", func(_ *Daemon, m *domain, a libvirt.DomainSetMetadataArgs) (any, error) {
		return nil, m.note(strings.Join(a.Metadata, ""), strings.Join(a.Key, ""), strings.Join(a.Uri, ""))
	}),
	29: ofDomain("DomainSetAutostart", func(_ *Daemon, m *domain, a libvirt.DomainSetAutostartArgs) (any, error) {
		m.autostart = a.Autostart != 0
		return nil, nil
	}),
	196: ofDomain("DomainCreateWithFlags", func(d *Daemon, m *domain, a libvirt.DomainCreateWithFlagsArgs) (any, error) {
		err := d.boot(m, a.Flags)
		return libvirt.DomainCreateWithFlagsRet{Dom: m.Domain}, err
	}),
	9:   ofDomain("DomainCreate", func(d *Daemon, m *domain, _ libvirt.DomainCreateArgs) (any, error) { return nil, d.start(m) }),
	234: ofDomain("DomainDestroyFlags", func(_ *Daemon, m *domain, _ libvirt.DomainDestroyFlagsArgs) (any, error) { return nil, m.stop() }),
	231: ofDomain("DomainUndefineFlags", func(d *Daemon, m *domain, a libvirt.DomainUndefineFlagsArgs) (any, error) {
		if a.Flags&libvirt.DomainUndefineNvram != 0 { // as the test driver, and older ones
			return nil, failure(libvirt.ErrInvalidArg, "unsupported flags (0x%x) in function testDomainUndefineFlags", a.Flags)
		}
		delete(d.domains, m.Domain.UUID)
		return nil, nil
	}),
	281: call("ConnectListAllStoragePools", (*Daemon).activePools),
	84: call("StoragePoolLookupByName", func(d *Daemon, a libvirt.StoragePoolLookupByNameArgs) (any, error) {
		p, err := d.pool(a.Name, false)
		if err != nil {
			return nil, err
		}
		return libvirt.StoragePoolLookupByNameRet{Pool: libvirt.StoragePool{Name: a.Name, UUID: p.uuid}}, nil
	}),
	77: call("StoragePoolDefineXML", func(d *Daemon, a libvirt.StoragePoolDefineXMLArgs) (any, error) {
		p, err := d.definePool(a.XML)
		return libvirt.StoragePoolDefineXMLRet{Pool: p}, err
	}),
	88: call("StoragePoolGetXMLDesc", func(d *Daemon, a libvirt.StoragePoolGetXMLDescArgs) (any, error) {
		p, err := d.pool(a.Pool.Name, false)
		if err != nil {
			return nil, err
		}
		return libvirt.StoragePoolGetXMLDescRet{XML: p.describe()}, nil
	}),
	154: call("StoragePoolIsActive", func(d *Daemon, a libvirt.StoragePoolIsActiveArgs) (any, error) {
		p, err := d.pool(a.Pool.Name, false)
		if err != nil {
			return nil, err
		}
		return libvirt.StoragePoolIsActiveRet{Active: flag(p.active)}, nil
	}),
	282: call("StoragePoolListAllVolumes", func(d *Daemon, a libvirt.StoragePoolListAllVolumesArgs) (any, error) {
		p, err := d.pool(a.Pool.Name, true)
		if err != nil {
			return nil, err
		}
		var ret libvirt.StoragePoolListAllVolumesRet
		for _, v := range p.volumes {
			ret.Vols = append(ret.Vols, p.ref(v))
			ret.Ret++
		}
		return ret, nil
	}),
	95: call("StorageVolLookupByName", func(d *Daemon, a libvirt.StorageVolLookupByNameArgs) (any, error) {
		p, v, err := d.volume(a.Pool.Name, a.Name)
		if err != nil {
			return nil, err
		}
		return libvirt.StorageVolLookupByNameRet{Vol: p.ref(v)}, nil
	}),
	96: call("StorageVolLookupByKey", func(d *Daemon, a libvirt.StorageVolLookupByKeyArgs) (any, error) {
		p, v := d.at(a.Key)
		if v == nil {
			return nil, failure(libvirt.ErrNoStorageVol, "Storage volume not found: no storage vol with matching key %s", a.Key)
		}
		return libvirt.StorageVolLookupByKeyRet{Vol: p.ref(v)}, nil
	}),
	97: call("StorageVolLookupByPath", func(d *Daemon, a libvirt.StorageVolLookupByPathArgs) (any, error) {
		p, v := d.at(a.Path)
		if v == nil {
			return nil, failure(libvirt.ErrNoStorageVol, "Storage volume not found: no storage vol with matching path '%s'", a.Path)
		}
		return libvirt.StorageVolLookupByPathRet{Vol: p.ref(v)}, nil
	}),
	100: ofVolume("StorageVolGetPath", func(_ *Daemon, p *pool, v *volume, _ libvirt.StorageVolGetPathArgs) (any, error) {
		return libvirt.StorageVolGetPathRet{Name: p.path(v)}, nil
	}),
	99: ofVolume("StorageVolGetXMLDesc", func(_ *Daemon, p *pool, v *volume, _ libvirt.StorageVolGetXMLDescArgs) (any, error) {
		return libvirt.StorageVolGetXMLDescRet{XML: v.describe(p)}, nil
	}),
	98: ofVolume("StorageVolGetInfo", func(_ *Daemon, _ *pool, v *volume, _ libvirt.StorageVolGetInfoArgs) (any, error) {
		return libvirt.StorageVolGetInfoRet{Capacity: v.capacity, Allocation: v.capacity}, nil
	}),
	93: call("StorageVolCreateXML", func(d *Daemon, a libvirt.StorageVolCreateXMLArgs) (any, error) {
		v, err := d.make(a.Pool.Name, a.XML)
		return libvirt.StorageVolCreateXMLRet{Vol: v}, err
	}),
	94: ofVolume("StorageVolDelete", func(_ *Daemon, p *pool, v *volume, _ libvirt.StorageVolDeleteArgs) (any, error) {
		delete(p.volumes, v.name)
		return nil, nil
	}),
	208: {"StorageVolUpload", (*client).begin},
	283: call("ConnectListAllNetworks", (*Daemon).allNetworks),
	46: call("NetworkLookupByName", func(d *Daemon, a libvirt.NetworkLookupByNameArgs) (any, error) {
		n, err := d.network(a.Name)
		if err != nil {
			return nil, err
		}
		return libvirt.NetworkLookupByNameRet{Net: n.ref()}, nil
	}),
	47: call("NetworkLookupByUUID", func(d *Daemon, a libvirt.NetworkLookupByUUIDArgs) (any, error) {
		for _, n := range d.networks {
			if n.uuid == a.UUID {
				return libvirt.NetworkLookupByUUIDRet{Net: n.ref()}, nil
			}
		}
		return nil, failure(libvirt.ErrNoNetwork, "Network not found: no network with matching uuid")
	}),
	43: ofNetwork("NetworkGetXMLDesc", func(n *network, _ libvirt.NetworkGetXMLDescArgs) (any, error) {
		return libvirt.NetworkGetXMLDescRet{XML: n.describe()}, nil
	}),
	152: ofNetwork("NetworkIsActive", func(n *network, _ libvirt.NetworkIsActiveArgs) (any, error) {
		return libvirt.NetworkIsActiveRet{Active: flag(n.active)}, nil
	}),
	153: ofNetwork("NetworkIsPersistent", func(*network, libvirt.NetworkIsPersistentArgs) (any, error) {
		return libvirt.NetworkIsPersistentRet{Persistent: 1}, nil
	}),
	341: ofNetwork("NetworkGetDhcpLeases", func(n *network, _ libvirt.NetworkGetDhcpLeasesArgs) (any, error) {
		all := n.given()
		return libvirt.NetworkGetDhcpLeasesRet{Leases: all, Ret: uint32(len(all))}, nil //nolint:gosec // a few
	}),
	291: ofNetwork("NetworkUpdate", func(n *network, a libvirt.NetworkUpdateArgs) (any, error) {
		return nil, n.update(a.Command, a.Section, a.ParentIndex, a.XML)
	}),
}

func flag(is bool) int32 {
	if is {
		return 1
	}
	return 0
}
