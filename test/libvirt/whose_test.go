// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"slices"
	"strings"
	"testing"

	sdk "github.com/digitalocean/go-libvirt"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// defined returns a domain, and how it is defined.
func (a *admin) defined(t *testing.T, name string) (sdk.Domain, string) {
	t.Helper()
	ref, err := a.DomainLookupByName(name)
	must(t, err)
	text, err := a.DomainGetXMLDesc(ref, sdk.DomainXMLInactive)
	must(t, err)
	return ref, text
}

// runs goes on with a creation until the domain runs.
func runs(t *testing.T, create func() (provider.Instance, error)) (in provider.Instance) {
	t.Helper()
	for in.State != provider.StateRunning {
		var err error
		in, err = create()
		must(t, err)
	}
	return in
}

// Who defines a domain once more, as he had not seen that it runs, takes away that it was launched: by how it ended it is still no creation
// that could go on.
func TestDomainThatWasDefinedTwice(t *testing.T) { //nolint:paralleltest // the suite beside it counts what there is
	d, r, create := begun(t, "twice")
	a := connect(t, "qemu:///system")
	_, first := a.defined(t, r.Name)
	in := runs(t, create)
	_, err := a.DomainDefineXMLFlags(first, 0)
	must(t, err)
	if _, text := a.defined(t, r.Name); strings.Contains(text, "libvirt/launched") {
		t.Errorf("it is launched after it was defined once more: %s", text)
	}
	if found, err := d.Find(t.Context(), r); err != nil || len(found) != 1 || found[0].State != provider.StateRunning || found[0].Token != r.Token {
		t.Errorf("found %+v, %v", found, err)
	}
	must(t, d.(provider.PowerSwitch).PowerOff(t.Context(), r))
	ref, _ := a.defined(t, r.Name)
	_, err = a.DomainDefineXMLFlags(first, 0) // and once more when it is off
	must(t, err)
	if found, err := d.Find(t.Context(), r); err != nil || len(found) != 1 || found[0].State != provider.StateStopped {
		state, reason, look := a.DomainGetState(ref, 0)
		t.Errorf("found %+v, %v; state %d, reason %d, %v", found, err, state, reason, look)
	}
	again := r
	again.Token = machine.Token(r.UID, 2, "zone")
	if got, err := create(); err != nil || got.State != provider.StateStopped || got.ID != in.ID {
		t.Errorf("Create = %+v, %v", got, err)
	}
	gone(t, d, again)
}

// gone removes what r names.
func gone(t *testing.T, d provider.Driver, r provider.Ref) {
	t.Helper()
	for range 20 {
		err := d.Delete(t.Context(), r)
		if provider.CodeOf(err) == provider.NotFound {
			return
		}
		must(t, err)
	}
	t.Errorf("%s is not gone", r.Name)
}

// A domain that people clone, with all that it carries, is nobody's, and its disks are the first one's: removed is neither.
func TestCopyIsNobodysInstance(t *testing.T) { //nolint:paralleltest // the suite beside it counts what there is
	d, r, create := begun(t, "original")
	a := connect(t, "qemu:///system")
	in := runs(t, create)
	const id = "99999999-9999-4999-8999-999999999999"
	_, text := a.defined(t, r.Name)
	mac := text[strings.Index(text, "<mac address='")+len("<mac address='"):][:17]
	copied, err := a.DomainDefineXMLFlags(strings.NewReplacer("<name>original</name>", "<name>forensics</name>", in.ID, id, mac, "52:00:00:00:00:99").Replace(text), 0)
	must(t, err)
	all, err := d.List(t.Context())
	must(t, err)
	for _, i := range all {
		if i.ID == id && (i.UID != "" || i.Sole || i.Token != "" || !strings.Contains(i.Message, string(r.UID))) || i.ID == in.ID && i.UID != r.UID {
			t.Errorf("told %+v", i)
		}
	}
	if !slices.ContainsFunc(all, func(i provider.Instance) bool { return i.ID == id }) {
		t.Errorf("the copy is not in the list: %+v", all)
	}
	for _, ref := range []provider.Ref{{ID: id}, {Name: r.Name, ProviderID: "libvirt:///" + id}, {UID: r.UID, Name: r.Name, ID: id, ProviderID: "libvirt:///" + id}} {
		gone(t, d, ref)
	}
	if _, err := a.DomainLookupByName("forensics"); err != nil {
		t.Errorf("the copy is gone: %v", err)
	}
	if _, err := a.DomainLookupByName(r.Name); err == nil {
		t.Error("the original is there")
	}
	must(t, a.DomainUndefineFlags(copied, 0))
}

// A domain that another attempt defined, and that was never started, is removed before this one defines its own; the name of a stranger is refused.
func TestDomainOfAnotherAttempt(t *testing.T) { //nolint:paralleltest // the suite beside it counts what there is
	d, r, _ := begun(t, "attempts")
	a := connect(t, "qemu:///system")
	const uri = "qemu+tls://127.0.0.1/system"
	resolved, err := d.Resolve(t.Context(), spec(t, uri, map[string]any{"domainMemory": 96}))
	must(t, err)
	r.Token, r.Progress = machine.Token(r.UID, 2, "zone"), nil
	runs(t, func() (provider.Instance, error) {
		in, err := d.Create(t.Context(), r, resolved)
		r.Progress = in.Progress
		return in, err
	})
	if _, text := a.defined(t, r.Name); !strings.Contains(text, "<memory unit='KiB'>98304</memory>") {
		t.Errorf("it has another memory: %s", text)
	}
	other := provider.Ref{UID: types.UID("1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed"), Name: r.Name}
	other.Token = machine.Token(other.UID, 1, "zone")
	if in, err := d.Create(t.Context(), other, resolved); provider.CodeOf(err) != provider.Exhausted || len(in.Progress) != 0 || !strings.Contains(err.Error(), "rename or remove it") {
		t.Errorf("Create of another of that name = %+v, %v", in, err)
	}
	gone(t, d, other)
	if _, err := a.DomainLookupByName(r.Name); err != nil {
		t.Errorf("it went with the stranger: %v", err)
	}
	gone(t, d, r)
	if n := a.ours(t, "ocp43", "ocp43", "rhcos-ocp43"); n != 0 {
		t.Errorf("%d volumes and reservations are left", n)
	}
}
