// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"errors"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
)

// enter begins a call.
func (s *session) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
}

// leave ends one. Of a session that is closed the last logs out.
func (s *session) leave(ctx context.Context) {
	s.mu.Lock()
	s.calls--
	last := s.closed && s.calls == 0
	s.mu.Unlock()
	if last {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), margin)
		defer cancel()
		_ = s.logout(ctx) // the vCenter ends it when nobody has used it for long
	}
}

// end logs out, as soon as no call is under way: what a call reads in pieces ends with the login.
func (s *session) end(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	idle := s.calls == 0
	s.mu.Unlock()
	if !idle {
		return nil
	}
	return s.logout(ctx)
}

// logout ends what logins have made. Who calls after it logs in again.
func (s *session) logout(ctx context.Context) error {
	unlock, err := s.lock(ctx)
	defer unlock()
	if err != nil {
		return err
	}
	if s.rest != nil {
		err, s.rest = s.rest.Logout(ctx), nil
	}
	if s.vim == nil {
		return err
	}
	_, left := methods.Logout(ctx, whole{s.soap}, &types.Logout{This: *s.vim.ServiceContent.SessionManager})
	if name(faultOf(left)) == "NotAuthenticated" { // the vCenter has forgotten it
		left = nil
	}
	return errors.Join(err, left)
}
