// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// One step begins at a time, and the start is the last but one: what still joins its group, or is customized, is off. What nobody noted is not
// finished.
func TestOneStepAfterTheOther(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	tag := v.tag(t, d, "owner", "team-a", reference{})
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
	resolved, err := d.Resolve(t.Context(), v.spec(map[string]any{
		"tagIDs": []string{tag}, "workspace": map[string]any{"vmGroup": "zone-a"}, "userDataSecret": map[string]any{"name": "cloud-init"},
		"network": map[string]any{"devices": []any{map[string]any{"networkName": "VM Network", "ipAddrs": []string{"10.0.0.7/24"}, "gateway": "10.0.0.1"}}},
	}))
	must(t, err)
	var req request
	must(t, json.Unmarshal(resolved, &req))
	c, err := d.session.connect(t.Context())
	must(t, err)
	changes := map[string]string{
		stepClone: "CloneVM_Task", stepConfigure: "ReconfigVM_Task", stepCustomize: "CustomizeVM_Task",
		stepGroup: "ReconfigureComputeResource_Task", stepStart: "PowerOnVM_Task", stepNote: "ReconfigVM_Task",
	}
	var p progress
	var began []string
	for range 10 {
		m, err := d.one(t.Context(), c, r)
		must(t, err)
		before := map[string]int{}
		for _, method := range changes {
			before[method] = w.count(method)
		}
		must(t, d.step(t.Context(), c, r, req, m, &p))
		began = append(began, p.Step)
		for _, method := range changes {
			if n := w.count(method) - before[method]; n > 1 || n == 1 && changes[p.Step] != method {
				t.Errorf("with step %q begins %s", p.Step, method)
			}
		}
		if p.Step == "" && p.Tagged && m.Launched != nil {
			break
		}
		_, err = d.settle(t.Context(), c, r, req, &p)
		must(t, err)
	}
	want := []string{stepClone, stepConfigure, "", stepCustomize, stepGroup, stepStart, stepNote, ""} // tags are no task
	if diff := cmp.Diff(want, began); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// A step that is refused has not been done: nothing counts it as such, and no instance is finished, nor started, without it.
func TestRefusedStepIsNotDone(t *testing.T) {
	t.Parallel()
	for method, of := range map[string]struct {
		change map[string]any
		path   bool // of the tagging service
	}{
		"ReconfigVM_Task":                 {nil, false},
		"CustomizeVM_Task":                {map[string]any{"userDataSecret": map[string]any{"name": "cloud-init"}, "network": map[string]any{"devices": []any{map[string]any{"networkName": "VM Network", "ipAddrs": []string{"10.0.0.7/24"}}}}}, false},
		"ReconfigureComputeResource_Task": {map[string]any{"workspace": map[string]any{"vmGroup": "zone-a"}}, false},
		"PowerOnVM_Task":                  {nil, false},
		"tag-association":                 {map[string]any{"tagIDs": []string{""}}, true},
	} {
		v := newVCenter(t)
		d, w := v.wired(t, v.account())
		if of.path {
			of.change["tagIDs"] = []string{v.tag(t, d, "owner", "team-a", reference{})}
		}
		r, resolved := begun(t, d, v.spec(of.change))
		if of.path {
			w.set(func(m string, next func() (*http.Response, error)) (*http.Response, error) {
				if !strings.Contains(m, method) {
					return next()
				}
				res, err := page(http.StatusForbidden, "application/json", "{}", "")(nil)
				res.Request = &http.Request{Method: http.MethodPost, URL: &url.URL{Path: m}}
				return res, err
			})
		} else {
			w.fails(method, "NoPermission")
		}
		for range 3 {
			in, err := d.Create(t.Context(), r, resolved)
			if provider.CodeOf(err) != provider.Denied || in.State != provider.StateIncomplete {
				t.Errorf("%s: Create = %+v, %v", method, in, err)
			}
			r.Progress = in.Progress
		}
		if m := v.machines(t)[r.Name]; m.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn {
			t.Errorf("%s: it runs without", method)
		}
	}
}

// What was launched has joined its group: who left it since, as people may arrange, does not join it again.
func TestLaunchedInstanceBeginsNothing(t *testing.T) {
	t.Parallel()
	for _, power := range []types.VirtualMachinePowerState{types.VirtualMachinePowerStatePoweredOn, types.VirtualMachinePowerStatePoweredOff} {
		var p progress
		req := request{Group: &reference{Type: "ClusterComputeResource", Value: "domain-c1"}, Spec: providerspec.VSphere{Workspace: providerspec.VSphereWorkspace{VMGroup: "zone-a"}}}
		if err := (&driver{}).step(t.Context(), nil, provider.Ref{Name: "m"}, req, &clone{Launched: &launched{}, Power: power}, &p); err != nil || p != (progress{}) { // there is no vCenter to ask
			t.Errorf("%s: %v, %+v", power, err, p)
		}
	}
}

// Which guests are told their addresses by the tools in them: those of other user data than Ignition's, where the spec says addresses. The
// others ask for theirs.
func TestWhoIsToldItsAddresses(t *testing.T) {
	t.Parallel()
	fixed, asks := []providerspec.VSphereDevice{{}, {IPAddrs: []string{"10.1.0.7/20"}}}, []providerspec.VSphereDevice{{}, {}}
	for _, tt := range []struct {
		data  string
		cards []providerspec.VSphereDevice
		want  string
	}{
		{ignitionData, fixed, byUserData}, {ignitionData, asks, byUserData}, {"#cloud-config\n", fixed, byCustomization}, {"#cloud-config\n", asks, byUserData},
		{`{"ignitions": {}}`, fixed, byCustomization}, {"", nil, byUserData},
	} {
		how, arguments := "", ""
		for _, o := range guestinfo("m", tt.cards, []byte(tt.data)) {
			switch v := o.GetOptionValue(); v.Key {
			case keyConfigured:
				how, _ = v.Value.(string)
			case "guestinfo.afterburn.initrd.network-kargs":
				arguments, _ = v.Value.(string)
			}
		}
		if how != tt.want || (arguments != "") != (tt.data == ignitionData && len(tt.cards[1].IPAddrs) > 0) {
			t.Errorf("%q, %v: by %q, arguments %q", tt.data, tt.cards, how, arguments)
		}
	}
}

// What a card is told: its first address of each family, the gateway of either, and to ask where nothing is said.
func TestWhatACardIsTold(t *testing.T) {
	t.Parallel()
	type told struct {
		IP, Mask    string
		Gateway     []string
		Six, SixGW  []string
		Bits        []int32
		Nameservers []string
	}
	for _, tt := range []struct {
		d    providerspec.VSphereDevice
		want told
	}{
		{providerspec.VSphereDevice{}, told{IP: "asks"}},
		{providerspec.VSphereDevice{Nameservers: []string{"", "10.1.0.2"}}, told{IP: "asks", Nameservers: []string{"10.1.0.2"}}},
		{providerspec.VSphereDevice{IPAddrs: []string{"10.1.0.7/20"}, Gateway: "10.1.0.1"}, told{IP: "10.1.0.7", Mask: "255.255.240.0", Gateway: []string{"10.1.0.1"}}},
		{providerspec.VSphereDevice{IPAddrs: []string{"2001:db8::7/64"}, Gateway: "2001:db8::1"}, told{IP: "asks", Six: []string{"2001:db8::7"}, Bits: []int32{64}, SixGW: []string{"2001:db8::1"}}},
		{providerspec.VSphereDevice{IPAddrs: []string{"10.1.0.7/20", "2001:db8::7/56"}, Gateway: "10.1.0.1"}, told{
			IP: "10.1.0.7", Mask: "255.255.240.0", Gateway: []string{"10.1.0.1"}, Six: []string{"2001:db8::7"}, Bits: []int32{56}}},
	} {
		s, got := adapter(tt.d), told{}
		switch ip := s.Ip.(type) {
		case *types.CustomizationFixedIp:
			got.IP = ip.IpAddress
		case *types.CustomizationDhcpIpGenerator:
			got.IP = "asks"
		}
		got.Mask, got.Gateway, got.Nameservers = s.SubnetMask, s.Gateway, s.DnsServerList
		if s.IpV6Spec != nil {
			for _, g := range s.IpV6Spec.Ip {
				if six, ok := g.(*types.CustomizationFixedIpV6); ok {
					got.Six, got.Bits = append(got.Six, six.IpAddress), append(got.Bits, six.SubnetMask)
				}
			}
			got.SixGW = s.IpV6Spec.Gateway
			if len(got.Six) == 0 {
				t.Errorf("%+v: of IPv6 it is told %+v", tt.d, s.IpV6Spec)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.d, diff)
		}
	}
}

// A pool is named, or no claim could be of it; what is left empty is not said.
func TestWhatACardMayLeaveOut(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]providerspec.VSphereDevice{
		"addressesFromPools: ": {AddressesFromPools: []providerspec.VSpherePool{{Resource: "pools", Name: "a"}, {Resource: "pools"}}},
		"addressesFromPools":   {AddressesFromPools: []providerspec.VSpherePool{{Name: "a"}}},
		"":                     {AddressesFromPools: []providerspec.VSpherePool{{Resource: "pools", Name: "a"}}, Nameservers: []string{""}, IPAddrs: []string{"10.1.0.7/20"}},
	} {
		if err := checkDevice(d); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v", d, err)
		}
	}
}

// What could not be noted, or customized, is told, and no step has begun: the instance would count as finished, with disks that are nobody's.
// Who is customized is told the nameservers of its cards once more for all of them: guests of Linux read those.
func TestStepThatCannotBeginIsTold(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	c, err := d.session.connect(t.Context())
	must(t, err)
	sent := ""
	w.next = spy{w.next, func(body string) { sent += body }}
	gone := reference{Type: "VirtualMachine", Value: "vm-gone"}
	req := request{Spec: providerspec.VSphere{Network: providerspec.VSphereNetwork{Devices: []providerspec.VSphereDevice{{Nameservers: []string{"10.1.0.2"}}}}}}
	for name, m := range map[string]clone{
		"note":      {Ref: gone, Configured: byUserData, Power: types.VirtualMachinePowerStatePoweredOn},
		"customize": {Ref: gone, Configured: byCustomization},
		"start":     {Ref: gone, Configured: byUserData},
	} {
		var p progress
		if err := d.step(t.Context(), c, provider.Ref{Name: "m"}, req, &m, &p); err == nil || p != (progress{}) {
			t.Errorf("%s: %v, %+v", name, err, p)
		}
	}
	if want := "<globalIPSettings><dnsServerList>10.1.0.2</dnsServerList></globalIPSettings>"; !strings.Contains(sent, want) {
		t.Errorf("%s is not in what was sent: %s", want, sent)
	}
}
