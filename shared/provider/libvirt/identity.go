// SPDX-License-Identifier: Apache-2.0

package libvirt

import "context"

// Identity implements [provider.Identified]: the UUID of the daemon's host, which it keeps when its name or address changes, and which of
// the host's hypervisors it serves, for whom.
func (d *driver) Identity(ctx context.Context) (string, error) {
	s := d.session
	s.mu.Lock()
	known := s.host
	s.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	var host string
	err := d.call(ctx, func(_ context.Context, l *daemon) (err error) {
		host, err = d.host(l)
		return err
	})
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = &host
	return host, nil
}

// host returns who answers on a connection; empty if it does not tell, as libvirt's test driver does not.
func (d *driver) host(l *daemon) (string, error) {
	if l.host != nil {
		return *l.host, nil
	}
	has, err := l.capable()
	if err != nil {
		return "", err
	}
	host := has.Host.UUID
	if host != "" {
		host += " " + string(d.session.at.remote)
	}
	l.host = &host
	return host, nil
}
