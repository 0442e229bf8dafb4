// SPDX-License-Identifier: Apache-2.0

package libvirt

import "context"

// Identity implements [provider.Identified]: the UUID of the daemon's host, which it keeps when its name or address changes.
func (d *driver) Identity(ctx context.Context) (string, error) {
	s := d.session
	s.mu.Lock()
	known := s.host
	s.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	var host capabilities
	err := d.call(ctx, func(_ context.Context, l *daemon) (err error) {
		host, err = l.capable()
		return err
	})
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = &host.Host.UUID
	return host.Host.UUID, nil
}
