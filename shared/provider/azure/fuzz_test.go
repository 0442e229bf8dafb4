// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/arm"
)

// Whatever stands in a Machine for what was made and resolved: a step is made or refused, and an instance is the Machine's own.
func FuzzCreate(f *testing.F) {
	f.Add([]byte(nil), []byte(`{"spec":{"vmSize":"Standard_D4s_v3"},"subnet":"/subscriptions/s/resourceGroups/r/providers/n/virtualNetworks/v/subnets/x"}`))
	f.Add([]byte(`{"address":"a","card":"b","instance":"c"}`), []byte(`{"spec":{"publicIP":true,"dataDisks":[{}],"spotVMOptions":{},"securityProfile":{}}}`))
	f.Add([]byte(`{"card":7}`), []byte(`{"spec":{"image":{"resourceID":"/"},"osDisk":{"managedDisk":{"diskEncryptionSet":{}}}}}`))
	f.Add([]byte(`null`), []byte(`null`))
	f.Add([]byte(`[`), []byte(`{"spec":{"tags":{"machine-functions.machine-uid":"other"},"securityProfile":{"settings":{"securityType":"TrustedLaunch"}}}}`))
	a := account()
	f.Fuzz(func(t *testing.T, progress, resolved []byte) {
		d, err := open(a)
		must(t, err)
		d.http.Transport = &arm.Cloud{}
		began := time.Now()
		in, err := d.Create(t.Context(), provider.Ref{UID: "machine-uid", Name: "worker-a", Token: "token-1", Progress: progress}, resolved)
		switch {
		case time.Since(began) > 11*time.Second:
			t.Errorf("it took %v", time.Since(began))
		case err != nil && in.ID != "":
			t.Errorf("%v, and yet %+v", err, in)
		case err == nil && in.State == provider.StateIncomplete && !json.Valid(in.Progress):
			t.Errorf("a step whose progress is %q", in.Progress)
		case err == nil && in.State != provider.StateIncomplete && in.UID != "machine-uid":
			t.Errorf("the instance is %+v", in)
		}
	})
}

// Whatever Azure, or what answers in its place, says: an error proves no absence unless it is Azure's own, and nothing panics.
func FuzzAnswer(f *testing.F) {
	f.Add(200, `{"value":[]}`)
	f.Add(200, `{"value":[{"id":"/subscriptions/s/resourceGroups/r/providers/Microsoft.Compute/virtualMachines/x","location":"eastus2","tags":{"a":"b"},`+
		`"properties":{"vmId":"x","provisioningState":"Succeeded","instanceView":{"statuses":[{"code":"PowerState/"}]}}}]}`)
	f.Add(200, `{"value":[{"id":"x","location":"eastus2","properties":{"provisioningState":"Failed","networkProfile":{"networkInterfaces":[{"id":"../.."}]}}}],"nextLink":"https://management.azure.com/x"}`)
	f.Add(404, `{"error":{"code":"ResourceNotFound","message":"gone"}}`)
	f.Add(404, `<html>`)
	f.Add(200, `{"value":[{"name":"Standard_A","resourceType":"virtualMachines","capabilities":[{"name":"vCPUs","value":"1e300"},{"name":"MemoryGB","value":"-1"}]}]}`)
	cloud := &arm.Cloud{}
	a := account()
	f.Fuzz(func(t *testing.T, status int, body string) {
		d, err := open(a)
		must(t, err)
		var pages atomic.Int32 // of lists side by side
		d.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			if arm.Operation(r) == "login" {
				return cloud.RoundTrip(r)
			}
			if pages.Add(1) > 20 {
				return says(200, "application/json", `{"value":[]}`)(nil)
			}
			return says(status, "application/json", body)(nil)
		})
		all, err := d.List(t.Context())
		for _, in := range all {
			if err != nil || in.ID == "" && !in.Child {
				t.Errorf("listed %+v, %v", in, err)
			}
		}
		pages.Store(0)
		err = d.Delete(t.Context(), provider.Ref{UID: "uid", Name: "worker-a"})
		if absent := status == http.StatusNotFound && strings.Contains(body, "NotFound"); provider.CodeOf(err) == provider.NotFound && !absent && !strings.Contains(body, "value") {
			t.Errorf("%d %s is an absence", status, body)
		}
		pages.Store(0)
		types, err := d.InstanceTypes(t.Context())
		for _, it := range types {
			if err != nil || it.MilliCPU <= 0 || it.Memory <= 0 {
				t.Errorf("offered %+v, %v", it, err)
			}
		}
	})
}
