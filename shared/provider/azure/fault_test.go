// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/throttle"
	"github.com/machine-functions/machine-functions/test/arm"
)

// faults are what may become of a call on its way, each with whether Azure did it.
var faults = map[string]struct {
	effect bool
	answer func(effect *http.Response) (*http.Response, error)
	names  string
	code   provider.Code
}{
	"the answer is lost":  {true, func(*http.Response) (*http.Response, error) { return nil, errors.New("connection reset by peer") }, "connection reset", provider.Unknown},
	"the answer is cut":   {true, cutBody, "", provider.Unknown},
	"the call is lost":    {false, func(*http.Response) (*http.Response, error) { return nil, errors.New("i/o timeout") }, "i/o timeout", provider.Unknown},
	"failed after":        {true, says(500, "application/json", errorJSON("InternalServerError", "Encountered internal server error.")), "InternalServerError", provider.Unknown},
	"unavailable":         {false, says(503, "application/json", errorJSON("ServiceUnavailable", "The service is unavailable.")), "ServiceUnavailable", provider.Unknown},
	"too many requests":   {false, says(429, "application/json", errorJSON("TooManyRequests", "Number of requests exceeded the limit.")), "TooManyRequests", provider.Throttled},
	"a gateway's haste":   {false, says(429, "text/plain", "slow down"), "429", provider.Throttled},
	"under way":           {false, says(409, "application/json", errorJSON("AnotherOperationInProgress", "Another operation on this resource is in progress.")), "AnotherOperation", provider.Unknown},
	"a proxy's page":      {false, says(502, "text/html; charset=utf-8", "<html><p>Bad Gateway</html>"), "proxy", provider.Unknown},
	"a proxy's not found": {false, says(404, "text/html", "<html>no such page</html>"), "proxy", provider.Unknown},
	"a login page":        {false, says(200, "text/html", "<html><br>Log in"), "proxy", provider.Unknown},
	"moved":               {false, says(302, "text/html", "<html>"), "proxy", provider.Unknown},
}

func errorJSON(code, message string) string {
	return `{"error":{"code":"` + code + `","message":"` + message + `"}}`
}

func says(status int, kind, body string) func(*http.Response) (*http.Response, error) {
	return func(*http.Response) (*http.Response, error) {
		return &http.Response{Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func cutBody(res *http.Response) (*http.Response, error) {
	b, err := io.ReadAll(res.Body)
	if len(b) == 0 { // of an answer without a body nothing can be cut
		return nil, errors.New("unexpected EOF")
	}
	res.Body, res.ContentLength = io.NopCloser(strings.NewReader(string(b[:len(b)/2]))), -1
	return res, err
}

// once lets the n-th call of an operation fail.
func once(w *wire, operation string, n int, f string) {
	fault := faults[f]
	var mu sync.Mutex
	w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
		mu.Lock()
		if op == operation {
			n--
		}
		hit := op == operation && n == 0
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

// Whatever becomes of whichever call: one instance, then none, and nothing that belonged to it (R-S1, R-S2).
func TestNoFaultMakesTwoInstancesOrLeavesAnything(t *testing.T) {
	t.Parallel()
	for f := range faults {
		for _, operation := range []string{
			"login", "PublicIPAddressesClient.Get", "PublicIPAddressesClient.BeginCreateOrUpdate", "InterfacesClient.Get", "InterfacesClient.BeginCreateOrUpdate",
			"VirtualMachinesClient.Get", "VirtualMachinesClient.BeginCreateOrUpdate", "VirtualMachinesClient.BeginDelete", "VirtualMachinesClient.NewListAllPager",
			"VirtualMachinesClient.NewListPager", "DisksClient.Get",
		} {
			for n := 1; n <= 2; n++ {
				if testing.Short() && (n > 1 || faults[f].code == provider.Throttled && operation != "VirtualMachinesClient.BeginCreateOrUpdate") {
					continue // each waits for a second
				}
				t.Run(fmt.Sprintf("%s of %s %d", f, operation, n), func(t *testing.T) {
					t.Parallel()
					cloud := &arm.Cloud{Lag: 5 * time.Millisecond, Boot: 5 * time.Millisecond, Shutdown: 5 * time.Millisecond}
					d, w := wired(t, cloud, account())
					once(w, operation, n, f)
					resolved := resolvedSoon(t, d)
					r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
					i, err := proceed(t.Context(), d, r, resolved)
					must(t, err)
					if all := cloud.Names(arm.Instances); len(all) != 1 || i.Name != all[0] {
						t.Fatalf("there are %v", all)
					}
					r.ID, r.ProviderID = i.ID, i.ProviderID
					deleted(t, d, r)
					if left := cloud.Names(arm.Instances, arm.Cards, arm.Addresses, arm.Disks); len(left) != 0 {
						t.Fatalf("%v are left", left)
					}
				})
			}
		}
	}
}

// resolvedSoon resolves a spec however often that is not clear.
func resolvedSoon(t *testing.T, d *driver) []byte {
	t.Helper()
	var last error
	for range 5 {
		resolved, err := d.Resolve(t.Context(), spec(map[string]any{"publicIP": true}))
		if err == nil {
			return resolved
		}
		if code := provider.CodeOf(err); code != provider.Unknown && code != provider.Throttled {
			t.Fatal(err)
		}
		last = err
		time.Sleep(breather / 2)
	}
	t.Fatal(last)
	return nil
}

// What is left of an attempt that ended at any of its steps goes by its token, whatever becomes of a call meanwhile (R-S2, 2b.8).
func TestNoFaultLeavesWhatAnAttemptMade(t *testing.T) {
	t.Parallel()
	for f := range faults {
		for _, operation := range []string{
			"VirtualMachinesClient.Get", "VirtualMachinesClient.NewListPager", "InterfacesClient.Get", "InterfacesClient.BeginDelete", "PublicIPAddressesClient.Get",
			"PublicIPAddressesClient.BeginDelete", "DisksClient.Get",
		} {
			if testing.Short() && faults[f].code == provider.Throttled && operation != "InterfacesClient.BeginDelete" {
				continue
			}
			t.Run(f+" of "+operation, func(t *testing.T) {
				t.Parallel()
				cloud := &arm.Cloud{Shutdown: 5 * time.Millisecond}
				d, w := wired(t, cloud, account())
				resolved := resolvedSoon(t, d)
				cloud.Exhaust(true)
				r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
				_, err := proceed(t.Context(), d, r, resolved)
				if provider.CodeOf(err) != provider.Exhausted {
					t.Fatal(err)
				}
				once(w, operation, 1, f)
				r.Attempt = true
				deleted(t, d, r)
				if left := cloud.Names(arm.Cards, arm.Addresses, arm.Disks); len(left) != 0 {
					t.Fatalf("%v are left", left)
				}
			})
		}
	}
}

func TestFaultIsCodedAndNamesItsCause(t *testing.T) {
	t.Parallel()
	for f, fault := range faults {
		for what, operation := range map[string]string{"List": "VirtualMachinesClient.NewListPager", "Find": "VirtualMachinesClient.Get", "Delete": "VirtualMachinesClient.Get"} {
			d, w := wired(t, &arm.Cloud{}, account())
			once(w, operation, 1, f)
			r := provider.Ref{UID: "uid-1", Name: "worker-a"}
			var err error
			switch what {
			case "List":
				_, err = d.List(t.Context())
			case "Find":
				_, err = d.Find(t.Context(), r)
			case "Delete":
				err = d.Delete(t.Context(), r)
			}
			if provider.CodeOf(err) != fault.code || !strings.Contains(fmt.Sprint(err), fault.names) {
				t.Errorf("%s: %s = %v (%v), want %v naming %q", f, what, err, provider.CodeOf(err), fault.code, fault.names)
			}
			if _, ok := errors.AsType[*provider.Error](err); !ok {
				t.Errorf("%s: %s: no code", f, what)
			}
			if strings.Contains(fmt.Sprint(err), secret) || strings.Contains(fmt.Sprint(err), "https://") {
				t.Errorf("%s: %s tells too much: %v", f, what, err)
			}
		}
	}
}

// A list that is cut off is no list, be it one of instances or of what belongs to them; of how they are it tells nothing then.
func TestPageThatDoesNotComeIsAnError(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{Page: 1}
	d, _ := wired(t, cloud, account())
	for _, name := range []string{"a", "b", "c"} {
		_, _, err := create(t, d, name, spec(map[string]any{"publicIP": true}))
		must(t, err)
	}
	for f := range faults {
		for _, list := range []string{"VirtualMachinesClient.NewListPager", "InterfacesClient.NewListPager", "PublicIPAddressesClient.NewListPager", "DisksClient.NewListByResourceGroupPager"} {
			d, w := wired(t, cloud, account())
			once(w, list, 3, f)
			if all, err := d.List(t.Context()); err == nil {
				t.Errorf("%s of %s: List = %d instances", f, list, len(all))
			}
		}
		d, w := wired(t, cloud, account())
		once(w, "VirtualMachinesClient.NewListAllPager", 3, f)
		all, err := d.List(t.Context())
		must(t, err)
		for _, in := range all {
			if in.CloudState != "" {
				t.Errorf("%s of the list of states: %s is %s", f, in.Name, in.CloudState)
			}
		}
	}
}

// A list that goes on elsewhere is not followed: whoever is there would get the token.
func TestListsStayAtAzure(t *testing.T) {
	t.Parallel()
	for _, next := range []string{
		"https://example.com/subscriptions", "http://management.azure.com/subscriptions", "https://management.azure.com.example.com/x", "//example.com",
		"https://management.azure.com:8443/subscriptions", "https://management.azure.com:443@example.com/subscriptions", "https://me@management.azure.com/x",
		"http://management.azure.com:443/subscriptions", "https://example.com:443/subscriptions",
	} {
		d, w := wired(t, &arm.Cloud{}, account())
		w.set(func(op string, do func() (*http.Response, error)) (*http.Response, error) {
			if op == "VirtualMachinesClient.NewListPager" {
				return says(200, "application/json", `{"value":[],"nextLink":"`+next+`"}`)(nil)
			}
			return do()
		})
		if _, err := d.List(t.Context()); provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), next) {
			t.Errorf("%s: List = %v", next, err)
		}
	}
}

// The address at which a list goes on may name the port, and have spaces in it
// (https://github.com/VictoriaMetrics/VictoriaMetrics/issues/6912, https://github.com/Azure/azure-sdk-for-go/pull/21296).
func TestListsGoOnWhereAzureSays(t *testing.T) {
	t.Parallel()
	const at = "/subscriptions/" + arm.Subscription + "/resourceGroups/" + arm.Group + "/providers/Microsoft.Compute/virtualMachines?api-version=2024-03-01&"
	for _, next := range []string{
		"https://management.azure.com" + at + "$skiptoken=83afce64!/Subscriptions/X/VMs/C3D2_AADF", "https://management.azure.com:443" + at + "%24skiptoken=A%3d%3d",
		"https://management.azure.com:443" + at + "$skiptoken=a&$filter=location eq 'eastus2'",
	} {
		cloud := &arm.Cloud{}
		cloud.Add("worker-a", map[string]string{tagCluster + clusterID: owned})
		pages := 0
		d, _ := wired(t, roundTrip(func(r *http.Request) (*http.Response, error) {
			if arm.Operation(r) != "VirtualMachinesClient.NewListPager" {
				return cloud.RoundTrip(r)
			}
			if pages++; pages == 1 {
				return says(200, "application/json", fmt.Sprintf(`{"value":[],"nextLink":%q}`, next))(nil)
			}
			if strings.Contains(r.URL.RequestURI(), " ") {
				t.Errorf("%s is asked for, which no request can be", r.URL)
			}
			return cloud.RoundTrip(r)
		}), account())
		all, err := d.List(t.Context())
		must(t, err)
		if len(all) != 1 || pages != 2 {
			t.Errorf("%s: %d pages have %+v", next, pages, all)
		}
	}
}

// That Azure is asked too often holds for everybody who uses the credential, as long as it says, and for nobody else.
// Of one service it holds for that alone.
func TestHasteOfOnePausesAll(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	for what, said := range map[string]struct {
		code, left string
		all        bool // or what is of the one service
	}{
		"a service":             {"OperationNotAllowed", "", false},
		"one, and others' rest": {"OperationNotAllowed", "11998", false},
		"Azure itself":          {"SubscriptionRequestsThrottled", "", true},
		"Azure, by the rest":    {"TooManyRequests", "0", true},
		"nobody who says so":    {"", "", true},
	} {
		a := account()
		d, w := wired(t, cloud, a)
		w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
			if op != "LoadBalancersClient.Get" {
				return next()
			}
			res, err := says(429, "application/json", errorJSON(said.code, "Too many requests."))(nil)
			res.Header.Set("X-Ms-Ratelimit-Remaining-Subscription-Reads", said.left)
			return res, err
		})
		_, err := d.Resolve(t.Context(), spec(nil))
		if provider.CodeOf(err) != provider.Throttled {
			t.Errorf("%s: Resolve = %v, want Throttled", what, err)
		}
		other, _ := wired(t, cloud, a)
		stranger, _ := wired(t, cloud, account())
		for kind, paused := range map[string]bool{balancerKind: true, instanceKind: said.all} {
			if got := held(t, other, kind); got != paused {
				t.Errorf("%s is asked too often: of another driver with this credential calls for %s are held back: %v", what, kind, got)
			}
			if held(t, stranger, kind) {
				t.Errorf("%s is asked too often: of a stranger calls for %s are held back", what, kind)
			}
		}
	}
}

// held reports whether a driver's call for a resource is not sent now.
func held(t *testing.T, d *driver, kind string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), breather/2)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.endpoint+d.id(kind, "x"), nil)
	must(t, err)
	sent := false
	_, err = d.paced(roundTrip(func(*http.Request) (*http.Response, error) { //nolint:bodyclose // there is none
		sent = true
		return nil, http.ErrServerClosed
	})).RoundTrip(r)
	return !sent && provider.CodeOf(err) == provider.Throttled
}

// The id of a client is no secret: whoever knows it, and has no secret of it, makes nobody else wait (RELIABILITY §4).
func TestHasteOfAnotherSecretPausesNobody(t *testing.T) {
	t.Parallel()
	mine, theirs := account(), account()
	theirs.Credentials["azure_client_id"], theirs.Credentials["azure_client_secret"] = mine.Credentials["azure_client_id"], []byte("a guess")
	d, w := wired(t, &arm.Cloud{}, theirs)
	once(w, "VirtualMachinesClient.NewListPager", 1, "too many requests")
	if _, err := d.List(t.Context()); provider.CodeOf(err) != provider.Throttled {
		t.Fatalf("List = %v, want Throttled", err)
	}
	if other, _ := wired(t, &arm.Cloud{}, mine); held(t, other, instanceKind) {
		t.Error("calls with the secret are held back")
	}
}

// The advice of an answer when to ask again is handed on.
func TestAdviceWhenToAskAgain(t *testing.T) {
	t.Parallel()
	d, w := wired(t, &arm.Cloud{}, account())
	w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
		if op == "login" {
			return next()
		}
		res, err := says(429, "application/json", errorJSON("OperationNotAllowed", "The server rejected the request because too many requests have been received for this subscription."))(nil)
		res.Header.Set("Retry-After", "17")
		return res, err
	})
	_, err := d.List(t.Context())
	if e, ok := errors.AsType[*provider.Error](err); !ok || e.Code != provider.Throttled || e.RetryAfter != 17*time.Second {
		t.Errorf("List = %v, want Throttled for 17 s", err)
	}
}

// An answer that does not end is read to its limit, and proves nothing.
func TestAnswersThatDoNotEnd(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusBadRequest, http.StatusInternalServerError} {
		d, _ := wired(t, &arm.Cloud{}, account())
		const size = 8 << 20
		body := strings.NewReader(`{"error":{"code":"` + strings.Repeat("x", size))
		cloud := &arm.Cloud{}
		d.http.Transport = throttle.Transport{Limiter: d.limiter, Base: roundTrip(func(r *http.Request) (*http.Response, error) {
			if arm.Operation(r) == "login" {
				return cloud.RoundTrip(r)
			}
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(body)}, nil
		})}
		_, err := d.Find(t.Context(), provider.Ref{UID: "uid-1", Name: "worker-a"})
		if provider.CodeOf(err) != provider.Unknown || body.Len() == int(body.Size()) || body.Len() < size-2<<20 {
			t.Errorf("%d: %d bytes of %d are unread, error %.300v", status, body.Len(), size, err)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A call that is cut off says so, also where it was the login that hung, at whichever of its requests.
func TestLoginThatHangsEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"openid-configuration", "token"} {
		d, _ := wired(t, &arm.Cloud{}, account())
		cloud := &arm.Cloud{}
		d.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, at) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return cloud.RoundTrip(r)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := d.List(ctx); provider.CodeOf(err) != provider.Unknown || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: List = %v", at, err)
		}
		cancel()
	}
}

// Whoever waits for another call's login waits no longer than it may itself; and what one logs in for, all have.
func TestLoginOfAnotherIsWaitedForInTime(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	hangs := make(chan struct{})
	d.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		if arm.Operation(r) == "login" {
			select {
			case <-hangs:
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
		return cloud.RoundTrip(r)
	})
	first := make(chan error, 1)
	go func() {
		_, err := d.Find(context.Background(), provider.Ref{UID: "uid-1", Name: "worker-a"})
		first <- err
	}()
	time.Sleep(10 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := d.Find(ctx, provider.Ref{UID: "uid-1", Name: "worker-b"}); provider.CodeOf(err) != provider.Unknown || time.Since(begin) > 5*time.Second {
		t.Errorf("after %v Find = %v", time.Since(begin), err)
	}
	close(hangs)
	must(t, <-first)
	if _, err := d.List(t.Context()); err != nil {
		t.Error(err)
	}
	if n := len(slices.DeleteFunc(cloud.Calls(), func(op string) bool { return op != "login" })); n > 3 { // its three requests
		t.Errorf("%d requests of logins", n)
	}
}

// A list of states that is refused for haste, or fails, costs nobody the other lists: what was told before still holds.
func TestStatesThatFailOnce(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, w := wired(t, cloud, account())
	_, _, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	cloud.Power("worker-a", "deallocated")
	for _, f := range []string{"", "unavailable", "too many requests"} {
		once(w, "VirtualMachinesClient.NewListAllPager", 1, cmp.Or(f, "unavailable"))
		if f == "" {
			w.set(nil)
		}
		if all, err := d.List(t.Context()); err != nil || len(all) != 1 || all[0].State != provider.StateStopped {
			t.Errorf("%s: List = %+v, %v", f, all, err)
		}
	}
}

// A page of a proxy's is no answer to a call that has none but its status: nobody was power-cycled by a login page (G5).
func TestPageOfAProxyChangesNothing(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, w := wired(t, cloud, account())
	r, _, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	for operation, call := range map[string]func() error{
		"VirtualMachinesClient.BeginRestart": func() error { return d.PowerCycle(t.Context(), r) },
		"VirtualMachinesClient.BeginUpdate":  func() error { return d.Update(t.Context(), r, map[string]string{"a": "b"}) },
		"VirtualMachinesClient.BeginDelete":  func() error { return d.Delete(t.Context(), r) },
	} {
		once(w, operation, 1, "a login page")
		if err := call(); provider.CodeOf(err) != provider.Unknown || !strings.Contains(fmt.Sprint(err), "proxy") {
			t.Errorf("%s = %v", operation, err)
		}
	}
}
