// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/digitalocean/go-libvirt"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/libvirtd"
)

// Whose a domain is: its mark, cluster, UID and token, and the UUID that follows from the UID; of one without a mark its UUID, or the id
// that a Machine records (RELIABILITY 2b).
func TestWhoseADomainIs(t *testing.T) {
	t.Parallel()
	d := &driver{account: provider.Account{ClusterID: "prod"}}
	own := domain{Ref: libvirt.Domain{UUID: uuidOf("u")}, Mark: mark{Cluster: "prod", UID: "u", Token: "t"}}
	change := func(f func(*domain)) domain {
		m := own
		f(&m)
		return m
	}
	bare, strange := domain{Ref: own.Ref}, domain{Ref: libvirt.Domain{UUID: libvirt.UUID{7}}}
	others := change(func(m *domain) { m.Mark.Cluster = "test" })
	copied := change(func(m *domain) { m.Ref.UUID = libvirt.UUID{7} })
	theirs := change(func(m *domain) { m.Mark.UID, m.Ref.UUID = "v", uuidOf("v") })
	for _, c := range []struct {
		what string
		m    domain
		r    provider.Ref
		want bool
	}{
		{"its own", own, provider.Ref{UID: "u"}, true},
		{"its own attempt's", own, provider.Ref{UID: "u", Attempt: true, Token: "t"}, true},
		{"another attempt's", own, provider.Ref{UID: "u", Attempt: true, Token: "t2"}, false},
		{"another Machine's", theirs, provider.Ref{UID: "u", ID: idOf(uuidOf("v")), ProviderID: providerID(uuidOf("v"))}, false},
		{"another cluster's", others, provider.Ref{UID: "u", ProviderID: providerID(uuidOf("u"))}, false},
		{"another cluster's by its id", others, provider.Ref{ID: idOf(uuidOf("u"))}, false},
		{"a copy", copied, provider.Ref{UID: "u", ID: idOf(libvirt.UUID{7}), ProviderID: providerID(libvirt.UUID{7})}, false},
		{"by its id", own, provider.Ref{ID: idOf(uuidOf("u"))}, true},
		{"by its provider id", own, provider.Ref{ProviderID: providerID(uuidOf("u"))}, true},
		{"by another id", own, provider.Ref{ID: "v"}, false},
		{"without a mark", bare, provider.Ref{UID: "u"}, true},
		{"without a mark, of nobody", strange, provider.Ref{UID: "u"}, false},
		{"without a mark, recorded", strange, provider.Ref{UID: "u", ProviderID: providerID(libvirt.UUID{7})}, true},
		{"without a mark, of nobody's attempt", strange, provider.Ref{UID: "u", ProviderID: providerID(libvirt.UUID{7}), Attempt: true, Token: "t"}, false},
	} {
		if got := d.means(c.r, c.m); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

// cloned copies a domain with all that it carries, as people and backups do, under another name and UUID.
func cloned(t *testing.T, l *libvirtd.Daemon, name, other string) string {
	t.Helper()
	const id = "99999999-9999-4999-8999-999999999999"
	m := l.Domains()[name]
	must(t, l.Define(strings.NewReplacer("<name>"+name+"</name>", "<name>"+other+"</name>", m.UUID, id).Replace(m.XML)))
	return id
}

func TestCopyIsNobodysInstance(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	r, in, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	must(t, err)
	id := cloned(t, l, "worker-a", "forensics")
	all, err := d.List(t.Context())
	must(t, err)
	told := 0
	for _, i := range all {
		switch {
		case i.ID == in.ID && (i.UID != r.UID || !i.Sole):
			t.Errorf("the instance itself is %+v", i)
		case i.ID == id && (i.UID != "" || i.Sole || i.Token != "" || !strings.Contains(i.Message, string(r.UID)) || i.State != provider.StateRunning):
			t.Errorf("the copy is %+v", i)
		case i.ID == id:
			told++
		}
	}
	if told != 1 || len(all) != 2 {
		t.Errorf("told of the copy %d times: %+v", told, all)
	}
	for _, ref := range []provider.Ref{{ID: id}, {Name: r.Name, ProviderID: scheme + id}, {UID: r.UID, ID: id, ProviderID: scheme + id}} {
		removed(t, d, ref)
	}
	if left := l.Domains(); len(left) != 1 || left["forensics"].State != libvirt.DomainRunning {
		t.Errorf("left %v", left)
	}
}

// A mark that somebody took away, or wrote into, hides no other domain, and its Machine still finds its own by the UUID.
func TestMarkThatCannotBeRead(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	_, _, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	must(t, err)
	r, _, err := created(t, d, "worker-b", specOf(uriOf(l), map[string]any{"autostart": true}))
	must(t, err)
	m := l.Domains()["worker-b"]
	for _, text := range []string{strings.Replace(m.XML, `autostart="true"`, `autostart="now"`, 1), strings.Replace(m.XML, spaceMark, "https://example.com/other", 1)} {
		_ = l.Define(text) // it runs already, which is no matter
		all, err := d.List(t.Context())
		found, err2 := d.Find(t.Context(), r)
		if err != nil || err2 != nil || len(found) != 1 || found[0].ID != m.UUID || found[0].State != provider.StateRunning {
			t.Errorf("found %+v, %v, %v", found, err, err2)
		}
		if !slices.ContainsFunc(all, func(i provider.Instance) bool { return i.Name == "worker-a" }) || slices.ContainsFunc(all, func(i provider.Instance) bool { return i.ID == m.UUID }) {
			t.Errorf("listed %+v", all)
		}
		_, err = d.Create(t.Context(), r, []byte(`{}`))
		wantError(t, err, provider.Exhausted, "worker-b", m.UUID, "restore its mark")
	}
	removed(t, d, r)
	if left := l.Domains(); len(left) != 1 || l.Children() != 2 {
		t.Errorf("left %v, %d children", left, l.Children())
	}
}

// What a creator that slept made after all was removed is listed as its Machine's and attempt's, and goes by them, or by its own id.
func TestLeftoverVolumesAreSwept(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	r, _, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	must(t, err)
	of := look(t, l.Domains()["worker-a"].XML).Mark
	later, elsewhere, gone := of, of, of
	later.Token = machine.Token(r.UID, 2, "zone")
	elsewhere.Cluster, elsewhere.Pool, gone.Pool = "another", "images", "images"
	gone.UID, gone.Token = "6b0d1a34-0000-4000-8000-000000000001", machine.Token("x", 1, "zone")
	l.AddPool("images", "dir")
	l.AddVolume(libvirtd.Pool, later.volume(roleIgnition), false)
	l.AddVolume("images", elsewhere.volume(roleRoot), false)
	l.AddVolume("images", gone.volume(roleRoot), false)
	l.AddVolume("images", "somebody.elses.root", false)
	all, err := d.List(t.Context())
	must(t, err)
	var children []provider.Instance
	for _, i := range all {
		if i.Child {
			children = append(children, i)
		}
	}
	if len(all) != 3 || len(children) != 2 {
		t.Fatalf("listed %+v", all)
	}
	for _, i := range children {
		if i.ClusterUID != d.account.ClusterUID || i.UID != r.UID && i.UID != gone.UID || i.Token != later.Token && i.Token != gone.Token {
			t.Errorf("listed %+v", i)
		}
	}
	own := "volume/" + libvirtd.Pool + "/" + of.volume(roleRoot)
	for _, ref := range []provider.Ref{{ID: own}, {ID: "volume/images/somebody.elses.root"}, {ID: "volume/images/" + elsewhere.volume(roleRoot)}} {
		if err := d.Delete(t.Context(), ref); provider.CodeOf(err) != provider.NotFound {
			t.Errorf("Delete %s = %v", ref.ID, err)
		}
	}
	if l.Children() != 6 {
		t.Errorf("%d children of 6 are left", l.Children())
	}
	if err := d.Delete(t.Context(), provider.Ref{UID: r.UID, Token: machine.Token(r.UID, 3, "zone"), Attempt: true}); provider.CodeOf(err) != provider.NotFound || l.Children() != 6 {
		t.Errorf("Delete of another attempt = %v, %d children of 6 are left", err, l.Children())
	}
	removed(t, d, provider.Ref{ID: "volume/images/" + gone.volume(roleRoot)})
	removed(t, d, provider.Ref{UID: r.UID, Token: later.Token, Attempt: true})
	if all, err := d.List(t.Context()); err != nil || len(all) != 1 || l.Children() != 4 || len(l.Domains()) != 1 {
		t.Errorf("listed %+v, %v, %d children", all, err, l.Children())
	}
	removed(t, d, provider.Ref{UID: r.UID})
	if l.Children() != 2 || len(l.Domains()) != 0 {
		t.Errorf("left %v, %v", l.Volumes(libvirtd.Pool), l.Volumes("images"))
	}
}

// A domain whose volumes nobody can see is not gone, and says so; one whose pool is gone is.
func TestPoolThatIsNotActiveKeepsTheDomain(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	r, _, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	must(t, err)
	l.Activate(libvirtd.Pool, false)
	wantError(t, d.Delete(t.Context(), r), provider.Exhausted, "worker-a", libvirtd.Pool, "start it")
	found, err := d.Find(t.Context(), r)
	if err != nil || len(found) != 1 || found[0].State != provider.StateDeleting || !found[0].Again {
		t.Errorf("found %+v, %v", found, err)
	}
	wantError(t, d.PowerCycle(t.Context(), r), provider.NotFound, "worker-a")
	l.Activate(libvirtd.Pool, true)
	removed(t, d, r)
	if l.Children() != 0 {
		t.Errorf("left %v", l.Volumes(libvirtd.Pool))
	}
}

// What a deletion began is ended before the Machine gets another domain, as of a Machine whose deletion a backup knows nothing of.
func TestDeletionThatBeganIsEndedFirst(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	resolved, err := d.Resolve(t.Context(), specOf(uriOf(l), nil))
	must(t, err)
	r := refOf("worker-a")
	before, err := proceed(t.Context(), d, &r, resolved)
	must(t, err)
	once(l, "StorageVolDelete", 1, libvirtd.Refused)
	wantError(t, d.Delete(t.Context(), r), provider.Exhausted, "delete volume")
	l.Strike(nil)
	r.Progress, r.Token = nil, machine.Token(r.UID, 2, "zone")
	after, err := proceed(t.Context(), d, &r, resolved)
	if err != nil || after.State != provider.StateRunning || after.Token != r.Token || after.ID != before.ID || l.Children() != 2 {
		t.Errorf("%+v, %v, %d children", after, err, l.Children())
	}
}

// A daemon that keeps neither checkpoints nor firmware variables is asked for what it knows; a disk that people attached stays.
func TestForeignDisksStay(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	r, _, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	must(t, err)
	l.AddVolume(libvirtd.Pool, "pvc-1.raw", false)
	m := l.Domains()["worker-a"]
	_ = l.Define(strings.Replace(m.XML, "</devices>", fmt.Sprintf("<disk type='volume'><source pool='%s' volume='pvc-1.raw'/></disk></devices>", libvirtd.Pool), 1))
	removed(t, d, r)
	if left := l.Volumes(libvirtd.Pool); len(left) != 1 || left["pvc-1.raw"].Format == "" {
		t.Errorf("left %v", left)
	}
}
