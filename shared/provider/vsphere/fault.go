// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"errors"
	"net/http"
	"reflect"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// codes says what the vCenter's faults mean for who asked. A fault is a definite answer: the call did nothing. Those
// that are not here, and all that is no fault, are Unknown. What depends on the state of the vCenter is Exhausted, so
// that nobody's Machine fails because of a passing shortage (SPEC E2).
var codes = map[string]provider.Code{
	"InvalidLogin": provider.Denied, "NoPermission": provider.Denied, "NotAuthenticated": provider.Denied,
	"RestrictedVersion": provider.Denied, "PasswordExpired": provider.Denied, "InvalidLocale": provider.Denied,

	"ManagedObjectNotFound": provider.NotFound, "NotFound": provider.NotFound, "FileNotFound": provider.NotFound,

	"VirtualHardwareVersionNotSupported": provider.Invalid, "InvalidVmConfig": provider.Invalid,
	"InvalidArgument": provider.Invalid, "InvalidDeviceSpec": provider.Invalid, "InvalidDeviceBacking": provider.Invalid,
	"InvalidName": provider.Invalid, "NotSupported": provider.Invalid, "UnsupportedGuest": provider.Invalid,
	"UncustomizableGuest": provider.Invalid, "NicSettingMismatch": provider.Invalid, "TooManyDevices": provider.Invalid,
	"TooManyDisksOnLegacyHost": provider.Invalid, "InvalidDatastorePath": provider.Invalid,

	"InsufficientResourcesFault": provider.Exhausted, "InsufficientCpuResourcesFault": provider.Exhausted,
	"InsufficientMemoryResourcesFault": provider.Exhausted, "InsufficientHostCapacityFault": provider.Exhausted,
	"InsufficientHostCpuCapacityFault": provider.Exhausted, "InsufficientHostMemoryCapacityFault": provider.Exhausted,
	"InsufficientStorageSpace": provider.Exhausted, "InsufficientFailoverResourcesFault": provider.Exhausted,
	"InsufficientDisks": provider.Exhausted, "InsufficientGraphicsResourcesFault": provider.Exhausted,
	"InsufficientNetworkCapacity": provider.Exhausted, "InsufficientNetworkResourcePoolCapacity": provider.Exhausted,
	"InsufficientStandbyResource": provider.Exhausted, "NoDiskSpace": provider.Exhausted,
	"NotEnoughLicenses": provider.Exhausted, "LicenseRestricted": provider.Exhausted, "LicenseExpired": provider.Exhausted,
	"NoCompatibleHost": provider.Exhausted, "NoActiveHostInCluster": provider.Exhausted, "HostNotConnected": provider.Exhausted,
	"InvalidHostState": provider.Exhausted, "InvalidDatastore": provider.Exhausted, "InaccessibleDatastore": provider.Exhausted,
	"DatastoreNotWritableOnHost": provider.Exhausted, "ResourceInUse": provider.Exhausted, "FileLocked": provider.Exhausted,
	"TaskInProgress": provider.Exhausted, "InvalidState": provider.Exhausted, "InvalidPowerState": provider.Exhausted,
	"ConcurrentAccess": provider.Exhausted, "OutOfBounds": provider.Exhausted, "DuplicateName": provider.Exhausted,
	"QuarantineModeFault": provider.Exhausted, "VmHostAffinityRuleViolation": provider.Exhausted, "RuleViolation": provider.Exhausted,
	"CustomizationPending": provider.Exhausted, "RequestCanceled": provider.Exhausted,
}

// faultOf returns the fault that the vCenter answered with, or nil.
func faultOf(err error) types.BaseMethodFault {
	if f, ok := errors.AsType[interface {
		error
		Fault() types.BaseMethodFault
	}](err); ok {
		return f.Fault()
	}
	return nil
}

// name returns the API's name of a fault.
func name(f types.BaseMethodFault) string {
	t := reflect.TypeOf(f)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return ""
	}
	return t.Name()
}

// coded gives an error of a call its code.
func (s *session) coded(err error) error {
	if e, ok := errors.AsType[*provider.Error](err); ok {
		return provider.ErrorAfter(e.Code, e.RetryAfter, "vCenter %s: %w", s.account.Region, err)
	}
	if a := s.account; provider.Untrusted(err) {
		return provider.Errorf(provider.Denied, "vCenter %s: %w; see to key %s.ca in secret %s/%s", a.Region, err, keyOf(a.Region), a.Namespace, a.Secret)
	}
	fault := name(faultOf(err))
	code := codes[fault]
	if code == provider.Denied && fault != "NoPermission" {
		return s.denied(err)
	}
	if answered(err, http.StatusForbidden) { // the tagging service, which gives faults no names
		code = provider.Denied
	}
	if unfound(err) {
		code = provider.NotFound
	}
	return provider.Errorf(code, "vCenter %s: %w", s.account.Region, err)
}

func (s *session) denied(err error) error {
	a := s.account
	return provider.Errorf(provider.Denied, "vCenter %s refuses the credentials in secret %s/%s, mend %s.username, %s.password there: %w",
		a.Region, a.Namespace, a.Secret, keyOf(a.Region), keyOf(a.Region), err)
}

// failed is what a task that failed means. It was begun and done with, without success, for a reason that may pass (SPEC E27): a device is
// called invalid where its host has no free port of the network, or has lost it, and nobody's Machine fails for that.
func failed(what string, f *types.LocalizedMethodFault) error {
	code, ok := codes[name(f.Fault)]
	if !ok || code == provider.NotFound || code == provider.Invalid {
		code = provider.Exhausted
	}
	message := f.LocalizedMessage
	if message == "" {
		message = name(f.Fault)
	}
	return provider.Errorf(code, "%s: %s", what, message)
}

// unfound reports whether a search found nothing, or too much: somebody restored a copy beside the original, and takes it away again. The
// spec was, and will be, right (not so SPEC E27).
func unfound(err error) bool {
	_, none := errors.AsType[*find.NotFoundError](err)
	_, noDefault := errors.AsType[*find.DefaultNotFoundError](err)
	return none || noDefault || severalFound(err)
}

// severalFound reports whether a search found more than one.
func severalFound(err error) bool {
	_, several := errors.AsType[*find.MultipleFoundError](err)
	_, manyDefaults := errors.AsType[*find.DefaultMultipleFoundError](err)
	return several || manyDefaults
}
