// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/libvirtd"
)

// seen is what a test reads of a domain's definition.
type seen struct {
	Type   string `xml:"type,attr"`
	Memory string `xml:"memory"`
	VCPU   string `xml:"vcpu"`
	Config struct {
		Name string `xml:"name,attr"`
		File string `xml:"file,attr"`
	} `xml:"sysinfo>entry"`
	CPU struct {
		Mode string `xml:"mode,attr"`
	} `xml:"cpu"`
	Disks []struct {
		Source struct {
			Pool   string `xml:"pool,attr"`
			Volume string `xml:"volume,attr"`
			File   string `xml:"file,attr"`
		} `xml:"source"`
		Serial string `xml:"serial"`
	} `xml:"devices>disk"`
	Network struct {
		Name string `xml:"network,attr"`
	} `xml:"devices>interface>source"`
	Mark mark `xml:"metadata>mark"`
}

func look(t *testing.T, text string) (s seen) {
	t.Helper()
	must(t, xml.Unmarshal([]byte(text), &s))
	return s
}

func TestEveryFieldArrives(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	r, in, err := created(t, d, "worker-a", specOf(uriOf(l), map[string]any{
		"volume": map[string]any{"volumeName": "os/disk"}, "networkInterfaceHostname": "node-a", "networkInterfaceAddress": "192.168.126.51", "autostart": true,
	}))
	must(t, err)
	m := l.Domains()["worker-a"]
	s := look(t, m.XML)
	root, config := s.Mark.volume(roleRoot), s.Mark.volume(roleIgnition)
	got := map[string]any{
		"uuid": m.UUID, "type": s.Type, "memory": s.Memory, "vcpu": s.VCPU, "cpu": s.CPU.Mode, "autostart": m.Autostart, "network": s.Network.Name, "disks": fmt.Sprint(s.Disks),
		"config": s.Config.Name + " " + s.Config.File, "volumes": l.Volumes(libvirtd.Pool), "reserved": l.Reserved(libvirtd.Network),
		"owner": fmt.Sprint(s.Mark.Cluster, " ", s.Mark.Of, " ", s.Mark.UID, " ", s.Mark.Token, " ", s.Mark.Namespace, "/", s.Mark.Name),
	}
	want := map[string]any{
		"uuid": idOf(uuidOf(r.UID)), "type": "kvm", "memory": "8192", "vcpu": "4", "cpu": "host-passthrough", "autostart": true, "network": libvirtd.Network,
		"disks": fmt.Sprintf("[{{%s %s } }]", libvirtd.Pool, root), "config": "opt/com.coreos/config " + libvirtd.Folder + "/" + config,
		"volumes": map[string]libvirtd.Volume{
			root:   {Format: "qcow2", Backing: libvirtd.Folder + "/" + libvirtd.Base, Capacity: 30 << 30},
			config: {Format: "raw", Capacity: uint64(len(ignitionData)), Data: ignitionData},
		},
		"reserved": []libvirtd.Host{{MAC: macOf(r.UID), Name: "node-a", IP: "192.168.126.51"}},
		"owner":    fmt.Sprintf("cluster-a389-fmxsv 5f0c2ad6-7e53-4fb4-b1a5-1d5e0b8d2f0e %s %s machines/worker-a", r.UID, r.Token),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("domain (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(root, "os-disk.") || !strings.HasSuffix(root, "."+string(r.UID)+"."+r.Token+".root") {
		t.Errorf("the root volume is called %s", root)
	}
	addresses := []corev1.NodeAddress{
		{Type: corev1.NodeInternalDNS, Address: "worker-a"}, {Type: corev1.NodeInternalDNS, Address: "node-a"}, {Type: corev1.NodeInternalIP, Address: "192.168.126.51"},
	}
	if diff := cmp.Diff(addresses, in.Addresses); diff != "" || in.ID != m.UUID || in.ProviderID != "libvirt:///"+m.UUID || in.CloudState != "running" || string(in.Status) != fmt.Sprintf(`{"instanceID":%q,"instanceState":"running"}`, in.ID) || !in.Sole || in.Created.IsZero() {
		t.Errorf("instance = %+v\n%s", in, diff)
	}
	removed(t, d, r)
	if l.Children() != 0 || len(l.Domains()) != 0 {
		t.Errorf("left: %v, %v", l.Volumes(libvirtd.Pool), l.Reserved(libvirtd.Network))
	}
}

// A disk that cloud-init knows has the user data byte for byte, and who may log in, which nobody else says.
func TestCloudInit(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	for name, access := range map[string]bool{"worker-a": true, "worker-b": false} {
		r, _, err := created(t, d, name, specOf(uriOf(l), map[string]any{"ignition": nil, "cloudInit": map[string]any{"userDataSecret": "cloud-init", "sshAccess": access}}))
		must(t, err)
		s := look(t, l.Domains()[name].XML)
		v, there := l.Volumes(libvirtd.Pool)[s.Mark.volume(roleCloudInit)]
		if !there || len(s.Disks) != 2 || s.Disks[1].Source.Volume != s.Mark.volume(roleCloudInit) || s.Config.File != "" {
			t.Fatalf("%s: %+v, volumes %v", name, s, l.Volumes(libvirtd.Pool))
		}
		meta := fmt.Sprintf("{\"instance-id\":%q,\"local-hostname\":%q}\n", r.UID, name)
		if access {
			meta = fmt.Sprintf("{\"instance-id\":%q,\"local-hostname\":%q,\"public-keys\":[\"ssh-ed25519 AAAA core@a\",\"ssh-ed25519 BBBB core@b\"]}\n", r.UID, name)
		}
		if diff := cmp.Diff(map[string]string{"meta-data": meta, "user-data": "#cloud-config\n"}, filesOf(t, v.Data)); diff != "" || v.Capacity != uint64(len(v.Data)) {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A volume with user data that somebody made is used as it is, and stays.
func TestIgnitionFromAVolume(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	l.AddVolume(libvirtd.Pool, "worker.ign", true)
	d := opened(t, l)
	for name, key := range map[string]string{"worker-a": "worker.ign", "worker-b": libvirtd.Folder + "/worker.ign"} {
		r, _, err := created(t, d, name, specOf(uriOf(l), map[string]any{"ignition": nil, "ignKey": key}))
		must(t, err)
		if s := look(t, l.Domains()[name].XML); s.Config.File != libvirtd.Folder+"/worker.ign" || l.Children() != 1 {
			t.Errorf("%s: %+v, %d children", name, s, l.Children())
		}
		removed(t, d, r)
	}
	_, _, err := created(t, d, "worker-c", specOf(uriOf(l), map[string]any{"ignition": nil, "ignKey": "nowhere.ign"}))
	wantError(t, err, provider.NotFound, "providerSpec.value.ignKey", "nowhere.ign")
}

// Where the firmware hands nothing over, Ignition knows a disk by its serial number.
func TestIgnitionWithoutFirmware(t *testing.T) {
	t.Parallel()
	m := mark{Cluster: "c", UID: "u", Token: "t", Stem: "a", Pool: "p"}
	for arch, disks := range map[string]int{"x86_64": 1, "aarch64": 1, "s390x": 2, "ppc64le": 2} {
		req := request{Hypervisor: "kvm", Arch: arch, Pool: "p", Folder: "/p"}
		must(t, xmlOf(&req))
		text, err := define(req, m)
		must(t, err)
		s := look(t, text)
		if len(s.Disks) != disks || disks == 2 && (s.Disks[1].Serial != "ignition" || s.Disks[1].Source.File != "/p/"+m.volume(roleIgnition)) || (s.Config.File == "") != (disks == 2) {
			t.Errorf("%s: %+v", arch, s)
		}
		if strings.Contains(text, `firmware="efi"`) != (arch == "aarch64") || strings.Contains(text, "<acpi>") == (disks == 2) || strings.Contains(text, "<apic>") != (arch == "x86_64") {
			t.Errorf("%s: %s", arch, text)
		}
	}
}

// xmlOf fills in what a spec says.
func xmlOf(req *request) error {
	s, err := parse(specOf("qemu:///system", nil))
	req.Spec = s
	return err
}

func TestHypervisors(t *testing.T) {
	t.Parallel()
	guest := func(os, arch string, types ...string) string {
		all := ""
		for _, of := range types {
			all += "<domain type='" + of + "'/>"
		}
		return "<guest><os_type>" + os + "</os_type><arch name='" + arch + "'>" + all + "</arch></guest>"
	}
	for text, want := range map[string]string{
		guest("hvm", "i686", "qemu", "kvm") + guest("hvm", "x86_64", "qemu", "kvm"): "kvm x86_64",
		guest("hvm", "x86_64", "qemu"):                                              "qemu x86_64",
		guest("xen", "x86_64", "xen"):                                               "",
		guest("hvm", "aarch64", "qemu"):                                             "",
		"":                                                                          "",
		guest("xen", "x86_64", "xen") + guest("hvm", "x86_64", "test"): "test x86_64",
	} {
		var c capabilities
		must(t, understand("<capabilities><host><uuid>u</uuid><cpu><arch>x86_64</arch></cpu></host>"+text+"</capabilities>", &c))
		var req request
		err := req.choose(c)
		if want == "" {
			wantError(t, err, provider.Exhausted, "x86_64")
		} else if err != nil || req.Hypervisor+" "+req.Arch != want {
			t.Errorf("%s: %s %s, %v", text, req.Hypervisor, req.Arch, err)
		}
	}
}

func TestPrerequisiteThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	l.AddPool("off", "dir")
	l.Activate("off", false)
	d := opened(t, l)
	for i, tt := range []struct {
		change map[string]any
		code   provider.Code
		names  []string
	}{
		{map[string]any{"ignition": map[string]any{"userDataSecret": "absent"}}, provider.Exhausted, []string{"machines/absent", "not found"}},
		{map[string]any{"ignition": map[string]any{"userDataSecret": "unread"}}, provider.Unknown, []string{"machines/unread", "not ready"}},
		{map[string]any{"ignition": map[string]any{"userDataSecret": "empty"}}, provider.Exhausted, []string{"machines/empty", "no key userData"}},
		{map[string]any{"ignition": nil, "cloudInit": map[string]any{"userDataSecret": "worker-user-data", "sshAccess": true}}, provider.Exhausted, []string{"providerSpec.value.cloudInit.sshAccess", "machines/worker-user-data", "ssh-publickey"}},
		{map[string]any{"volume": map[string]any{"poolName": "nowhere"}}, provider.NotFound, []string{"providerSpec.value.volume.poolName", "nowhere", "create it"}},
		{map[string]any{"volume": map[string]any{"poolName": nil}}, provider.NotFound, []string{"providerSpec.value.volume.poolName", `"default"`}},
		{map[string]any{"volume": map[string]any{"poolName": "off", "baseVolumeID": libvirtd.Folder + "/" + libvirtd.Base}}, provider.Exhausted, []string{"providerSpec.value.volume.poolName", "off", "start it"}},
		{map[string]any{"networkInterfaceName": "nowhere"}, provider.NotFound, []string{"providerSpec.value.networkInterfaceName", "nowhere"}},
		{map[string]any{"networkInterfaceName": nil, "networkUUID": "11111111-1111-1111-1111-111111111111"}, provider.NotFound, []string{"providerSpec.value.networkUUID", "11111111"}},
		{map[string]any{"networkInterfaceAddress": "10.0.0.0/24"}, provider.Exhausted, []string{"providerSpec.value.networkInterfaceAddress", "10.0.0.0/24", "192.168.126"}},
	} {
		r, _, err := created(t, d, fmt.Sprintf("worker-%d", i), specOf(uriOf(l), tt.change))
		wantError(t, err, tt.code, tt.names...)
		if err := d.Delete(t.Context(), r); err != nil && provider.CodeOf(err) != provider.NotFound {
			t.Errorf("%v: Delete = %v", tt.names, err)
		}
	}
	l.Switch(libvirtd.Network, false)
	_, _, err := created(t, d, "worker-z", specOf(uriOf(l), nil))
	wantError(t, err, provider.Exhausted, "providerSpec.value.networkInterfaceName", "start it")
}

// A network may be named by its UUID, which it keeps.
func TestNetworkByItsUUID(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	_, in, err := created(t, opened(t, l), "worker-a", specOf(uriOf(l), map[string]any{"networkInterfaceName": nil, "networkUUID": "01020304-0506-4708-890a-000000000000"}))
	if err != nil || look(t, l.Domains()["worker-a"].XML).Network.Name != libvirtd.Network {
		t.Errorf("%+v, %v", in, err)
	}
}

// A network that is named in both ways is one.
func TestNetworkOfTwoNames(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	_, err := d.Resolve(t.Context(), specOf(uriOf(l), map[string]any{"networkUUID": "01020304-0506-4708-890a-000000000000"}))
	must(t, err)
	_, err = d.Resolve(t.Context(), specOf(uriOf(l), map[string]any{"networkUUID": "8b1e7c4e-1111-4222-8333-444455556666"}))
	wantError(t, err, provider.Exhausted, "providerSpec.value.networkUUID", "8b1e7c4e-1111-4222-8333-444455556666", libvirtd.Network)
}

// User data that changed while an attempt was under way is written as it is now, whole.
func TestUserDataThatChanged(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	resolved, err := d.Resolve(t.Context(), specOf(uriOf(l), nil))
	must(t, err)
	l.Memory(0)
	r := refOf("worker-a")
	_, err = proceed(t.Context(), d, &r, resolved)
	wantError(t, err, provider.Exhausted, "Cannot allocate memory")
	l.Memory(1 << 20)
	v := look(t, l.Domains()["worker-a"].XML).Mark.volume(roleIgnition)
	if l.Volumes(libvirtd.Pool)[v].Data != ignitionData {
		t.Errorf("written is %+v", l.Volumes(libvirtd.Pool)[v])
	}
	a := accountOf(uriOf(l))
	a.UserData = d.account.UserData
	other := openedFor(t, a)
	other.account.UserData = userDataOf("short")
	in, err := proceed(t.Context(), other, &r, resolved)
	if got := l.Volumes(libvirtd.Pool)[v]; err != nil || in.State != provider.StateRunning || got.Data != "short" || got.Capacity != 5 {
		t.Errorf("%+v, %v, %+v", in, err, got)
	}
}

// A domain that runs, and that nobody noted, as its starter was cut off, is noted and left alone.
func TestStartThatWasNotNoted(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	resolved, err := d.Resolve(t.Context(), specOf(uriOf(l), nil))
	must(t, err)
	r := refOf("worker-a")
	once(l, "DomainSetMetadata", 1, libvirtd.Lost)
	for range 2 {
		in, _ := d.Create(t.Context(), r, resolved)
		r.Progress = in.Progress
	}
	if m := l.Domains()["worker-a"]; m.State != libvirt.DomainRunning || strings.Contains(m.XML, spaceLaunched) {
		t.Fatalf("%+v", m)
	}
	uploads := l.Calls("StorageVolUpload")
	in, err := d.Create(t.Context(), r, resolved)
	if err != nil || in.State != provider.StateRunning || !strings.Contains(l.Domains()["worker-a"].XML, spaceLaunched) || l.Calls("StorageVolUpload") != uploads {
		t.Errorf("%+v, %v", in, err)
	}
}

// Who defines a domain once more, as he had looked before it was there, takes away that it was launched: it is not started anew for that
// when somebody switches it off.
func TestDomainThatWasDefinedTwice(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	resolved, err := d.Resolve(t.Context(), specOf(uriOf(l), nil))
	must(t, err)
	r := refOf("worker-a")
	_, err = d.Create(t.Context(), r, resolved)
	must(t, err)
	first := l.Domains()["worker-a"].XML
	_, err = proceed(t.Context(), d, &r, resolved)
	must(t, err)
	_ = l.Define(first) // it runs already, which is no matter
	if found, err := d.Find(t.Context(), r); err != nil || len(found) != 1 || found[0].State != provider.StateRunning || found[0].Token != r.Token {
		t.Errorf("found %+v, %v", found, err)
	}
	must(t, d.PowerOff(t.Context(), r))
	if found, err := d.Find(t.Context(), r); err != nil || len(found) != 1 || found[0].State != provider.StateStopped {
		t.Errorf("found %+v, %v", found, err)
	}
	if in, err := d.Create(t.Context(), r, resolved); err != nil || in.State != provider.StateStopped {
		t.Errorf("Create = %+v, %v", in, err)
	}
}

// A name that somebody else has on the host is a refusal that leaves nothing behind, and the other as it is.
func TestStrangerOfTheSameName(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	must(t, l.Define(`<domain type='kvm'><name>worker-a</name><uuid>11111111-1111-4111-8111-111111111111</uuid><memory unit='MiB'>1</memory></domain>`))
	r, in, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	wantError(t, err, provider.Exhausted, "worker-a", "11111111-1111-4111-8111-111111111111", "rename or remove it")
	if len(in.Progress) > 0 || len(l.Domains()) != 1 || l.Children() != 0 {
		t.Errorf("left: %+v, %d domains, %d children", in, len(l.Domains()), l.Children())
	}
	if err := d.Delete(t.Context(), r); provider.CodeOf(err) != provider.NotFound || l.Domains()["worker-a"].State != libvirt.DomainRunning {
		t.Errorf("Delete = %v", err)
	}
}

// What cannot stand in the name of a file is refused before anything is made.
func TestIdentitiesThatAreNoNames(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	resolved, err := d.Resolve(t.Context(), specOf(uriOf(l), nil))
	must(t, err)
	for _, r := range []provider.Ref{{UID: "../a", Name: "a", Token: "t"}, {UID: "u", Name: "a", Token: "t.root"}, {Name: "a", Token: "t"}, {UID: "u", Name: "a"}} {
		_, err := d.Create(t.Context(), r, resolved)
		wantError(t, err, provider.Invalid, "must be a word")
	}
	if len(l.Domains()) != 0 {
		t.Error("something was made")
	}
}
