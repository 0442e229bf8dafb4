// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"regexp"
	"slices"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// itsOwnFault is what EC2 says of itself (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html, "Server error
// codes"), before or after it acted. It is not what codeOf goes by.
var itsOwnFault = regexp.MustCompile(`Internal|Unavailable|Timeout|Timed|Unknown|^$`)

// FuzzCodeOf: whatever an error is called, an answer that is no 4xx is a refusal only by a word that EC2 says before it acts, and
// only a 4xx makes a Machine fail or an instance absent (RELIABILITY G5, 2b.4).
func FuzzCodeOf(f *testing.F) {
	for _, code := range slices.Concat(throttled, refused, exhausted, []string{
		"", "UnknownError", "InternalError", "InternalFailure", "ServerInternal", "Unavailable", "ServiceUnavailable", "RequestTimeout", "InvalidParameterValue", "InvalidInstanceID.NotFound", "InsufficientInstanceCapacity", "VcpuLimitExceeded", "Ünknown\x00",
	}) {
		f.Add(code, 400)
		f.Add(code, 503)
	}
	f.Fuzz(func(t *testing.T, code string, status int) {
		got := codeOf(code, status)
		said := slices.Contains(throttled, code) || slices.Contains(refused, code) || slices.Contains(exhausted, code) || shortages.MatchString(code)
		if status/100 != 4 && got.Definite() && (!said || itsOwnFault.MatchString(code)) {
			t.Errorf("%q with %d is %s", code, status, got)
		}
		if (got == provider.Invalid || got == provider.NotFound) && status/100 != 4 {
			t.Errorf("%q with %d is %s", code, status, got)
		}
	})
}
