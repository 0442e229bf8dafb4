// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"errors"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
)

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
