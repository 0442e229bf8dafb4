// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/throttle"
)

// The two answers to a token that was used before (https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html).
const (
	otherParameters = "IdempotentParameterMismatch"
	terminated      = "IdempotentInstanceTerminated"
)

// tooManyTags is no quota: EC2 takes 50 of one thing, whatever anybody asks for.
const tooManyTags = "TagLimitExceeded"

var (
	throttled = []string{
		"RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled",
		"RequestThrottledException", "TooManyRequestsException", "EC2ThrottledException", "SlowDown", "BandwidthLimitExceeded",
	}
	refused = []string{
		"UnauthorizedOperation", "AuthFailure", "AccessDenied", "AccessDeniedException", "InvalidClientTokenId",
		"SignatureDoesNotMatch", "RequestExpired", "ExpiredToken", "ExpiredTokenException", "UnrecognizedClientException",
		"MissingAuthenticationToken", "InvalidAccessKeyId", "IncompleteSignature", "OptInRequired", "Blocked",
		"InvalidSignatureException", "NotAuthorized", "InvalidSecurityToken", "InvalidToken", "InvalidSecurity.RequestHasExpired",
	}
	// exhausted are shortages that name themselves neither Insufficient… nor …LimitExceeded; terminated is a token whose
	// instance is gone: another attempt has another token.
	exhausted = []string{
		"MaxSpotInstanceCountExceeded", "MaxSpotFleetRequestCountExceeded", "SpotMaxPriceTooLow", "ReservationCapacityExceeded",
		"IncorrectInstanceState", "IncorrectState", "ResourceNotReady", "DependencyViolation", "PendingVerification",
		"OperationNotPermitted", "InvalidPlacementGroup.InUse", terminated,
	}
)

// shortages, passing, absences and mistakes are families of codes by how they begin, end, or what they contain. What is passing is no
// mistake though it is called invalid: the state of something, as of a Capacity Block before its time, or where a list goes on.
var (
	shortages = regexp.MustCompile(`^Insufficient|LimitExceeded$|TooMany`)
	passing   = regexp.MustCompile(`^Invalid[A-Za-z]*State(\.|$)|^Invalid(Next|Pagination)Token$`)
	absences  = regexp.MustCompile(`NotFound(Exception)?$|\.Unknown$|Unavailable$`)
	mistakes  = regexp.MustCompile(`^(Invalid|Missing|Unsupported|Malformed|Unknown|ValidationError)`)
)

// profile is in the message about an instance profile that is not there, or not yet: EC2 has no code of its own for that.
var profile = regexp.MustCompile(`(?i)iam ?instance ?profile`)

// codeOf says what an error code of EC2 means (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html).
// Shortages are quota and stock, whatever their HTTP status, so that no Machine fails because of them (SPEC E2, E12).
// A code that nobody knows is a refusal if the status says so, and may pass.
func codeOf(code string, status int) provider.Code {
	switch {
	case slices.Contains(throttled, code):
		return provider.Throttled
	case slices.Contains(refused, code):
		return provider.Denied
	case code == tooManyTags:
		return provider.Invalid
	case slices.Contains(exhausted, code), shortages.MatchString(code):
		return provider.Exhausted
	case status/100 != 4, code == "", code == "UnknownError":
		return provider.Unknown
	case passing.MatchString(code):
		return provider.Exhausted
	case absences.MatchString(code):
		return provider.NotFound
	case mistakes.MatchString(code):
		return provider.Invalid
	}
	return provider.Exhausted
}

// expired are what EC2 says to credentials that were good for a time.
var expired = []string{"RequestExpired", "ExpiredToken", "ExpiredTokenException"}

// mostSkew is how far a clock may be off: AWS believes no signature that is older, or younger, than that
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html).
const mostSkew = 5 * time.Minute

// skew returns how far the clock here is ahead of that of whoever answered with err; 0 if nobody did.
func skew(err error) time.Duration {
	e, ok := errors.AsType[*smithyhttp.ResponseError](err)
	if !ok || e.Response == nil {
		return 0
	}
	theirs, err := http.ParseTime(e.Response.Header.Get("Date"))
	if err != nil {
		return 0
	}
	return time.Since(theirs).Round(time.Minute)
}

// refusal returns the error code of an answer, or "".
func refusal(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	return ""
}

// coded gives an error of a call its code.
func (d *driver) coded(err error) error {
	if e, ok := errors.AsType[*provider.Error](err); ok {
		return provider.ErrorAfter(e.Code, e.RetryAfter, "EC2 in %s: %w", d.account.Region, err)
	}
	status, after := 0, time.Duration(0)
	if e, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && e.Response != nil {
		status, after = e.HTTPStatusCode(), throttle.After(e.Response.Header)
	}
	api, ok := errors.AsType[smithy.APIError](err)
	switch {
	case status == http.StatusTooManyRequests:
		return provider.ErrorAfter(provider.Throttled, after, "EC2 in %s: HTTP status %d: too many requests", d.account.Region, status)
	case !ok || api.ErrorCode() == "UnknownError":
		return d.unanswered(after, err)
	}
	code := codeOf(api.ErrorCode(), status)
	if code == provider.Invalid && profile.MatchString(api.ErrorMessage()) {
		code = provider.NotFound
	}
	if code == provider.Throttled { // EC2 sends no Retry-After, which the transport would see
		after = max(after, breather)
		d.limiter.Pause(after)
	}
	remedy := ""
	switch off := skew(err); {
	case code != provider.Denied:
	case off > mostSkew:
		remedy = fmt.Sprintf("; the clock here is %s ahead of EC2's: set it", off)
	case off < -mostSkew:
		remedy = fmt.Sprintf("; the clock here is %s behind EC2's: set it", -off)
	case slices.Contains(expired, api.ErrorCode()):
		remedy = fmt.Sprintf("; the session token in secret %s/%s has expired: renew it", d.account.Namespace, d.account.Secret)
	default:
		remedy = fmt.Sprintf("; see to the credentials in secret %s/%s and what they allow", d.account.Namespace, d.account.Secret)
	}
	return provider.ErrorAfter(code, after, "EC2 in %s: %s: %s%s", d.account.Region, api.ErrorCode(), api.ErrorMessage(), remedy)
}

// unanswered is a call that nothing of EC2's answered.
func (d *driver) unanswered(after time.Duration, err error) error {
	if a := d.account; provider.Untrusted(err) {
		return provider.Errorf(provider.Denied, "EC2 in %s: %w; see to key aws_ca_bundle in secret %s/%s", a.Region, err, a.Namespace, a.Secret)
	}
	return provider.ErrorAfter(provider.Unknown, after, "EC2 in %s: %w", d.account.Region, err)
}
