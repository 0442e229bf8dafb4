// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// TestEveryField holds what is asked of the cloud against the spec (SPEC E14). What a port, a volume or the instance has
// to be stands beside the fields that say so.
func TestEveryField(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		group, own, shared, subnet, guards := f.named("server_groups", "ocp43-worker"), f.named("networks", "ocp43-net"), f.named("networks", "storage"), f.named("subnets", "ocp43-nodes"), f.named("security-groups", "ocp43-worker")
		a := accountOf("secret")
		a.VirtualIPs = []string{"10.0.0.5", "10.0.0.7"}
		data := []byte{0, 0xff, 0xfe, '{', 0x80}
		a.UserData = func(context.Context, string) (map[string][]byte, string, error) {
			return map[string][]byte{"userData": data}, "1", nil
		}
		l := lifeOf(t, f, a, fmt.Sprintf(`"keyName": "core", "availabilityZone": "nova", "configDrive": true, "trunk": true, "serverGroupID": %[1]q, "serverGroupName": "ocp43-worker",
			"primarySubnet": %[2]q, "floatingIP": "198.51.100.7", "rootVolume": {"diskSize": 20, "volumeType": "fast", "availabilityZone": "cinder"},
			"additionalBlockDevices": [{"name": "etcd", "sizeGiB": 10, "storage": {"type": "Volume", "volume": {"type": "nvme", "availabilityZone": "near"}}}, {"name": "scratch", "sizeGiB": 5, "storage": {"type": "Local"}}],
			"securityGroups": [{"uuid": %[5]q}],
			"networks": [
				{"filter": {"name": "storage"}, "fixedIp": "10.9.9.9", "portTags": ["a"], "vnicType": "direct", "profile": {"capabilities": "[switchdev]", "trusted": "true", "local_link": "x"}, "portSecurity": false},
				{"uuid": %[3]q, "subnets": [{"uuid": %[2]q, "portTags": ["c"]}], "portTags": ["b"], "noAllowedAddressPairs": true},
				{"subnets": [{"filter": {"name": "ocp43-both"}, "portTags": ["d"]}]}],
			"ports": [
				{"networkID": %[3]q, "nameSuffix": "api", "description": "of people", "adminStateUp": true, "macAddress": "fa:16:3e:00:00:01", "fixedIPs": [{"subnetID": %[2]q, "ipAddress": "10.0.9.9"}],
					"securityGroups": ["sg-1"], "allowedAddressPairs": [{"ipAddress": "10.0.0.5", "macAddress": "fa:16:3e:00:00:02"}], "tags": ["e"], "trunk": false, "projectID": "another"},
				{"networkID": %[4]q, "securityGroups": [], "vnicType": "macvtap", "profile": {"capabilities": "switchdev"}, "portSecurity": true}]`, group, subnet, own, shared, guards))
		in := l.up(t)
		one := f.only(t, "servers")
		wantJSON(t, "instance", one, `"key_name": "core", "availability_zone": "nova", "config_drive": true, "name": "`+l.ref.Name+`", "hints": {"group": "`+group+`"}, "flavorRef": "`+f.named("flavors", "4c12g30d")+`",
			"metadata": {"Name": "ocp43-worker", "openshiftClusterID": "ocp43-abcde", "machine-primary-network": "ocp43-net"}, "user_data": "`+base64.StdEncoding.EncodeToString(data)+`"`)
		if tags := f.things["servers"][in.ID].tags(); !slices.Contains(tags, "openshiftClusterID=ocp43-abcde") {
			t.Errorf("the instance's tags are %v", tags)
		}
		for id, trunk := range f.things["trunks"] {
			if !slices.Contains(trunk.tags(), "openshiftClusterID=ocp43-abcde") {
				t.Errorf("the tags of trunk %s are %v", id, trunk.tags())
			}
		}
		f.wantDisks(t, one)
		f.wantPort(t, l.ref.Name+"-0", "a", true, `"network_id": "`+shared+`", "binding:vnic_type": "direct", "binding:profile": {"capabilities": ["switchdev"], "trusted": true, "local_link": "x"},
			"port_security_enabled": false, "security_groups": [], "allowed_address_pairs": null, "fixed_ips": null`)
		f.wantPort(t, l.ref.Name+"-1", "b c", true, `"network_id": "`+own+`", "fixed_ips": [{"subnet_id": "`+subnet+`"}], "security_groups": ["`+guards+`"], "allowed_address_pairs": null`)
		f.wantPort(t, l.ref.Name+"-2", "d", true, `"network_id": "`+own+`", "fixed_ips": [{"subnet_id": "`+f.named("subnets", "ocp43-both")+`"}], "security_groups": ["`+guards+`"],
			"allowed_address_pairs": [{"ip_address": "10.0.0.5"}, {"ip_address": "10.0.0.7"}]`)
		f.wantPort(t, l.ref.Name+"-api", "e", false, `"network_id": "`+own+`", "description": "of people", "admin_state_up": true, "mac_address": "fa:16:3e:00:00:01", "security_groups": ["sg-1"],
			"fixed_ips": [{"subnet_id": "`+subnet+`", "ip_address": "10.0.9.9"}], "allowed_address_pairs": [{"ip_address": "10.0.0.5", "mac_address": "fa:16:3e:00:00:02"}], "project_id": null`)
		f.wantPort(t, l.ref.Name+"-4", "", true, `"network_id": "`+shared+`", "security_groups": ["`+guards+`"], "binding:vnic_type": "macvtap", "binding:profile": {"capabilities": ["switchdev"]}, "port_security_enabled": true`)
		wantJSON(t, "floating IP", f.only(t, "floatingips"), `"floating_ip_address": "198.51.100.7"`)
		if p := f.only(t, "floatingips")["port_id"]; p != f.named("ports", l.ref.Name+"-0") {
			t.Errorf("the floating IP belongs to %v", p)
		}
		if in.Region != "regionOne" || in.Zone != "nova" || in.Type != "4c12g30d" || in.CloudState != "ACTIVE" {
			t.Errorf("instance %+v", in)
		}
		l.down(t)
		wantNothing(t, f, "every field")
	})
}

// A port whose list of security groups is empty has those of the instance (SPEC E14). Neutron takes none on a network without port
// security: there it has none, as the spec says.
func TestPortWithoutSecurityGroups(t *testing.T) {
	t.Parallel()
	for security, want := range map[any]string{nil: "guards", true: "guards", false: ""} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			guards, shared := f.named("security-groups", "ocp43-worker"), f.named("networks", "storage")
			if security != nil {
				f.things["networks"][shared].fields["port_security_enabled"] = security
			}
			l := lifeOf(t, f, accountOf("secret"), fmt.Sprintf(`"securityGroups": [{"uuid": %q}], "ports": [{"networkID": %q, "nameSuffix": "data", "securityGroups": []}]`, guards, shared))
			l.up(t)
			f.wantPort(t, l.ref.Name+"-data", "", false, `"network_id": "`+shared+`", "security_groups": [`+map[string]string{"guards": `"` + guards + `"`}[want]+`]`)
		})
	}
}

// named returns the id of what has a name.
func (f *fake) named(kind, name string) string {
	for id, one := range f.things[kind] {
		if one.text("name") == name {
			return id
		}
	}
	return "no " + name
}

// wantDisks wants a root volume, another volume, and space on the host, all of which go with the instance.
func (f *fake) wantDisks(t *testing.T, server map[string]any) {
	t.Helper()
	name := fmt.Sprint(server["name"])
	for _, v := range f.things["volumes"] {
		switch v.text("name") {
		case name + "-root":
			wantJSON(t, "root", v.fields, `"size": 20, "volume_type": "fast", "availability_zone": "cinder", "imageRef": "`+f.named("images", "rhcos-ocp43")+`"`)
		case name + "-etcd":
			wantJSON(t, "etcd", v.fields, `"size": 10, "volume_type": "nvme", "availability_zone": "near", "imageRef": null`)
		default:
			t.Errorf("volume %s", v.text("name"))
		}
	}
	if n := len(f.things["volumes"]); n != 2 || server["imageRef"] != nil {
		t.Errorf("%d volumes, and the instance boots from image %v", n, server["imageRef"])
	}
	devices, err := json.Marshal(server["block_device_mapping_v2"])
	if err != nil {
		t.Fatal(err)
	}
	if text := string(devices); strings.Count(text, `"delete_on_termination":true`) != 3 || !strings.Contains(text, `"tag":"scratch","volume_size":5`) || !strings.Contains(text, `"boot_index":0,"delete_on_termination":true,"destination_type":"volume","source_type":"volume"`) {
		t.Errorf("devices %s", text)
	}
}

// wantPort wants a port of this name, with these tags beside ours and the instance's, as the parent of a trunk or not.
func (f *fake) wantPort(t *testing.T, name, tags string, trunk bool, text string) {
	t.Helper()
	p, ok := f.things["ports"][f.named("ports", name)]
	if !ok {
		t.Errorf("no port %s", name)
		return
	}
	wantJSON(t, name, p.fields, text)
	own := slices.DeleteFunc(p.tags(), func(tag string) bool { return strings.HasPrefix(tag, "machine-") })
	if got, want := strings.Join(own, " "), strings.TrimSpace("openshiftClusterID=ocp43-abcde "+tags); got != want {
		t.Errorf("%s has the tags %q, want %q", name, got, want)
	}
	if has := p.fields["trunk_details"] != nil; has != trunk {
		t.Errorf("%s has a trunk: %v", name, has)
	}
}
