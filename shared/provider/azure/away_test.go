// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/arm"
)

// A network interface in another resource group has its addresses in lists as in looks: else each scan would take back what a look wrote.
// Where that group may not be read, neither tells them (R-S14).
func TestAddressesInAnotherGroupAreToldAlike(t *testing.T) {
	t.Parallel()
	const there, here = "/resourceGroups/elsewhere-rg/", "/resourceGroups/" + arm.Group + "/"
	for _, denied := range []bool{false, true} {
		cloud := &arm.Cloud{}
		d, _ := wired(t, cloud, account())
		r, _, err := create(t, d, "worker-a", spec(map[string]any{"publicIP": true}))
		must(t, err)
		d.http.Transport = roundTrip(func(q *http.Request) (*http.Response, error) {
			if strings.Contains(q.URL.Path, there) {
				if denied {
					return says(403, "application/json", errorJSON("AuthorizationFailed", "The client does not have authorization."))(nil)
				}
				q = q.Clone(q.Context())
				q.URL.Path = strings.ReplaceAll(q.URL.Path, there, here)
			}
			res, err := cloud.RoundTrip(q)
			if err != nil {
				return nil, err
			}
			text, err := io.ReadAll(res.Body)
			if strings.HasSuffix(q.URL.Path, "/networkInterfaces") || strings.HasSuffix(q.URL.Path, "/publicIPAddresses") { // they are not here
				text = []byte(`{"value":[]}`)
			}
			for _, kind := range []string{arm.Cards, arm.Addresses} {
				text = bytes.ReplaceAll(text, []byte(here+"providers/"+kind), []byte(there+"providers/"+kind))
			}
			res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
			return res, err
		})
		found, err := d.Find(t.Context(), r)
		must(t, err)
		listed, err := d.List(t.Context())
		must(t, err)
		if diff := cmp.Diff(found, listed); diff != "" || denied != (len(found[0].Addresses) == 0) {
			t.Errorf("denied %v: found are %v, and listed:\n%s", denied, found[0].Addresses, diff)
		}
	}
}

// What the attempt made a moment ago Azure may not find yet: the step is made again, and nothing is taken away (2b.8).
func TestWhatWasJustMadeIsNotFoundYet(t *testing.T) {
	t.Parallel()
	for operation, own := range map[string]string{"VirtualMachinesClient.BeginCreateOrUpdate": "worker-a-nic", "InterfacesClient.BeginCreateOrUpdate": "worker-a-ip"} {
		for lacks, want := range map[string]provider.Code{own: provider.Exhausted, "cluster-fz2xk-gen2": provider.NotFound} {
			d, w := wired(t, &arm.Cloud{}, account())
			w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
				if op == operation {
					return says(400, "application/json", errorJSON("InvalidResourceReference", "Resource /x/Y/"+strings.ToUpper(lacks)+" referenced by resource /x was not found."))(nil)
				}
				return next()
			})
			if _, _, err := create(t, d, "worker-a", spec(map[string]any{"publicIP": true})); provider.CodeOf(err) != want {
				t.Errorf("%s without %s: Create = %v, want %v", operation, lacks, err, want)
			}
		}
	}
}

// A provider id of something else, whoever wrote it, is asked for nowhere: it leads to nothing, and the Machine can go.
func TestProviderIDOfSomethingElseLeadsNowhere(t *testing.T) {
	t.Parallel()
	d, w := wired(t, &arm.Cloud{}, account())
	r := provider.Ref{UID: "uid-1", Name: "worker-a", ProviderID: scheme + arm.ID("Microsoft.Storage/storageAccounts", "x")}
	if found, err := d.Find(t.Context(), r); err != nil || len(found) != 0 {
		t.Errorf("Find = %+v, %v", found, err)
	}
	if err := d.Delete(t.Context(), r); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("Delete = %v", err)
	}
	if ops := w.since(0); slices.Contains(ops, "") {
		t.Errorf("asked is %v", ops)
	}
}

// A disk whose removal is refused keeps nothing else of its Machine from going.
func TestDiskThatDoesNotGoKeepsNothingElse(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, w := wired(t, cloud, account())
	r, _, err := create(t, d, "worker-a", spec(map[string]any{"publicIP": true}))
	must(t, err)
	cloud.KeepDisk("worker-a", "worker-a_OSDisk")
	cloud.Keep(arm.Cards, "worker-a-nic", true)
	cloud.Keep(arm.Addresses, "worker-a-ip", true)
	w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
		if op == "DisksClient.BeginDelete" {
			return says(409, "application/json", errorJSON("OperationNotAllowed", "The disk has an active SAS URI."))(nil)
		}
		return next()
	})
	for range 4 {
		err = d.Delete(t.Context(), r)
	}
	if left := cloud.Names(arm.Cards, arm.Addresses); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "SAS") || len(left) > 0 {
		t.Errorf("Delete = %v; left are %v", err, left)
	}
	w.set(nil)
	deleted(t, d, r)
}

// What is said here of a login that was not sent says so itself, with its time: nothing may have come of it (2b.4).
func TestLoginThatWasNotSentIsTold(t *testing.T) {
	t.Parallel()
	for want, err := range map[provider.Code]error{
		provider.Throttled: provider.ErrorAfter(provider.Throttled, 5*time.Minute, "next call later"),
		provider.Denied:    provider.Errorf(provider.Denied, "no cloud is there"),
	} {
		d, _ := wired(t, &arm.Cloud{}, account())
		d.http.Transport = roundTrip(func(*http.Request) (*http.Response, error) { return nil, err })
		_, got := d.Create(t.Context(), provider.Ref{UID: "uid-1", Name: "worker-a", Token: "t"}, []byte(`{}`))
		e, ok := errors.AsType[*provider.Error](got)
		if !ok || e.Code != want || e.RetryAfter != map[bool]time.Duration{true: 5 * time.Minute}[want == provider.Throttled] || !strings.Contains(got.Error(), "log in") {
			t.Errorf("Create = %v, want %v", got, want)
		}
	}
}
