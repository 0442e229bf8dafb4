// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"encoding/xml"
	"fmt"
	"path"
	"slices"

	"github.com/digitalocean/go-libvirt"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// request is a spec whose names have become what the daemon calls things, and the little that a domain is made of beside it.
type request struct {
	Spec       providerspec.Libvirt `json:"spec"`
	Hypervisor string               `json:"hypervisor"` // the type of the domain
	Arch       string               `json:"arch"`
	Pool       string               `json:"pool"`
	Folder     string               `json:"folder"` // of the pool
	Base       string               `json:"base"`   // path of the volume to boot from
	Format     string               `json:"format"` // of that volume
	Size       uint64               `json:"size"`   // of the root volume, in bytes
	Network    string               `json:"network"`
	UserData   string               `json:"userData,omitempty"` // path of the volume of ignKey
	Mark       string               `json:"clusterUID,omitempty"`
}

// capabilities are what a daemon says of its host.
type capabilities struct {
	Host struct {
		UUID string `xml:"uuid"`
		Arch string `xml:"cpu>arch"`
	} `xml:"host"`
	Guests []struct {
		OS   string `xml:"os_type"`
		Arch struct {
			Name    string `xml:"name,attr"`
			Domains []struct {
				Type string `xml:"type,attr"`
			} `xml:"domain"`
		} `xml:"arch"`
	} `xml:"guest"`
}

// poolXML is a storage pool.
type poolXML struct {
	Type   string `xml:"type,attr"`
	Folder string `xml:"target>path"`
}

// ofFiles are the types of pools whose volumes are files: copy-on-write volumes are, and what qemu reads user data of.
var ofFiles = []string{"dir", "fs", "netfs"}

// capable reads what the host can run, as fast as it can.
func (l *daemon) capable() (capabilities, error) {
	var c capabilities
	text, err := l.ConnectGetCapabilities()
	if err != nil {
		return c, err
	}
	return c, understand(text, &c)
}

// understand reads what a daemon describes.
func understand(text string, into any) error {
	if err := xml.Unmarshal([]byte(text), into); err != nil {
		return provider.Errorf(provider.Unknown, "the daemon's description cannot be read: %w", err)
	}
	return nil
}

// resolve looks up everything that s names.
func (d *driver) resolve(l *daemon, s providerspec.Libvirt) (request, error) {
	req := request{Spec: s, Mark: string(d.account.ClusterUID), Pool: s.Volume.PoolName}
	if req.Pool == "" {
		req.Pool = defaultPool
	}
	host, err := l.capable()
	if err != nil {
		return req, err
	}
	if err := req.choose(host); err != nil {
		return req, err
	}
	pool, err := d.pool(l, &req)
	if err != nil {
		return req, err
	}
	if err := d.base(l, pool, &req); err != nil {
		return req, err
	}
	if err := d.ignition(l, pool, &req); err != nil {
		return req, err
	}
	return req, d.network(l, &req)
}

// choose takes the fastest of what the host can run of its own architecture.
func (req *request) choose(host capabilities) error {
	for _, g := range host.Guests {
		if g.OS != "hvm" || g.Arch.Name != host.Host.Arch {
			continue
		}
		for _, it := range g.Arch.Domains {
			if req.Hypervisor == "" || it.Type == "kvm" {
				req.Hypervisor, req.Arch = it.Type, g.Arch.Name
			}
		}
	}
	if req.Hypervisor == "" {
		return provider.Errorf(provider.Exhausted, "the host of the daemon says that it runs no virtual machines of its architecture %q: install qemu there", host.Host.Arch)
	}
	return nil
}

// lacks says which field names what the daemon has not.
func (d *driver) lacks(p *field.Path, value string, err error) error {
	if !missing(err) {
		return err
	}
	return provider.Errorf(provider.NotFound, "%s: %q: libvirt %s: %w; create it, or name another", p, value, d.account.Region, err)
}

// mostIgnition is how large a volume with user data may be: qemu reads all of it into memory of the host.
const mostIgnition = 16 << 20

// pool looks at the pool of the volumes.
func (d *driver) pool(l *daemon, req *request) (libvirt.StoragePool, error) {
	where := at("volume", "poolName")
	pool, err := l.StoragePoolLookupByName(req.Pool)
	if err != nil {
		return pool, d.lacks(where, req.Pool, err)
	}
	text, err := l.StoragePoolGetXMLDesc(pool, 0)
	if err != nil {
		return pool, err
	}
	var has poolXML
	if err := understand(text, &has); err != nil {
		return pool, err
	}
	if !slices.Contains(ofFiles, has.Type) || !path.IsAbs(has.Folder) {
		return pool, provider.Errorf(provider.Invalid, "%s: %q is a pool of type %s: copy-on-write volumes and user data need one of files (%v)", where, req.Pool, has.Type, ofFiles)
	}
	active, err := l.StoragePoolIsActive(pool)
	if err == nil && active == 0 {
		err = provider.Errorf(provider.Exhausted, "%s: %q is not active: start it", where, req.Pool)
	}
	req.Folder = has.Folder
	return pool, err
}

// volume describes the volume of the request's pool that a field names, by its name or its path. No other file of the host can be named,
// and none that was made for a Machine: what is in those is written by specs and guests, and may be another cluster's.
func (d *driver) volume(l *daemon, pool libvirt.StoragePool, folder string, p *field.Path, id string) (has volumeXML, err error) {
	name := id
	if path.IsAbs(id) && path.Dir(id) == folder {
		name = path.Base(id)
	}
	if _, made := parseVolume(name); made {
		return has, provider.Errorf(provider.Invalid, "%s: %q is a volume of a Machine: name one that an administrator made", p, id)
	}
	vol, err := l.StorageVolLookupByName(pool, name)
	if missing(err) {
		return has, provider.Errorf(provider.NotFound, "%s: %q: libvirt %s: pool %q: %w; create it there, have the daemon look again (virsh pool-refresh), or name another", p, id, d.account.Region, pool.Name, err)
	}
	if err != nil {
		return has, err
	}
	text, err := l.StorageVolGetXMLDesc(vol, 0)
	if err != nil {
		return has, err
	}
	if err := understand(text, &has); err != nil {
		return has, err
	}
	if u := has.Capacity.Unit; u != "bytes" && u != "" || path.Dir(has.Target.Path) != folder {
		return has, provider.Errorf(provider.Unknown, "volume %s: the daemon tells its size in %q and its path as %q", id, u, has.Target.Path)
	}
	return has, nil
}

// volumeXML is a volume.
type volumeXML struct {
	Capacity struct {
		Unit  string `xml:"unit,attr"`
		Value uint64 `xml:",chardata"`
	} `xml:"capacity"`
	Target struct {
		Path   string `xml:"path"`
		Format struct {
			Type string `xml:"type,attr"`
		} `xml:"format"`
	} `xml:"target"`
	Backing string `xml:"backingStore>path"`
}

// base looks at the volume to boot from, and says how large the domain's own is.
func (d *driver) base(l *daemon, pool libvirt.StoragePool, req *request) error {
	id, size, where := req.Spec.Volume.BaseVolumeID, req.Spec.Volume.VolumeSize, at("volume", "baseVolumeID")
	has, err := d.volume(l, pool, req.Folder, where, id)
	if err != nil {
		return err
	}
	if has.Backing != "" || slices.Contains(linking, has.Target.Format.Type) {
		return provider.Errorf(provider.Exhausted, "%s: %q (%s) lies over %q, or may name other files of the host: make it one of its own (qemu-img convert -O qcow2), or name another",
			where, id, has.Target.Format.Type, has.Backing)
	}
	req.Base, req.Format, req.Size = has.Target.Path, has.Target.Format.Type, has.Capacity.Value
	if size != nil { // one that is smaller than the base has its size: disks do not shrink
		req.Size = max(req.Size, uint64(max(0, size.Value())))
	}
	return nil
}

// ignition looks at the volume with user data, if the spec names one.
func (d *driver) ignition(l *daemon, pool libvirt.StoragePool, req *request) error {
	key := req.Spec.IgnKey
	if key == "" {
		return nil
	}
	has, err := d.volume(l, pool, req.Folder, at("ignKey"), key)
	if err != nil {
		return err
	}
	if has.Capacity.Value > mostIgnition {
		return provider.Errorf(provider.Exhausted, "%s: %q has %d bytes: user data has at most %d", at("ignKey"), key, has.Capacity.Value, mostIgnition)
	}
	req.UserData = has.Target.Path
	return nil
}

// networkXML is a network.
type networkXML struct {
	Name string `xml:"name"`
	IPs  []struct {
		Family  string `xml:"family,attr"`
		Address string `xml:"address,attr"`
		Netmask string `xml:"netmask,attr"`
		Prefix  string `xml:"prefix,attr"`
		DHCP    *struct {
			Hosts []dhcpHost `xml:"host"`
		} `xml:"dhcp"`
	} `xml:"ip"`
	Known []struct { // by its name server
		IP string `xml:"ip,attr"`
	} `xml:"dns>host"`
}

// network looks at the network, by its name if the spec gives one.
func (d *driver) network(l *daemon, req *request) error {
	where, value := at("networkInterfaceName"), req.Spec.NetworkInterfaceName
	net, err := libvirt.Network{}, error(nil)
	if value != "" {
		net, err = l.NetworkLookupByName(value)
	} else {
		where, value = at("networkUUID"), req.Spec.NetworkUUID
		id, _ := parseUUID(value) // parse judged it
		net, err = l.NetworkLookupByUUID(id)
	}
	if err != nil {
		return d.lacks(where, value, err)
	}
	if id, said := parseUUID(req.Spec.NetworkUUID); said && id != net.UUID {
		return provider.Errorf(provider.Exhausted, "%s: %q is not that of network %q, which is %s: name one of both", at("networkUUID"), req.Spec.NetworkUUID, net.Name, idOf(net.UUID))
	}
	active, err := l.NetworkIsActive(net)
	if err != nil {
		return err
	}
	if active == 0 {
		return provider.Errorf(provider.Exhausted, "%s: %q is not active: start it", where, value)
	}
	if req.Network = net.Name; req.Spec.NetworkInterfaceAddress == "" {
		return nil
	}
	has, err := l.describe(net)
	if err != nil {
		return err
	}
	return reservable(has, req.Spec.NetworkInterfaceAddress)
}

// describe reads a network.
func (l *daemon) describe(net libvirt.Network) (has networkXML, err error) {
	text, err := l.NetworkGetXMLDesc(net, 0)
	if err != nil {
		return has, fmt.Errorf("network %s: %w", net.Name, err)
	}
	return has, understand(text, &has)
}
