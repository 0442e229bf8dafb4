// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/arm"
)

func TestCodesOfErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status        int
		code, message string
		want          provider.Code
	}{
		{409, "SkuNotAvailable", "", provider.Exhausted},
		{409, "AllocationFailed", "", provider.Exhausted},
		{409, "ZonalAllocationFailed", "", provider.Exhausted},
		{409, "OverconstrainedAllocationRequest", "", provider.Exhausted},
		{409, "OverconstrainedZonalAllocationRequest", "", provider.Exhausted},
		{409, "QuotaExceeded", "", provider.Exhausted},
		{400, "QuotaExceeded", "", provider.Exhausted},
		{409, "OperationNotAllowed", "Operation could not be completed as it results in exceeding approved standardDSv3Family Cores quota.", provider.Exhausted},
		{400, "PublicIPCountLimitReached", "", provider.Exhausted},
		{400, "SubnetIsFull", "", provider.Exhausted},
		{404, "ResourceGroupNotFound", "", provider.Exhausted},
		{409, "LowPriorityQuotaExceeded", "", provider.Exhausted},
		{429, "OperationNotAllowed", "", provider.Throttled},
		{429, "TooManyRequests", "", provider.Throttled},
		{409, "SubscriptionRequestsThrottled", "", provider.Throttled},
		{401, "ExpiredAuthenticationToken", "", provider.Denied},
		{401, "InvalidAuthenticationTokenTenant", "", provider.Denied},
		{403, "AuthorizationFailed", "", provider.Denied},
		{403, "LinkedAuthorizationFailed", "", provider.Denied},
		{403, "RequestDisallowedByPolicy", "", provider.Denied},
		{403, "SomethingNew", "", provider.Denied},
		{404, "SubscriptionNotFound", "", provider.Denied},
		{409, "ReadOnlyDisabledSubscription", "", provider.Denied},
		{409, "MissingSubscriptionRegistration", "", provider.Denied},
		{409, "ScopeLocked", "", provider.Denied},
		{400, "ResourcePurchaseValidationFailed", "", provider.Denied},
		{404, "ResourceNotFound", "", provider.NotFound},
		{404, "ImageNotFound", "", provider.NotFound},
		{400, "InvalidResourceReference", "", provider.NotFound},
		{400, "InvalidParameter", "", provider.Invalid},
		{400, "BadRequest", "", provider.Invalid},
		{400, "VMSizeIsNotPermittedToEnableAcceleratedNetworking", "", provider.Invalid},
		{400, "SomethingNew", "", provider.Exhausted},
		{400, "VMSizeNotSupported", "", provider.Invalid},
		{400, "NoRegisteredProviderFound", "", provider.Unknown},
		{400, "InvalidApiVersionParameter", "", provider.Unknown},
		{400, "InvalidResourceType", "", provider.Unknown},
		{408, "RequestTimeout", "", provider.Unknown},
		{408, "SomethingNew", "", provider.Unknown},
		{400, "FailedIdentityOperation", "", provider.Denied},
		{400, "KeyVaultAccessForbidden", "", provider.Denied},
		{400, "SubscriptionNotRegisteredForFeature", "", provider.Denied},
		{400, "InvalidSubscriptionRegistrationState", "", provider.Denied},
		{400, "InvalidParameter", "The property 'securityProfile.encryptionAtHost' is not valid because the 'Microsoft.Compute/EncryptionAtHost' feature is not enabled for this subscription.", provider.Denied},
		{400, "SubnetNotInProvisioningSucceededState", "", provider.Exhausted},
		{415, "UnsupportedMediaType", "", provider.Invalid},
		{409, "AnotherOperationInProgress", "", provider.Unknown},
		{409, "OperationPreempted", "", provider.Unknown},
		{409, "RetryableErrorDueToAnotherOperation", "", provider.Unknown},
		{429, "RetryableError", "", provider.Unknown},
		{429, "ReferencedResourceNotProvisioned", "", provider.Unknown},
		{400, "NicReservedForAnotherVm", "", provider.Exhausted},
		{400, "NicInUse", "", provider.Exhausted},
		{400, "PublicIPAddressCannotBeDeleted", "", provider.Exhausted},
		{409, "SomethingNew", "", provider.Exhausted},
		{412, "PreconditionFailed", "", provider.Exhausted},
		{500, "InternalServerError", "", provider.Unknown},
		{503, "ServerTimeout", "", provider.Unknown},
		{500, "AllocationFailed", "", provider.Exhausted},
	} {
		if got := codeOf(c.status, c.code, c.message); got != c.want {
			t.Errorf("%d %s = %v, want %v", c.status, c.code, got, c.want)
		}
	}
}

// An error is read in all forms that Azure has for it, and what is in none proves nothing.
func TestFormsOfErrors(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"error":{"code":"A","message":"b  c"}}`: "A: b c",
		`{"code":"A","message":"b"}`:              "A: b",
		`{"error":{"code":"BadRequest","message":"x","details":[{"code":"A","message":"b"}]}}`: "A: b",
		`{"error":{"code":"A","message":"b","details":[{"code":"C","message":"d"}]}}`:          "A: b",
		`{"error":{"code":"Conflict","message":"b","details":[]}}`:                             "Conflict: b",
	} {
		err := refusalOf(&http.Response{StatusCode: 400, Status: "400 Bad Request"}, []byte(body))
		if fmt.Sprint(err) != want {
			t.Errorf("%s is read as %v, want %s", body, err, want)
		}
	}
	for _, body := range []string{"", "null", "[]", `"x"`, `{"error":"x"}`, `{"message":"gone"}`, `{"error":{"message":"x"}}`, "<html>"} {
		if err := refusalOf(&http.Response{StatusCode: 404, Status: "404 Not Found"}, []byte(body)); gone(err) || provider.CodeOf(err) != provider.Unknown {
			t.Errorf("%q is read as %v", body, err)
		}
	}
}

func TestClientThatIsNotLetInIsNamed(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{Secret: "another"}
	d, _ := wired(t, cloud, account())
	_, err := d.List(t.Context())
	text := fmt.Sprint(err)
	if provider.CodeOf(err) != provider.Denied || !strings.Contains(text, "machines/azure-cloud-credentials") || !strings.Contains(text, "AADSTS7000215") {
		t.Errorf("List = %v (%v)", err, provider.CodeOf(err))
	}
	if strings.Contains(text, secret) || strings.Contains(text, "Trace ID") || strings.Contains(text, "https://") {
		t.Errorf("it tells too much, or what is another each time: %v", err)
	}
	a := account() // the Secret was changed: the account is opened anew
	a.Credentials["azure_client_secret"] = []byte("another")
	d, _ = wired(t, cloud, a)
	if _, err := d.List(t.Context()); err != nil {
		t.Errorf("List = %v", err)
	}
}

func TestRightThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	d, _ := wired(t, &arm.Cloud{Deny: "VirtualMachinesClient.NewListPager"}, account())
	_, err := d.List(t.Context())
	if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "AuthorizationFailed") || !strings.Contains(err.Error(), "machines/azure-cloud-credentials") {
		t.Errorf("List = %v", err)
	}
}

// That a resource group is not there is no word about an instance (G5): a Secret may name the wrong one. Only of what was recorded there
// it is the last one.
func TestGroupThatIsNotThereIsNoAbsence(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	r, in, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	cloud.RemoveGroup()
	for what, call := range map[string]func() error{
		"List":         func() error { _, err := d.List(t.Context()); return err },
		"Find":         func() error { _, err := d.Find(t.Context(), r); return err },
		"Find by name": func() error { _, err := d.Find(t.Context(), provider.Ref{Name: r.Name}); return err },
		"Delete":       func() error { return d.Delete(t.Context(), r) },
		"Update":       func() error { return d.Update(t.Context(), r, map[string]string{"a": "b"}) },
		"PowerCycle":   func() error { return d.PowerCycle(t.Context(), r) },
	} {
		if err := call(); err == nil || provider.CodeOf(err) == provider.NotFound || !strings.Contains(err.Error(), "ResourceGroupNotFound") {
			t.Errorf("%s = %v (%v)", what, err, provider.CodeOf(err))
		}
	}
	r.ProviderID = in.ProviderID
	if found, err := d.Find(t.Context(), r); err != nil || len(found) != 0 {
		t.Errorf("Find of what was recorded there = %v, %v", found, err)
	}
	if err := d.Delete(t.Context(), r); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("Delete of what was recorded there = %v", err)
	}
}

// Of all that is not found only the resource that was asked for is absent.
func TestWhatIsAnAbsence(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{"ResourceNotFound": true, "NotFound": true, "ResourceGroupNotFound": false, "SubscriptionNotFound": false, "ParentResourceNotFound": false, "InvalidResourceType": false} {
		if got := gone(fmt.Errorf("get: %w", &refusal{status: 404, code: code})); got != want {
			t.Errorf("%s is an absence: %v", code, got)
		}
	}
	if gone(&refusal{status: 400, code: "NotFound"}) || gone(nil) {
		t.Error("another status is an absence")
	}
}

// That something else was not found is no word about an instance, whoever asked for what (G5).
func TestNotFoundOfSomethingElseIsNoAbsence(t *testing.T) {
	t.Parallel()
	d, w := wired(t, &arm.Cloud{}, account())
	w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
		if op == "login" {
			return next()
		}
		return says(404, "application/json", errorJSON("ParentResourceNotFound", "Can not perform requested operation on nested resource."))(nil)
	})
	r := provider.Ref{UID: "uid-1", Name: "worker-a"}
	for what, call := range map[string]func() error{
		"List":          func() error { _, err := d.List(t.Context()); return err },
		"Find":          func() error { _, err := d.Find(t.Context(), r); return err },
		"Delete":        func() error { return d.Delete(t.Context(), r) },
		"Update":        func() error { return d.Update(t.Context(), r, map[string]string{"a": "b"}) },
		"PowerCycle":    func() error { return d.PowerCycle(t.Context(), r) },
		"InstanceTypes": func() error { _, err := d.InstanceTypes(t.Context()); return err },
	} {
		if err := call(); provider.CodeOf(err) != provider.Unknown || !strings.Contains(fmt.Sprint(err), "ParentResourceNotFound") {
			t.Errorf("%s = %v (%v)", what, err, provider.CodeOf(err))
		}
	}
}

// An id is a path and nothing else, whoever told it: no Azure is asked what it does not name (RELIABILITY §4).
func TestIDsThatAreNone(t *testing.T) {
	t.Parallel()
	d, w := wired(t, &arm.Cloud{}, account())
	for _, id := range []string{"", "/", "x", "/subscriptions/../x", "/a?b", "/a#b", "/a/%2e", "//example.com/x", "/a b", "@example.com/", "/a/"} {
		if err := d.do(t.Context(), ask{method: http.MethodGet, id: id}, nil); provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), "is no id") {
			t.Errorf("%q: %v", id, err)
		}
	}
	if sent := w.since(0); len(sent) > 0 {
		t.Errorf("asked for %v", sent)
	}
	for _, id := range []string{"azure:///subscriptions/" + arm.Subscription + "/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/../x", "azure:///x", "azure:///subscriptions/00000000-0000-4000-8000-000000000000/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/x", "aws:///z/i-1", "azure://" + arm.ID(arm.Instances, "a?b")} {
		if all := d.idsOf(provider.Ref{ProviderID: id}); len(all) > 0 {
			t.Errorf("%s leads to %v", id, all)
		}
	}
}
