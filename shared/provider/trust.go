// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"crypto/tls"
	"errors"
)

// Untrusted reports whether a request failed because the certificate of whoever answers was not believed. That is found out
// before anything is sent, so the request did nothing.
func Untrusted(err error) bool {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return untrusted
}
