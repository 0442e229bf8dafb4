// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/throttle"
)

// refusal is an error in Azure's own form (https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors).
type refusal struct {
	status        int
	code, message string
	after         time.Duration
	everybody     bool // asks too often, and not of one service alone
}

// Error tells what Azure said.
func (r *refusal) Error() string { return r.code + ": " + r.message }

// refusalOf reads an answer that is none of success. One that is not in Azure's form proves nothing.
func refusalOf(res *http.Response, text []byte) error {
	type said struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Details []struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"details"`
	}
	var answer struct {
		Error said `json:"error"`
		said       // as some services write it, without what is around it
	}
	_ = json.Unmarshal(text, &answer) // what cannot be read has no code
	e := answer.Error
	if e.Code == "" {
		e = answer.said
	}
	after := throttle.After(res.Header)
	if e.Code == "" {
		if res.StatusCode == http.StatusTooManyRequests {
			return provider.ErrorAfter(provider.Throttled, after, "HTTP status %s", res.Status)
		}
		return provider.ErrorAfter(provider.Unknown, after, "HTTP status %s and no error of Azure's: see what answers in its place, such as a proxy", res.Status)
	}
	if len(e.Details) > 0 && slices.Contains(vague, e.Code) && e.Details[0].Code != "" {
		e.Code, e.Message = e.Details[0].Code, e.Details[0].Message
	}
	everybody := e.Code == "SubscriptionRequestsThrottled" || spent(res.Header)
	return &refusal{res.StatusCode, e.Code, shorten(e.Message), after, everybody}
}

// allowance are the headers that say how much of what Azure itself allows, before any of its services, is left
// (https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling#remaining-requests).
var allowance = regexp.MustCompile(`(?i)^x-ms-ratelimit-remaining-subscription-(global-)?(reads|writes|deletes)$`)

func spent(header http.Header) bool {
	for name := range header {
		if allowance.MatchString(name) && header.Get(name) == "0" {
			return true
		}
	}
	return false
}

// vague are codes that only say that there is another one.
var vague = []string{"BadRequest", "Conflict", "DeploymentFailed", "MultipleErrorsOccurred", "InternalError", "InvalidTemplateDeployment"}

var (
	throttled = []string{"TooManyRequests", "SubscriptionRequestsThrottled", "ResourceRequestsThrottled", "OperationThrottled", "RequestThrottled", "ServerBusy"}
	denied    = regexp.MustCompile(`^(AuthorizationFailed|LinkedAuthorizationFailed|LinkedAccessCheckFailed|AuthorizationPermissionMismatch|Forbidden|` +
		`ScopeLocked|RequestDisallowedBy\w+|\w*AuthenticationToken\w*|AuthenticationFailed\w*|InvalidSubscriptionId|SubscriptionNotFound|` +
		`\w*DisabledSubscription|SubscriptionNotRegistered\w*|InvalidSubscriptionRegistrationState|FailedIdentityOperation|KeyVault\w*Forbidden|` +
		`MissingSubscriptionRegistration|MissingRegistrationForLocation|ResourcePurchaseValidationFailed|MarketplacePurchaseEligibilityFailed)$`)
	// shortages are stock, quota and addresses, whatever their HTTP status, so that no Machine fails because of them (SPEC E2).
	shortages = regexp.MustCompile(`^(SkuNotAvailable|NotAvailableForSubscription|AllocationFailed|ZonalAllocationFailed|` +
		`Overconstrained\w*AllocationRequest|ResourceGroupNotFound|\w*Quota\w*|\w*LimitReached|\w*LimitExceeded|\w*CountExceeded|\w*Insufficient\w*|` +
		`SubnetIsFull|SubnetFull|NoIPsAvailable|\w*CapacityExceeded|CapacityReservation\w*|ZoneNotAvailable\w*|SpotPriceTooLow|MaxSpotPriceTooLow|LowPriority\w*|\w*NotEnough\w*|AvailabilitySetFull)$`)
	// busy are refusals because of something that is under way: perhaps this very thing. Networks say so with the status of those who ask too
	// often (https://github.com/hashicorp/terraform/issues/7986), who these are not.
	busy = regexp.MustCompile(`^(AnotherOperationInProgress|ConcurrentRequestConflict|OperationPreempted|PreemptedByAnotherOperation|` +
		`RetryableError\w*|ReferencedResourceNotProvisioned|Canceled\w*)$`)
	// unasked are answers that say nothing about what was asked for: they come now and then, and to a version of the API that is not there.
	unasked  = regexp.MustCompile(`^(NoRegisteredProviderFound|InvalidApiVersionParameter|InvalidResourceType|UnsupportedApiVersion|\w*Timeout|\w*TimedOut)$`)
	absences = regexp.MustCompile(`NotFound$|^InvalidResourceReference$|^ParentResourceNotFound$`)
	// inUse are what is said of what still hangs on something else; a network interface is kept for three minutes for an instance that failed.
	inUse = regexp.MustCompile(`^(NicReservedForAnotherV[mM]|NicInUse|PublicIPAddressCannotBeDeleted|InUse\w*|\w+InUse|DiskAttached\w*|OperationNotAllowed)$`)
	quota = regexp.MustCompile(`(?i)quota|exceed\w* .*(limit|cores)|capacity`)
	// wrong are what no repetition mends: a Machine fails by these alone.
	wrong = regexp.MustCompile(`^(Invalid\w*|BadRequest|\w*NotSupported\w*|\w*Unsupported\w*|\w*NotPermitted\w*|\w*TooLarge|\w*TooLong|Missing\w*Parameter\w*)$`)
	// unlocked is what a subscription has to be given before: a person's act.
	unlocked = regexp.MustCompile(`(?i)feature is not enabled for this subscription|not registered for`)
)

// passing are the statuses of refusals that may pass.
var passing = []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusGone, http.StatusLocked}

// codeOf says what an error of Azure's means. Only what is known to say that a request is wrong is Invalid; a conflict, or what nobody
// knows, may pass. A request that took too long may have been done.
func codeOf(status int, code, message string) provider.Code {
	switch {
	case status == http.StatusTooManyRequests && !busy.MatchString(code), slices.Contains(throttled, code):
		return provider.Throttled
	case status == http.StatusUnauthorized, denied.MatchString(code):
		return provider.Denied
	case shortages.MatchString(code), code == "OperationNotAllowed" && quota.MatchString(message):
		return provider.Exhausted
	case busy.MatchString(code), unasked.MatchString(code), status == http.StatusRequestTimeout, status/100 != 4:
		return provider.Unknown
	case inUse.MatchString(code):
		return provider.Exhausted
	case status == http.StatusForbidden:
		return provider.Denied
	case status == http.StatusNotFound, absences.MatchString(code):
		return provider.NotFound
	case unlocked.MatchString(message):
		return provider.Denied
	case !slices.Contains(passing, status) && wrong.MatchString(code):
		return provider.Invalid
	}
	return provider.Exhausted
}

// gone reports whether Azure's own answer is that the resource which was asked for does not exist. That its group does not is no answer
// about it: a Secret may name the wrong one.
func gone(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status == http.StatusNotFound && (r.code == "ResourceNotFound" || r.code == "NotFound")
}

// unlessGone returns an error unless it says that.
func unlessGone(err error) error {
	if gone(err) {
		return nil
	}
	return err
}

// groupless reports whether the resource group itself does not exist.
func groupless(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status == http.StatusNotFound && r.code == "ResourceGroupNotFound"
}

// refused reports whether Azure refused with a status.
func refused(err error, status int) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status == status
}

// meant returns what an error of a request means, and after which time to ask again.
func meant(err error) (provider.Code, time.Duration) {
	if r, ok := errors.AsType[*refusal](err); ok {
		return codeOf(r.status, r.code, r.message), r.after
	}
	if e, ok := errors.AsType[*provider.Error](err); ok {
		return e.Code, e.RetryAfter
	}
	return provider.Unknown, 0
}

// coded gives an error of a call its code.
func (d *driver) coded(err error) error {
	where := "Azure in " + d.location
	if e, ok := errors.AsType[*provider.Error](err); ok {
		return provider.ErrorAfter(e.Code, e.RetryAfter, "%s: %w", where, err)
	}
	if login, ok := errors.AsType[*azidentity.AuthenticationFailedError](err); ok {
		return d.loginRefused(login)
	}
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return provider.Errorf(provider.Unknown, "%s: %w", where, err)
	}
	code, remedy := codeOf(r.status, r.code, r.message), ""
	if code == provider.Denied {
		remedy = "; see to the credentials in secret " + d.account.Namespace + "/" + d.account.Secret + " and what they allow"
	}
	return provider.ErrorAfter(code, r.after, "%s: %w%s", where, err, remedy)
}

// breather is how long nobody asks after an answer that it was asked too often and that does not say until when.
const breather = time.Second

// loginRefused is a token that was not given. What identifies the one request of it changes each time and helps nobody here.
func (d *driver) loginRefused(err *azidentity.AuthenticationFailedError) error {
	secret := d.account.Namespace + "/" + d.account.Secret
	res := err.RawResponse
	if res == nil {
		return provider.Errorf(provider.Unknown, "log in to Azure with secret %s: no answer: %s", secret, shorten(firstOf(urls.ReplaceAllString(err.Error(), "it"))))
	}
	after := throttle.After(res.Header)
	var answer struct {
		Code string `json:"error"`
		Text string `json:"error_description"`
	}
	if text, err := runtime.Payload(res); err != nil || json.Unmarshal(text, &answer) != nil || answer.Code == "" {
		return provider.ErrorAfter(provider.Unknown, after, "log in to Azure with secret %s: HTTP status %s", secret, res.Status)
	}
	said := shorten(firstOf(answer.Text))
	switch {
	case res.StatusCode == http.StatusTooManyRequests:
		d.limiter.Pause(max(after, breather))
		return provider.ErrorAfter(provider.Throttled, after, "log in to Azure with secret %s: %s", secret, said)
	case res.StatusCode/100 != 4, answer.Code == "temporarily_unavailable":
		return provider.ErrorAfter(provider.Unknown, after, "log in to Azure with secret %s: %s", secret, said)
	}
	return provider.Errorf(provider.Denied, "log in to Azure with secret %s: %s: %s; mend it", secret, answer.Code, said)
}

// urls is what a library below asked for, with what helps nobody.
var urls = regexp.MustCompile(`"?https://[^\s"]*"?`)

var trace = regexp.MustCompile(`(?s)(Trace ID|Correlation ID|Timestamp):.*`)

func firstOf(text string) string { return trace.ReplaceAllString(text, "") }

// about says which field an error is about. That nobody is let in with these credentials is about none.
func (d *driver) about(p *field.Path, err error) error {
	if err == nil {
		return nil
	}
	strangers := refused(err, http.StatusForbidden)
	err = d.coded(err)
	e, ok := errors.AsType[*provider.Error](err)
	if !ok || e.Code == provider.Denied && !strangers {
		return err
	}
	return provider.ErrorAfter(e.Code, e.RetryAfter, "%s: %w", p, err)
}

// shorten keeps messages fit for an Event.
func shorten(text string) string {
	const most = 400
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
