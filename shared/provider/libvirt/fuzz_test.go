// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/libvirtd"
)

// FuzzDefine: whatever names a Machine, its spec and its host have, the definition says just that, and its mark is read as it was written.
func FuzzDefine(f *testing.F) {
	f.Add("worker-a", "pool", "/pool", "net", "c")
	f.Add(`a'/><qemu:commandline>`, `p"&<>`, "/\x00", "]]>", "<!--")
	f.Fuzz(func(t *testing.T, name, pool, folder, network, cluster string) {
		var req request
		must(t, xmlOf(&req))
		req.Hypervisor, req.Arch, req.Pool, req.Folder, req.Network = "kvm", "x86_64", pool, folder, network
		d := &driver{account: provider.Account{ClusterID: cluster, Namespace: "machines"}}
		m := d.mark(provider.Ref{UID: "u", Name: name, Token: "t"}, req, "host", time.Unix(0, 0))
		text, err := define(req, m)
		must(t, err)
		var got domain
		got.understand(text)
		whole := func(s string) bool { return strings.ToValidUTF8(s, "") == s && !strings.ContainsFunc(s, odder) }
		if got.Garbled != "" || got.Mark.UID != "u" || got.Mark.Token != "t" {
			t.Fatalf("%s: %+v", text, got)
		}
		if whole(name+pool+cluster) && (got.Mark.Name != name || got.Mark.Pool != pool || got.Mark.Cluster != cluster) {
			t.Errorf("%+v, of %q %q %q", got.Mark, name, pool, cluster)
		}
		var elements struct {
			All []struct {
				XMLName xml.Name
			} `xml:",any"`
		}
		must(t, xml.Unmarshal([]byte(text), &elements))
		if len(elements.All) != 11 {
			t.Errorf("%d elements: %s", len(elements.All), text)
		}
		v := m.volume(roleRoot)
		if parsed, ours := parseVolume(v); !ours || parsed.UID != "u" || parsed.Token != "t" || parsed != parsed.sealed(cluster, "host", pool) || len(v) > 255 || strings.ContainsAny(v, "/\x00") {
			t.Errorf("the volume is called %q", v)
		}
	})
}

// odder are the characters that XML cannot say, or says otherwise.
func odder(r rune) bool { return r < 0x20 || r >= 0x7f }

// FuzzUnderstand: whatever a domain carries, its mark is read or is none, and a mark is in the driver's own namespace.
func FuzzUnderstand(f *testing.F) {
	good, err := xml.Marshal(definition{Name: "a", Mark: mark{Cluster: "c", UID: "u", Token: "t"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(good))
	f.Add("<domain><metadata><x:mark xmlns:x='https://example.com/' cluster='c' uid='u'/></metadata></domain>")
	f.Add("<domain><metadata><launched xmlns='" + spaceLaunched + "'/><held xmlns='" + spaceHeld + "'/></metadata></domain>")
	f.Add("<domain><metadata><mark xmlns='" + spaceMark + "' autostart='maybe'/></metadata></domain>")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		var m domain
		m.understand(text)
		if m.Garbled != "" && (m.Mark != (mark{}) || m.Launched || m.Held || m.Deleting) {
			t.Errorf("%+v of what cannot be read", m)
		}
		if m.Mark != (mark{}) && m.Mark.XMLName.Space != spaceMark {
			t.Errorf("a mark in the namespace %q", m.Mark.XMLName.Space)
		}
		_ = m.Mark.created()
	})
}

// FuzzFree: whatever a network says of itself, an address that is taken of it is within the range that was asked for and a subnet with
// DHCP, and nobody's.
func FuzzFree(f *testing.F) {
	f.Add("<network><ip address='192.168.126.1' netmask='255.255.255.0'><dhcp><host mac='52:54:00:00:00:01' ip='192.168.126.9'/></dhcp></ip></network>", "192.168.126.8/30")
	f.Add("<network><ip address='10.0.0.1' prefix='8'><dhcp/></ip></network>", "0.0.0.0/0")
	f.Add("<network><ip address='10.0.0.1' netmask='0.0.0.0'><dhcp/></ip></network>", "255.255.255.255")
	f.Add("<network><ip address='10.0.0.1' prefix='31'><dhcp/></ip></network>", "10.0.0.0/31")
	f.Fuzz(func(t *testing.T, text, wanted string) {
		var n networkXML
		if understand(text, &n) != nil {
			return
		}
		p, err := parseRange(wanted)
		if err != nil {
			return
		}
		a, err := n.free(p, "u", nil)
		if err != nil {
			return
		}
		within := false
		for _, s := range n.subnets() {
			within = within || s.Contains(a) && s.Addr() != a
		}
		if !within || !p.Contains(a) {
			t.Errorf("%s of %s in %v", a, p, n.subnets())
		}
		for _, h := range n.hosts() {
			if h.IP == a.String() {
				t.Errorf("%s is taken", a)
			}
		}
	})
}

// FuzzCreate: whatever stands in a Machine for what was resolved and how far it came, a step is made or refused, and no domain of somebody
// else is touched.
func FuzzCreate(f *testing.F) {
	good, err := json.Marshal(request{Hypervisor: "kvm", Arch: "x86_64", Pool: libvirtd.Pool, Folder: libvirtd.Folder, Base: libvirtd.Folder + "/" + libvirtd.Base, Format: "qcow2", Size: 1 << 30, Network: libvirtd.Network})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(nil), good)
	f.Add([]byte(`{"step":"start"}`), good)
	f.Add([]byte(`[`), []byte(`{"pool":"nowhere"}`))
	f.Add([]byte(`null`), []byte(`null`))
	f.Add([]byte(nil), []byte(`{"pool":7}`))
	f.Fuzz(func(t *testing.T, progress, resolved []byte) {
		l := newDaemon(t)
		d := opened(t, l)
		theirs, _, err := created(t, d, "theirs", specOf(uriOf(l), nil))
		must(t, err)
		before := l.Domains()["theirs"].XML
		r := provider.Ref{UID: types.UID("6b0d1a34-0000-4000-8000-000000000001"), Name: "worker-a", Token: "TOKEN", Progress: progress}
		for range 3 {
			in, err := d.Create(t.Context(), r, resolved)
			switch {
			case err != nil && (in.ID != "" || len(in.Progress) > 0 && !json.Valid(in.Progress)):
				t.Errorf("%v, and yet %+v", err, in)
			case err == nil && in.State == provider.StateIncomplete && !json.Valid(in.Progress):
				t.Errorf("a step whose progress is %q", in.Progress)
			case err == nil && in.UID != r.UID:
				t.Errorf("the instance is %+v", in)
			}
			r.Progress = in.Progress
		}
		removed(t, d, provider.Ref{UID: r.UID})
		if l.Domains()["theirs"].XML != before || l.Children() != 2 || len(l.Domains()) != 1 {
			t.Errorf("%s is touched: %v", theirs.Name, l.Domains())
		}
	})
}
