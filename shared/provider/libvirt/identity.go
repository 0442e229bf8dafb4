// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"context"
	"fmt"
	"strings"

	"github.com/digitalocean/go-libvirt"
)

// anchor is a pool that nobody starts, without a volume: its UUID is what the host is called, whatever it calls itself later. A daemon that
// reads no UUID of its board invents one at each start, and does not say so; what is defined stays.
const anchor = "machine-functions-host"

// identity is who a host is.
type identity struct {
	Name string
	Kept bool // for good: by the host, or it has none
}

// Identity implements [provider.Identified]: the UUID of the daemon's host, which it keeps when its name, its address or its board changes, and
// which of the host's hypervisors it serves, for whom. Until the first Create has the host keep that it is asked for each time.
func (d *driver) Identity(ctx context.Context) (string, error) {
	if host := d.session.called(); host.Kept {
		return host.Name, nil
	}
	var host identity
	err := d.call(ctx, func(_ context.Context, l *daemon) (err error) {
		host, err = d.host(l)
		return err
	})
	if err != nil {
		return "", err
	}
	d.session.tells(host)
	return host.Name, nil
}

// called returns what the host was called last; empty if nobody asked.
func (s *session) called() identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.host
}

func (s *session) tells(host identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = host
}

// host returns who answers on a connection; empty if it does not tell, as libvirt's test driver does not.
func (d *driver) host(l *daemon) (identity, error) {
	if l.host.Kept {
		return l.host, nil
	}
	pool, err := l.StoragePoolLookupByName(anchor)
	switch {
	case err == nil:
		l.host = identity{idOf(pool.UUID) + " " + string(d.session.at.remote), true}
		return l.host, nil
	case !is(err, libvirt.ErrNoStoragePool) && !is(err, libvirt.ErrNoSupport):
		return identity{}, err
	}
	has, err := l.capable()
	if err != nil {
		return identity{}, err
	}
	if has.Host.UUID == "" {
		l.host.Kept = true
		return l.host, nil
	}
	return identity{Name: has.Host.UUID + " " + string(d.session.at.remote)}, nil
}

// keep has the host keep what it was called when a Machine recorded that, and returns it. One that lets nobody define a pool goes by its
// UUID of today.
func (d *driver) keep(l *daemon) (string, error) {
	host, err := d.host(l)
	if err != nil || host.Kept {
		return host.Name, err
	}
	if told := d.session.called(); told.Name != "" {
		host = told
	}
	id, _, _ := strings.Cut(host.Name, " ")
	_, err = l.StoragePoolDefineXML(fmt.Sprintf("<pool type='dir'><name>%s</name><uuid>%s</uuid><target><path>/dev/null/%s</path></target></pool>", anchor, id, anchor), 0)
	if _, refused := answered(err); err != nil && !refused {
		return "", err
	}
	host, err = d.host(l) // another may have been faster
	return host.Name, err
}
