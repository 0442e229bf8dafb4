// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/throttle"
	"github.com/machine-functions/machine-functions/test/ec2"
)

// actionOf reads what a request asks for.
func actionOf(r *http.Request) string {
	b, _ := io.ReadAll(r.Body) // a request of this process
	r.Body = io.NopCloser(bytes.NewReader(b))
	form, _ := url.ParseQuery(string(b))
	return form.Get("Action")
}

// faults are what may become of a call on its way, each with whether EC2 did it.
var faults = map[string]struct {
	effect bool
	answer func(effect *http.Response) (*http.Response, error)
	names  string
	code   provider.Code
}{
	"the answer is lost": {true, func(*http.Response) (*http.Response, error) { return nil, errors.New("connection reset by peer") }, "connection reset", provider.Unknown},
	"the answer is cut":  {true, cutBody, "EOF", provider.Unknown},
	"the call is lost":   {false, func(*http.Response) (*http.Response, error) { return nil, errors.New("i/o timeout") }, "i/o timeout", provider.Unknown},
	"failed after":       {true, page(500, "text/xml", errorXML("InternalError", "An internal error has occurred")), "InternalError", provider.Unknown},
	"unavailable":        {false, page(503, "text/xml", errorXML("Unavailable", "The server is overloaded")), "overloaded", provider.Unknown},
	"too many requests":  {false, page(503, "text/xml", errorXML("RequestLimitExceeded", "Request limit exceeded.")), "RequestLimitExceeded", provider.Throttled},
	"a gateway's haste":  {false, page(429, "text/plain", "slow down"), "429", provider.Throttled},
	"a proxy's page":     {false, page(502, "text/html; charset=utf-8", "<html><p>Bad Gateway</html>"), "proxy", provider.Unknown},
	"a login page":       {false, page(200, "text/html", "<html><br>Log in"), "proxy", provider.Unknown},
	"not even XML":       {true, page(200, "text/xml", "ok"), "", provider.Unknown},
	"no content":         {true, page(204, "", ""), "proxy", provider.Unknown},
	"a proxy's copy":     {true, page(203, "text/xml", "<copy/>"), "proxy", provider.Unknown},
}

func errorXML(code, message string) string {
	return "<Response><Errors><Error><Code>" + code + "</Code><Message>" + message + "</Message></Error></Errors><RequestID>5a71e8e6</RequestID></Response>"
}

func page(status int, kind, body string) func(*http.Response) (*http.Response, error) {
	return func(*http.Response) (*http.Response, error) {
		return &http.Response{Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func cutBody(res *http.Response) (*http.Response, error) {
	b, err := io.ReadAll(res.Body)
	res.Body, res.ContentLength = io.NopCloser(strings.NewReader(string(b[:len(b)/2]))), -1
	return res, err
}

// once lets the n-th call of an action fail.
func once(w *wire, action string, n int, f string) {
	fault := faults[f]
	var mu sync.Mutex
	w.set(func(a string, next func() (*http.Response, error)) (*http.Response, error) {
		mu.Lock()
		if a == action {
			n--
		}
		hit := a == action && n == 0
		mu.Unlock()
		if !hit {
			return next()
		}
		var res *http.Response
		if fault.effect {
			var err error
			if res, err = next(); err != nil {
				return nil, err
			}
		}
		return fault.answer(res)
	})
}

// Whatever becomes of whichever call: one instance, then none.
func TestNoFaultMakesTwoInstancesOrLeavesOne(t *testing.T) {
	t.Parallel()
	for f := range faults {
		for _, action := range []string{"RunInstances", "DescribeInstances", "CreateTags", "RegisterTargets", "TerminateInstances", "DeregisterTargets", "DescribeVpcs"} {
			t.Run(f+" of "+action, func(t *testing.T) {
				t.Parallel()
				cloud := &ec2.Cloud{Lag: 5 * time.Millisecond, Boot: 5 * time.Millisecond, Shutdown: 5 * time.Millisecond}
				region := serve(t, cloud)
				d, w := region.wired(t, region.account())
				resolved, err := d.Resolve(t.Context(), spec(map[string]any{"loadBalancers": []any{map[string]any{"name": "cluster-8trtb-rlgsx-int", "type": "network"}}}))
				must(t, err)
				r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
				once(w, action, 1, f)
				i, err := proceed(t.Context(), d, r, resolved)
				must(t, err)
				if all := cloud.Live(); len(all) != 1 || all[i.ID] == nil {
					t.Fatalf("%d instances", len(all))
				}
				r.ID, r.ProviderID = i.ID, i.ProviderID
				for begin := time.Now(); ; time.Sleep(time.Millisecond) {
					err := d.Delete(t.Context(), r)
					if provider.CodeOf(err) == provider.NotFound {
						break
					}
					if time.Since(begin) > 20*time.Second {
						t.Fatalf("Delete = %v", err)
					}
				}
				if all := cloud.Live(); len(all) != 0 || len(cloud.Targets()) != 0 {
					t.Fatalf("%d instances, targets %v are left", len(all), cloud.Targets())
				}
			})
		}
	}
}

// That EC2 is asked too often holds for everybody who uses the key.
func TestHasteOfOnePausesAll(t *testing.T) {
	t.Parallel()
	region := serve(t, &ec2.Cloud{})
	a := region.account()
	d, w := region.wired(t, a)
	once(w, "DescribeInstances", 1, "too many requests")
	_, err := d.List(t.Context())
	if e, ok := errors.AsType[*provider.Error](err); !ok || e.Code != provider.Throttled || e.RetryAfter < breather {
		t.Errorf("List = %v, want Throttled for %v", err, breather)
	}
	other, _ := region.wired(t, a)
	ctx, cancel := context.WithTimeout(t.Context(), breather/2)
	defer cancel()
	if err := other.limiter.Turn(ctx); provider.CodeOf(err) != provider.Throttled {
		t.Errorf("a turn of another driver with this key = %v, want Throttled", err)
	}
}

// An access key's id is no secret: whoever knows it, and has a cloud of his own that says so, makes nobody else wait (RELIABILITY §4).
func TestHasteOfAnotherEndpointPausesNobody(t *testing.T) {
	t.Parallel()
	mine, theirs := serve(t, &ec2.Cloud{}), serve(t, &ec2.Cloud{})
	a, b := mine.account(), theirs.account()
	b.Namespace, b.Region = "machines-b", a.Region
	b.Credentials["aws_access_key_id"] = a.Credentials["aws_access_key_id"]
	d, w := theirs.wired(t, b)
	once(w, "DescribeInstances", 1, "too many requests")
	if _, err := d.List(t.Context()); provider.CodeOf(err) != provider.Throttled {
		t.Fatalf("List = %v, want Throttled", err)
	}
	other, _ := mine.wired(t, a)
	ctx, cancel := context.WithTimeout(t.Context(), breather/2)
	defer cancel()
	must(t, other.limiter.Turn(ctx))
}

func TestFaultIsCodedAndNamesItsCause(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	region := serve(t, cloud)
	for f, fault := range faults {
		d, w := region.wired(t, region.account())
		once(w, "DescribeInstances", 1, f)
		_, err := d.List(t.Context())
		if provider.CodeOf(err) != fault.code || !strings.Contains(fmt.Sprint(err), fault.names) {
			t.Errorf("%s: List = %v (%v), want %v naming %q", f, err, provider.CodeOf(err), fault.code, fault.names)
		}
		if _, ok := errors.AsType[*provider.Error](err); !ok {
			t.Errorf("%s: no code", f)
		}
		if strings.Contains(fmt.Sprint(err), "canary") {
			t.Errorf("%s tells a secret: %v", f, err)
		}
	}
}

// A list that is cut off is no list.
func TestPageThatDoesNotComeIsAnError(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Page: 1}
	region := serve(t, cloud)
	d, w := region.wired(t, region.account())
	for _, name := range []string{"a", "b", "c"} {
		_, _, err := create(t, d, name, spec(nil))
		must(t, err)
	}
	for f := range faults {
		once(w, "DescribeInstances", 3, f)
		if all, err := d.List(t.Context()); err == nil {
			t.Errorf("%s: List = %d instances", f, len(all))
		}
	}
}

func TestCodesOfErrors(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]struct {
		status int
		code   provider.Code
	}{
		"InsufficientInstanceCapacity":                      {500, provider.Exhausted},
		"InsufficientFreeAddressesInSubnet":                 {400, provider.Exhausted},
		"VcpuLimitExceeded":                                 {400, provider.Exhausted},
		"MaxSpotInstanceCountExceeded":                      {400, provider.Exhausted},
		"RequestLimitExceeded":                              {503, provider.Throttled},
		"Throttling":                                        {400, provider.Throttled},
		"AuthFailure":                                       {401, provider.Denied},
		"UnauthorizedOperation":                             {403, provider.Denied},
		"RequestExpired":                                    {400, provider.Denied},
		"InvalidSecurity.RequestHasExpired":                 {400, provider.Denied},
		"InvalidHostState":                                  {400, provider.Exhausted},
		"InvalidCapacityReservationState.PendingActivation": {400, provider.Exhausted}, // a Capacity Block that begins later
		"InvalidInstanceState":                              {400, provider.Exhausted},
		"InvalidNextToken":                                  {400, provider.Exhausted},
		"InvalidPaginationToken":                            {400, provider.Exhausted},
		"InvalidCapacityReservationState.Unavailable":       {503, provider.Unknown},
		"InvalidSubnetID.NotFound":                          {400, provider.NotFound},
		"InvalidCapacityReservationIdNotFoundException":     {400, provider.NotFound},
		"InvalidAMIID.Unavailable":                          {400, provider.NotFound},
		"InvalidParameterValue":                             {400, provider.Invalid},
		"Unsupported":                                       {400, provider.Invalid},
		"TagLimitExceeded":                                  {400, provider.Invalid}, // of one thing, which nobody raises
		"IdempotentInstanceTerminated":                      {400, provider.Exhausted},
		"SomethingNew":                                      {400, provider.Exhausted},
		"InternalError":                                     {500, provider.Unknown},
		"UnknownError":                                      {404, provider.Unknown},
	} {
		if got := codeOf(code, want.status); got != want.code {
			t.Errorf("%s = %v, want %v", code, got, want.code)
		}
	}
}

// An instance profile that was just made is not known everywhere, and one that is made anew is away for a moment: EC2 calls both a
// parameter that is invalid. No Machine fails for it, as for no other thing that is missing (SPEC S22).
func TestInstanceProfileThatIsNotThereIsNoMistake(t *testing.T) {
	t.Parallel()
	d := &driver{account: provider.Account{Region: "z"}}
	for message, want := range map[string]provider.Code{
		"Value (worker) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name":   provider.NotFound,
		"Value (arn:aws:x) for parameter iamInstanceProfile.arn is invalid. Invalid IAM Instance Profile ARN":  provider.NotFound,
		"Value (m9.huge) for parameter instanceType is invalid. Instance profile of another kind is no reason": provider.Invalid,
	} {
		err := d.coded(&smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusBadRequest}},
			Err:      &smithy.GenericAPIError{Code: "InvalidParameterValue", Message: message},
		})
		if got := provider.CodeOf(err); got != want {
			t.Errorf("%s: %v, want %v", message, got, want)
		}
	}
}

func TestKeysThatAreNotLetInAreNamed(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Key: "AKIAOTHER"}
	region := serve(t, cloud)
	d, _ := region.wired(t, region.account())
	_, err := d.List(t.Context())
	if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "machines/aws-cloud-credentials") || strings.Contains(err.Error(), "canary") {
		t.Errorf("List = %v", err)
	}
	a := region.account() // the Secret was changed: the account is opened anew
	a.Credentials["aws_access_key_id"] = []byte("AKIAOTHER")
	d, _ = region.wired(t, a)
	if _, err := d.List(t.Context()); err != nil {
		t.Errorf("List = %v", err)
	}
}

// What EC2 says to a signature of another time is the same for a clock that is wrong, and for a token whose time is over. Which
// of them it is tells the answer's date.
func TestSignatureOfAnotherTimeNamesTheClock(t *testing.T) {
	t.Parallel()
	region := serve(t, &ec2.Cloud{})
	for _, tt := range []struct {
		code  string
		off   time.Duration
		names string
	}{
		{"RequestExpired", 20 * time.Minute, "the clock here is 20m0s ahead of EC2's"},
		{"AuthFailure", -2 * time.Hour, "the clock here is 2h0m0s behind EC2's"},
		{"InvalidSecurity.RequestHasExpired", 20 * time.Minute, "the clock here is 20m0s ahead of EC2's"},
		{"RequestExpired", 0, "the session token in secret machines/aws-cloud-credentials has expired"},
		{"AuthFailure", 0, "see to the credentials in secret machines/aws-cloud-credentials"},
	} {
		d, w := region.wired(t, region.account())
		w.set(func(string, func() (*http.Response, error)) (*http.Response, error) {
			res, err := page(400, "text/xml", errorXML(tt.code, "Request has expired."))(nil)
			res.Header.Set("Date", time.Now().Add(-tt.off).UTC().Format(http.TimeFormat))
			return res, err
		})
		_, err := d.List(t.Context())
		if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), tt.names) {
			t.Errorf("%s with a clock that is %v off: %v, want %q", tt.code, tt.off, err, tt.names)
		}
	}
}

func TestSecretThatLacksKeys(t *testing.T) {
	t.Parallel()
	good := serve(t, &ec2.Cloud{}).account()
	for _, key := range []string{"aws_access_key_id", "aws_secret_access_key"} {
		a := good
		a.Credentials = map[string][]byte{"aws_access_key_id": []byte("a"), "aws_secret_access_key": []byte("b")}
		delete(a.Credentials, key)
		_, err := open(a, nil)
		if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "machines/aws-cloud-credentials") {
			t.Errorf("Open = %v, want Denied naming %s", err, key)
		}
	}
}

// Nobody mends the spec where the Secret is too long: the Machine waits for it, and does not fail.
func TestUserDataThatIsTooLongIsNoInvalidSpec(t *testing.T) {
	t.Parallel()
	region := serve(t, &ec2.Cloud{})
	a := region.account()
	size := 16<<10 + 1
	a.UserData = func(context.Context, string) (map[string][]byte, string, error) {
		return map[string][]byte{"userData": bytes.Repeat([]byte("x"), size)}, "1", nil
	}
	d, _ := region.wired(t, a)
	_, err := d.Resolve(t.Context(), spec(nil))
	if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "machines/worker-user-data: 16385 bytes") {
		t.Errorf("Resolve = %v", err)
	}
	size--
	if _, err := d.Resolve(t.Context(), spec(nil)); err != nil {
		t.Errorf("Resolve = %v", err)
	}
}

func TestUserDataThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	region := serve(t, &ec2.Cloud{})
	d, _ := region.wired(t, region.account())
	for name, want := range map[string]provider.Code{"absent": provider.Exhausted, "unread": provider.Unknown} {
		_, err := d.Resolve(t.Context(), spec(map[string]any{"userDataSecret": map[string]any{"name": name}}))
		if provider.CodeOf(err) != want || !strings.Contains(err.Error(), "machines/"+name) {
			t.Errorf("Resolve = %v (%v), want %v", err, provider.CodeOf(err), want)
		}
	}
}

// An answer that does not end is read to its limit, and proves nothing: every client goes through the transport that sees to it.
func TestAnswersThatDoNotEnd(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusBadRequest, http.StatusInternalServerError} {
		d, err := open(provider.Account{Region: "us-east-1", ClusterID: "c", Credentials: map[string][]byte{"aws_access_key_id": []byte("a"), "aws_secret_access_key": []byte("b")}}, nil)
		must(t, err)
		const size = 8 << 20
		body := strings.NewReader("<Response><Errors><Error><Code>" + strings.Repeat("x", size))
		only, _ := d.http.Transport.(apiOnly)
		limited, _ := only.next.(throttle.Transport)
		limited.Base = roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"text/xml"}}, Body: io.NopCloser(body)}, nil
		})
		d.http.Transport = apiOnly{limited}
		_, err = d.ec2.DescribeInstances(t.Context(), nil)
		if err = d.coded(err); provider.CodeOf(err) != provider.Unknown || body.Len() == int(body.Size()) || body.Len() < size-2<<20 {
			t.Errorf("%d: %d bytes of %d are unread, error %.300v", status, body.Len(), size, err)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
