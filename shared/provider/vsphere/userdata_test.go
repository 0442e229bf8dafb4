// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"encoding/base64"
	"testing"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// TestEncodedUserDataIsForIgnition holds that a Secret whose user data somebody has encoded once more, or twice, is read as OpenShift does:
// taken for cloud-init's it would never make a Node.
func TestEncodedUserDataIsForIgnition(t *testing.T) {
	t.Parallel()
	encode := base64.StdEncoding.EncodeToString
	once := encode([]byte(ignitionData))
	cloudInit := encode([]byte("#cloud-config\n"))
	for have, want := range map[string]string{
		ignitionData: ignitionData, once: ignitionData, once + "\n": ignitionData, encode([]byte(once)): ignitionData,
		"#cloud-config\n": "#cloud-config\n", cloudInit: cloudInit, "": "",
	} {
		d := &driver{account: provider.Account{UserData: func(context.Context, string) (map[string][]byte, string, error) {
			return map[string][]byte{"userData": []byte(have)}, "1", nil
		}}}
		if got, err := d.userData(t.Context(), "worker-user-data"); err != nil || string(got) != want {
			t.Errorf("%q is read as %q, %v", have, got, err)
		}
	}
}

func TestOtherUserDataIsForCloudInit(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	_, _, err := create(t, d, "worker-a", v.spec(map[string]any{
		"userDataSecret": map[string]any{"name": "cloud-init"},
		"network":        map[string]any{"devices": []any{map[string]any{"networkName": "VM Network", "ipAddrs": []string{"10.9.0.7/24"}, "gateway": "10.9.0.1"}}},
	}))
	must(t, err)
	m := v.machines(t)["worker-a"]
	if s := settingsOf(m); s["guestinfo.userdata"] != "I2Nsb3VkLWNvbmZpZwo=" || s["guestinfo.ignition.config.data"] != "" {
		t.Errorf("settings = %v", s)
	}
	if w.count("CustomizeVM_Task") != 1 || m.Guest.HostName != "worker-a" || m.Guest.IpAddress != "10.9.0.7" {
		t.Errorf("customized %d times: guest %q has %q", w.count("CustomizeVM_Task"), m.Guest.HostName, m.Guest.IpAddress)
	}
}

// A card may have several addresses of one family, of which the tools in a guest set one: the first, as everywhere else.
func TestFirstAddressIsCustomized(t *testing.T) {
	t.Parallel()
	got := adapter(providerspec.VSphereDevice{IPAddrs: []string{"10.9.0.7/24", "10.8.0.7/16", "2001:db8::7/64", "2001:db8::8/64"}, Gateway: "10.9.0.1"})
	ip, is := got.Ip.(*types.CustomizationFixedIp)
	if !is || ip.IpAddress != "10.9.0.7" || got.SubnetMask != "255.255.255.0" || len(got.IpV6Spec.Ip) != 2 {
		t.Errorf("told %+v, mask %s, %d of IPv6", got.Ip, got.SubnetMask, len(got.IpV6Spec.Ip))
	}
}

// A template that was made of an instance has that one's addresses as kernel arguments: a clone has its own, or none.
func TestTemplatesAddressesAreNotTheClones(t *testing.T) {
	t.Parallel()
	const key = "guestinfo.afterburn.initrd.network-kargs"
	v := newVCenter(t)
	d, _ := v.wired(t, v.account())
	card := map[string]any{"networkName": "VM Network", "ipAddrs": []string{"10.9.0.7/24"}, "gateway": "10.9.0.1"}
	for name, tt := range map[string]struct {
		change map[string]any
		want   string
	}{
		"worker-dhcp":       {nil, ""},
		"worker-static":     {map[string]any{"network": map[string]any{"devices": []any{card}}}, "ip=10.9.0.7::10.9.0.1:255.255.255.0:::none"},
		"worker-cloud-init": {map[string]any{"network": map[string]any{"devices": []any{card}}, "userDataSecret": map[string]any{"name": "cloud-init"}}, ""},
	} {
		resolved, err := d.Resolve(t.Context(), v.spec(tt.change))
		must(t, err)
		r := provider.Ref{UID: uuid.NewUUID(), Name: name, Token: "t"}
		in, err := d.Create(t.Context(), r, resolved)
		must(t, err)
		v.Edit(v.machines(t)[name].Self, func(m *simulator.VirtualMachine) { // as vCenters clone; vcsim leaves the settings out
			m.Config.ExtraConfig = append(m.Config.ExtraConfig, option(key, "ip=10.1.0.99::10.1.0.1:255.255.255.0:::none"))
		})
		r.Progress = in.Progress
		_, err = proceed(t.Context(), d, r, resolved)
		must(t, err)
		if got := settingsOf(v.machines(t)[name])[key]; got != tt.want {
			t.Errorf("%s: %s = %q, want %q", name, key, got, tt.want)
		}
	}
}

// Nor does it have that one's user data, which has secrets in it, where its own is of the other kind.
func TestTemplatesUserDataIsNotTheClones(t *testing.T) {
	t.Parallel()
	const coded, cloudInit = "guestinfo.ignition.config.data", "guestinfo.userdata"
	v := newVCenter(t)
	d, _ := v.wired(t, v.account())
	for secret, stale := range map[string]map[string]string{
		"cloud-init":       {coded: "b2xk", coded + ".encoding": "base64"},
		"worker-user-data": {cloudInit: "b2xk", cloudInit + ".encoding": "base64", "guestinfo.metadata": "b2xk", "guestinfo.metadata.encoding": "base64"},
	} {
		name := "of-" + secret
		resolved, err := d.Resolve(t.Context(), v.spec(map[string]any{"userDataSecret": map[string]any{"name": secret}}))
		must(t, err)
		r := provider.Ref{UID: uuid.NewUUID(), Name: name, Token: "t"}
		in, err := d.Create(t.Context(), r, resolved)
		must(t, err)
		v.Edit(v.machines(t)[name].Self, func(m *simulator.VirtualMachine) { // as above
			for key, value := range stale {
				m.Config.ExtraConfig = append(m.Config.ExtraConfig, option(key, value))
			}
		})
		r.Progress = in.Progress
		_, err = proceed(t.Context(), d, r, resolved)
		must(t, err)
		for key := range stale {
			if got := settingsOf(v.machines(t)[name])[key]; got != "" {
				t.Errorf("%s: %s = %q of the template", secret, key, got)
			}
		}
	}
}
