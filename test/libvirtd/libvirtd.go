// SPDX-License-Identifier: Apache-2.0

// Package libvirtd is a libvirt daemon over a host that does not exist: its protocol, and what its documentation says of domains, storage
// pools and networks. test/libvirt holds a real one to the same.
package libvirtd

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/digitalocean/go-libvirt"
)

// What an administrator makes for Machines.
const (
	Pool    = "cluster-a389-fmxsv"
	Base    = "cluster-a389-fmxsv-base"
	Network = "cluster-a389-fmxsv"
	Folder  = "/var/lib/libvirt/" + Pool
)

// Daemon is one daemon. It is safe for concurrent use.
type Daemon struct {
	Address string // where it listens: host:port, or the path of a socket

	mu       sync.Mutex
	host     libvirt.UUID
	memory   int64  // MiB that domains may have together
	room     uint64 // bytes that volumes may have together
	domains  map[libvirt.UUID]*domain
	pools    map[string]*pool
	networks map[string]*network
	ids      int32
	polkit   bool
	strike   func(procedure string) Fault
	calls    map[string]int
	clients  map[net.Conn]bool
	listener net.Listener
	serving  sync.WaitGroup
}

// New returns a daemon that serves nobody yet, with the pool, the base volume of 10 GiB, and the network 192.168.126.0/24.
func New() *Daemon {
	d := &Daemon{
		host: libvirt.UUID{0x4c, 0x4c, 0x45, 0x44, 0, 0x43, 0x10, 0x46, 0x80, 0x35, 0xb7, 0xc0, 0x4f, 0x4d, 0x31, 0x32}, memory: 1 << 20, room: 1 << 40,
		domains: map[libvirt.UUID]*domain{}, pools: map[string]*pool{}, networks: map[string]*network{}, calls: map[string]int{}, clients: map[net.Conn]bool{},
	}
	d.pools[Pool] = &pool{name: Pool, kind: "dir", folder: Folder, active: true, volumes: map[string]*volume{}}
	d.pools[Pool].volumes[Base] = &volume{name: Base, format: "qcow2", capacity: 10 << 30, known: true}
	d.networks[Network] = &network{name: Network, uuid: libvirt.UUID{1, 2, 3, 4, 5, 6, 0x47, 8, 0x89, 10}, prefix: "192.168.126", active: true}
	return d
}

// Start serves on loopback, without TLS unless config is given. The context bounds the start only.
func (d *Daemon) Start(ctx context.Context, config *tls.Config) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	d.Address, d.listener = l.Addr().String(), l
	d.serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			d.serving.Go(func() { d.accept(conn, config) })
		}
	})
	return nil
}

// accept greets a client: with TLS, by the byte that says that its certificate is taken.
func (d *Daemon) accept(conn net.Conn, config *tls.Config) {
	defer d.forget(conn)
	d.mu.Lock()
	d.clients[conn] = true
	d.mu.Unlock()
	served := conn
	if config != nil {
		secured := tls.Server(conn, config)
		if _, err := secured.Write([]byte{1}); err != nil { // after the handshake
			return
		}
		served = secured
	}
	(&client{daemon: d, conn: served, uploads: map[uint32]*upload{}}).serve()
}

func (d *Daemon) forget(conn net.Conn) {
	_ = conn.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.clients, conn)
}

// Stop ends the daemon and all connections; what it knows stays.
func (d *Daemon) Stop() {
	_ = d.listener.Close()
	d.Disconnect()
	d.serving.Wait()
}

// Disconnect ends all connections, as a restart of the daemon does.
func (d *Daemon) Disconnect() {
	d.mu.Lock()
	conns := slices.Collect(maps.Keys(d.clients))
	d.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// Connections returns how many there are.
func (d *Daemon) Connections() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.clients)
}

// Calls returns how many calls of procedures there were.
func (d *Daemon) Calls(procedures ...string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range procedures {
		n += d.calls[p]
	}
	return n
}

// Writes returns how many calls there were that change something.
func (d *Daemon) Writes() int {
	return d.Calls("DomainDefineXMLFlags", "DomainCreate", "DomainCreateWithFlags", "DomainDestroyFlags", "DomainUndefineFlags", "DomainSetAutostart", "DomainSetMetadata",
		"StoragePoolDefineXML", "StorageVolCreateXML", "StorageVolDelete", "StorageVolUpload", "NetworkUpdate")
}

// Polkit has the daemon ask polkit about each client, as a socket does that is for others than root.
func (d *Daemon) Polkit() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.polkit = true
}

// Full leaves no room for another volume, or gives it back.
func (d *Daemon) Full(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = 1 << 40
	if full {
		d.room = 0
	}
}

// Memory sets how many MiB domains may have together.
func (d *Daemon) Memory(mib int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.memory = mib
}

// Children returns how many volumes there are beside the base, and reserved addresses.
func (d *Daemon) Children() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.pools {
		for _, v := range p.volumes {
			if !v.known {
				n++
			}
		}
	}
	for _, net := range d.networks {
		n += len(net.hosts)
	}
	return n
}

func failure(number libvirt.ErrorNumber, format string, args ...any) error {
	return libvirt.Error{Code: uint32(number), Message: fmt.Sprintf(format, args...)}
}

// Board gives the host another board, and with it another UUID, and starts the daemon anew: one that reads no UUID of a board, and invents
// one at each start, looks the same.
func (d *Daemon) Board(serial byte) {
	d.mu.Lock()
	d.host[15] = serial
	d.mu.Unlock()
	d.Disconnect()
}
