// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/yaml"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
	local "github.com/machine-functions/machine-functions/test/local/vcenter"
)

// FuzzGuestinfo: what a Secret holds, binary as it may be, comes to the guest byte for byte, and nothing in it, nor in a Machine's
// name or address, adds a setting or a second host's name (SPEC E24).
func FuzzGuestinfo(f *testing.F) {
	f.Add("worker-a", []byte(`{"ignition":{"version":"3.2.0"}}`), "192.0.2.4/24", "192.0.2.1")
	f.Add("worker-a", []byte("#cloud-config\n"), "", "")
	f.Add("a\"\nlocal-hostname: b", []byte{0, 0xff, 0xfe, '{'}, "192.0.2.4/24 systemd.unit=emergency", "x y")
	f.Add("1e3", []byte("#cloud-config\n"), "192.0.2.4/24", "192.0.2.1")
	f.Add("worker-a", []byte(`{"ignition":{}}`), "2001:db8::4/64", "fe80::1%] systemd.unit=emergency.target rd.break [")
	f.Add("ä\x00", bytes.Repeat([]byte(`{"ignition":`), 20_000), "::1/128", "fe80::1%eth0")
	f.Fuzz(func(t *testing.T, name string, data []byte, ip, gateway string) {
		cards := []providerspec.VSphereDevice{{IPAddrs: []string{ip}, Gateway: gateway, Nameservers: []string{gateway}}}
		got := map[string]string{}
		for _, o := range guestinfo(name, cards, data) {
			v := o.GetOptionValue()
			text, is := v.Value.(string)
			if _, twice := got[v.Key]; twice || !is {
				t.Errorf("%s is set to %v, and to %q before", v.Key, v.Value, got[v.Key])
			}
			got[v.Key] = text
		}
		coded, other := "guestinfo.userdata", "guestinfo.ignition.config.data"
		if ignition(data) {
			coded, other = other, coded
		}
		if b, err := base64.StdEncoding.DecodeString(got[coded]); err != nil || !bytes.Equal(b, data) || got[coded+".encoding"] != "base64" {
			t.Errorf("%q became %q: %v", data, b, err)
		}
		if value, is := got[other]; !is || value != "" { // of a template that was made of an instance
			t.Errorf("both %s and %s are set", coded, other)
		}
		if b, err := base64.StdEncoding.DecodeString(got["guestinfo.metadata"]); err == nil && len(b) > 0 {
			var metadata map[string]any
			switch err := yaml.Unmarshal(b, &metadata); {
			case !utf8.ValidString(name): // an API server has none
			case err != nil, len(metadata) != 2, metadata["instance-id"] != name, metadata["local-hostname"] != name:
				t.Errorf("%q became %q, %v: %v", name, b, metadata, err)
			}
		}
		for arg := range strings.FieldsSeq(got["guestinfo.afterburn.initrd.network-kargs"]) {
			if !argument.MatchString(arg) {
				t.Errorf("%q and %q add the kernel argument %q", ip, gateway, arg)
			}
		}
	})
}

// argument is what of kernel arguments a network card's addresses come to.
var argument = regexp.MustCompile(`^(ip|nameserver)=[A-Za-z0-9.:%\[\]_-]+$`)

// answering answers every request with the same.
type answering struct {
	status int
	body   []byte
}

// RoundTrip implements [http.RoundTripper].
func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{
		Status: fmt.Sprint(a.status), StatusCode: a.status, Header: http.Header{"Content-Type": {"text/xml"}}, Body: io.NopCloser(bytes.NewReader(a.body)), Request: r,
	}, nil
}

// FuzzFault: only a fault of the vCenter's, in its own form, is a definite answer; whatever else comes proves nothing
// (RELIABILITY G5, 2b.4), and whoever logs in and lists gets an error or a list.
func FuzzFault(f *testing.F) {
	const envelope = `<?xml version="1.0"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body>%s</soapenv:Body></soapenv:Envelope>`
	const fault = `<soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>no</faultstring><detail><%[1]sFault xmlns="urn:vim25" ` +
		`xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="%[1]s"></%[1]sFault></detail></soapenv:Fault>`
	for _, name := range []string{"InvalidLogin", "ManagedObjectNotFound", "DuplicateName", "NoPermission", "InvalidName", "VirtualMachine", "x"} {
		f.Add(500, fmt.Appendf(nil, envelope, fmt.Sprintf(fault, name)))
	}
	f.Add(200, fmt.Appendf(nil, envelope, `<CurrentTimeResponse xmlns="urn:vim25"><returnval>2026-01-01T00:00:00Z</returnval></CurrentTimeResponse>`))
	all := fmt.Sprintf(greeting, managers) + welcome
	for _, more := range []string{
		`<CreateContainerViewResponse xmlns="urn:vim25"><returnval type="ContainerView">v</returnval></CreateContainerViewResponse>`,
		`<RetrievePropertiesExResponse xmlns="urn:vim25"/>`, `<DestroyViewResponse xmlns="urn:vim25"/>`,
	} {
		f.Add(200, fmt.Appendf(nil, envelope, all))
		all += more
	}
	f.Add(200, fmt.Appendf(nil, envelope, all))
	for _, body := range []string{"", "<html>404</html>", "{}", fmt.Sprintf(envelope, ""), strings.Repeat("<a>", 5000)} {
		for _, status := range []int{200, 302, 401, 404, 500, 503} {
			f.Add(status, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		s, err := newSession(provider.Account{
			Region: "vc.test", Namespace: "n", Secret: "s", Credentials: map[string][]byte{"vc.test.username": []byte("u"), "vc.test.password": []byte("canary")},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.soap.Client.Transport = vcenterOnly{answering{status, body}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := (&driver{account: s.account, session: s}).List(ctx); err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%v tells a password", err)
		}
		_, err = methods.CurrentTime(t.Context(), s.soap, &types.CurrentTime{This: types.ManagedObjectReference{Type: "ServiceInstance", Value: "ServiceInstance"}})
		if err == nil {
			return
		}
		code := provider.CodeOf(s.coded(err))
		if code.Definite() && !soap.IsSoapFault(err) && !(status == http.StatusTooManyRequests && code == provider.Throttled) {
			t.Errorf("%d %q is %s: %v", status, body, code, err)
		}
		if strings.Contains(s.coded(err).Error(), "canary") {
			t.Errorf("%v tells a password", err)
		}
	})
}

// FuzzCreate: whatever stands in a Machine for what was made, beside a clone or before there is one: a step is made or refused, and an
// instance is the Machine's own.
func FuzzCreate(f *testing.F) {
	sim, err := local.Start(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(sim.Stop)
	v := &vcenter{VCenter: sim, service: sim.Service, host: sim.Host, ca: sim.CA}
	opened, err := open(f.Context(), v.account(), nil)
	if err != nil {
		f.Fatal(err)
	}
	resolved, err := opened.Resolve(f.Context(), v.spec(nil))
	if err != nil {
		f.Fatal(err)
	}
	var req request
	if err := json.Unmarshal(resolved, &req); err != nil {
		f.Fatal(err)
	}
	d, _ := opened.(*driver)
	c, err := vim25.NewClient(f.Context(), sim.Service) // without sockets
	if err != nil {
		f.Fatal(err)
	}
	for _, recorded := range []string{
		"", "null", "[", "{}", `{"step":"clone"}`, `{"step":"clone","task":{"type":"Task","value":"task-0"}}`, `{"step":7}`, `{"task":{}}`,
		`{"step":"power on","task":{"type":"VirtualMachine","value":"vm-1"}}`, `{"step":"x","task":{"type":"../x","value":"<a>"}}`, `{"customized":true,"tagged":true}`,
	} {
		f.Add([]byte(recorded), false)
		f.Add([]byte(recorded), true)
	}
	f.Fuzz(func(t *testing.T, recorded []byte, cloned bool) {
		uid := uuid.NewUUID()
		r := provider.Ref{UID: uid, Name: string(uid), Token: "token-1"}
		t.Cleanup(func() { // once nothing is done to it any more
			for of, m := range v.all(t, c) {
				if of == r.Name {
					task, err := m.PowerOff(context.Background())
					must(t, err)
					_ = task.Wait(context.Background()) // it may be off
					done(t)(m.Destroy(context.Background()))
				}
			}
		})
		if cloned {
			in, err := d.create(t.Context(), c, r, req)
			must(t, err)
			r.Progress = in.Progress
			p, err := provider.ProgressOf[progress](r)
			must(t, err)
			_, err = d.settle(t.Context(), c, r, req, &p)
			must(t, err)
		}
		r.Progress = recorded
		ctx, cancel := context.WithTimeout(t.Context(), margin+time.Second)
		defer cancel()
		in, err := d.create(ctx, c, r, req)
		switch {
		case err != nil && (in.ID != "" || len(in.Progress) > 0 && !json.Valid(in.Progress)):
			t.Errorf("%v, and yet %+v", err, in)
		case err == nil && in.State == provider.StateIncomplete && !json.Valid(in.Progress):
			t.Errorf("a step whose progress is %q", in.Progress)
		case err == nil && in.UID != r.UID:
			t.Errorf("the instance is %+v", in)
		}
	})
}

// all returns all virtual machines by name.
func (v *vcenter) all(t *testing.T, c *vim25.Client) map[string]*object.VirtualMachine {
	t.Helper()
	found, err := everywhere(context.Background(), c, "name")
	must(t, err)
	all := map[string]*object.VirtualMachine{}
	for _, o := range found {
		var m mo.VirtualMachine
		vm := object.NewVirtualMachine(c, o.Obj)
		must(t, vm.Properties(context.Background(), o.Obj, []string{"name"}, &m))
		all[m.Name] = vm
	}
	return all
}
