// SPDX-License-Identifier: Apache-2.0

package libvirtd

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
)

// first returns the first of a call's arguments, which says what the call is about.
func first[T any](args any) T {
	it, _ := reflect.ValueOf(args).Field(0).Interface().(T) // as the protocol has them
	return it
}

// ofDomain is a call about a domain that has to be there.
func ofDomain[A any](name string, f func(*Daemon, *domain, A) (any, error)) procedure {
	return call(name, func(d *Daemon, a A) (any, error) {
		m, err := d.find(first[libvirt.Domain](a).UUID)
		if err != nil {
			return nil, err
		}
		return f(d, m, a)
	})
}

// ofVolume is a call about a volume that has to be there.
func ofVolume[A any](name string, f func(*Daemon, *pool, *volume, A) (any, error)) procedure {
	return call(name, func(d *Daemon, a A) (any, error) {
		ref := first[libvirt.StorageVol](a)
		p, v, err := d.volume(ref.Pool, ref.Name)
		if err != nil {
			return nil, err
		}
		return f(d, p, v, a)
	})
}

// ofNetwork is a call about a network that has to be there.
func ofNetwork[A any](name string, f func(*network, A) (any, error)) procedure {
	return call(name, func(d *Daemon, a A) (any, error) {
		n, err := d.network(first[libvirt.Network](a).Name)
		if err != nil {
			return nil, err
		}
		return f(n, a)
	})
}

func (d *Daemon) capabilities(nothing) (any, error) {
	return libvirt.ConnectGetCapabilitiesRet{Capabilities: `<capabilities><host><uuid>` + uuid.UUID(d.host).String() + `</uuid><cpu><arch>x86_64</arch></cpu></host>
<guest><os_type>hvm</os_type><arch name='i686'><domain type='qemu'/><domain type='kvm'/></arch></guest>
<guest><os_type>hvm</os_type><arch name='x86_64'><domain type='qemu'/><domain type='kvm'/></arch></guest></capabilities>`}, nil
}

func (d *Daemon) activePools(nothing) (any, error) {
	var ret libvirt.ConnectListAllStoragePoolsRet
	for _, p := range slices.SortedFunc(maps.Values(d.pools), func(a, b *pool) int { return cmp.Compare(a.name, b.name) }) {
		if p.active {
			ret.Pools = append(ret.Pools, libvirt.StoragePool{Name: p.name})
			ret.Ret++
		}
	}
	return ret, nil
}

func (d *Daemon) allNetworks(nothing) (any, error) {
	var ret libvirt.ConnectListAllNetworksRet
	for _, n := range slices.SortedFunc(maps.Values(d.networks), func(a, b *network) int { return cmp.Compare(a.name, b.name) }) {
		ret.Nets = append(ret.Nets, n.ref())
		ret.Ret++
	}
	return ret, nil
}

// begin begins an upload, whose pieces come as a stream.
func (c *client) begin(h head, body []byte) (any, error) {
	var a libvirt.StorageVolUploadArgs
	if _, err := decode(body, reflect.ValueOf(&a).Elem()); err != nil {
		return nil, err
	}
	c.daemon.mu.Lock()
	defer c.daemon.mu.Unlock()
	_, v, err := c.daemon.volume(a.Vol.Pool, a.Vol.Name)
	if err != nil {
		return nil, err
	}
	c.uploads[h.Serial] = &upload{volume: v}
	return nil, nil
}
