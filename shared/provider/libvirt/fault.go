// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"errors"
	"net"

	"github.com/digitalocean/go-libvirt"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// codes says what the daemon's errors mean for who asked. None is Invalid: what a daemon does not support today, such as KVM, a machine type,
// or storage at all, it does once its host was mended, and nobody's Machine fails for good because of a host (SPEC E2). Those that are not here, and all that is no answer of the daemon's, are
// Unknown: an internal error, one of the system or of RPC may be that of a daemon behind this one, whose answer was lost.
var codes = map[libvirt.ErrorNumber]provider.Code{
	libvirt.ErrAuthFailed: provider.Denied, libvirt.ErrAuthCancelled: provider.Denied, libvirt.ErrAuthUnavailable: provider.Denied,
	libvirt.ErrAccessDenied: provider.Denied, libvirt.ErrOperationDenied: provider.Denied,

	libvirt.ErrNoDomain: provider.NotFound, libvirt.ErrNoNetwork: provider.NotFound, libvirt.ErrNoStoragePool: provider.NotFound,
	libvirt.ErrNoStorageVol: provider.NotFound,

	libvirt.ErrXMLError: provider.Exhausted, libvirt.ErrXMLDetail: provider.Exhausted, libvirt.ErrXMLInvalidSchema: provider.Exhausted,
	libvirt.ErrConfigUnsupported: provider.Exhausted, libvirt.ErrInvalidArg: provider.Exhausted, libvirt.ErrNoSupport: provider.Exhausted,
	libvirt.ErrArgumentUnsupported: provider.Exhausted, libvirt.ErrOsType: provider.Exhausted,

	libvirt.ErrNoMemory: provider.Exhausted, libvirt.ErrOperationFailed: provider.Exhausted, libvirt.ErrOperationInvalid: provider.Exhausted,
	libvirt.ErrOperationTimeout: provider.Exhausted, libvirt.ErrOperationAborted: provider.Exhausted, libvirt.ErrResourceBusy: provider.Exhausted,
	libvirt.ErrCPUIncompatible: provider.Exhausted, libvirt.ErrMigrateUnsafe: provider.Exhausted, libvirt.ErrHookScriptFailed: provider.Exhausted,
	libvirt.ErrStorageVolExist: provider.Exhausted, libvirt.ErrDomExist: provider.Exhausted,
}

// answered returns the daemon's own error, and reports whether err is one.
func answered(err error) (libvirt.Error, bool) { return errors.AsType[libvirt.Error](err) }

// is reports whether the daemon answered with an error of a number.
func is(err error, number libvirt.ErrorNumber) bool {
	e, ok := answered(err)
	return ok && e.Code == uint32(number)
}

// missing reports whether the daemon says that there is no such thing.
func missing(err error) bool {
	e, ok := answered(err)
	return ok && codes[libvirt.ErrorNumber(e.Code)] == provider.NotFound
}

// coded gives an error of a call its code.
func (s *session) coded(err error) error {
	a := s.account
	if provider.Untrusted(err) {
		return provider.Errorf(provider.Denied, "libvirt %s: %w; see to key %s in secret %s/%s", a.Region, err, keyCA, a.Namespace, a.Secret)
	}
	if refused, ok := errors.AsType[*net.OpError](err); ok && refused.Op == "remote error" { // of TLS: it says why, and nothing was sent
		return provider.Errorf(provider.Denied, "libvirt %s: %w; see to keys %s and %s in secret %s/%s", a.Region, err, keyCert, keyKey, a.Namespace, a.Secret)
	}
	e, _ := answered(err)
	code := codes[libvirt.ErrorNumber(e.Code)]
	if code == provider.Denied {
		return provider.Errorf(code, "libvirt %s refuses who asks with secret %s/%s: %w", a.Region, a.Namespace, a.Secret, err)
	}
	return provider.Errorf(code, "libvirt %s: %w", a.Region, err)
}

// failed is what it means that the daemon answered a step with an error, and did not do it, as was seen since: for a reason that may
// pass. Nobody's Machine fails because a host lacks room or is being changed (SPEC E2).
func (d *driver) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	e, ok := answered(err)
	if !ok {
		return err
	}
	if codes[libvirt.ErrorNumber(e.Code)] == provider.Denied {
		return err
	}
	return provider.Errorf(provider.Exhausted, "libvirt %s: %s: %w", d.account.Region, what, err)
}
