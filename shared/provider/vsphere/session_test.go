// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// A vCenter whose certificate the Secret's authority did not sign is not spoken to, and a person must act: the error says
// at which key of which Secret to look, and nobody asks again for a minute.
func TestCertificateIsNotTheSecrets(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	stranger := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(stranger.Close)
	for name, ca := range map[string][]byte{
		"none": nil, "another's": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: stranger.Certificate().Raw}),
	} {
		a := v.account()
		a.Credentials[keyOf(v.host)+".ca"] = ca
		d, w := v.wired(t, a)
		_, listed := d.List(t.Context())
		_, resolved := d.Resolve(t.Context(), v.spec(nil))
		_, found := d.Find(t.Context(), provider.Ref{UID: uuid.NewUUID(), Name: "worker-a"})
		for call, err := range map[string]error{"List": listed, "Resolve": resolved, "Find": found} {
			if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "x509: ") || !strings.Contains(err.Error(), "key "+keyOf(v.host)+".ca in secret machines/vsphere-cloud-credentials") {
				t.Errorf("%s: %s = %v: %v", name, call, provider.CodeOf(err), err)
			}
		}
		if len(w.sent) != 1 {
			t.Errorf("%s: asked %v", name, w.sent)
		}
	}
}

// The newline that echo, or an editor, put at the end of a key is no part of it; a space may be part of a password.
func TestNewlineAfterKeys(t *testing.T) {
	t.Parallel()
	a := provider.Account{Kind: Kind, Region: "vc.test:8443", Namespace: "n", Secret: "s", Credentials: map[string][]byte{
		"vc.test.username": []byte("machines@vsphere.local\n"), "vc.test.password": []byte(" pass word \r\n"), "vc.test.port": []byte("8443\n"),
	}}
	s, err := newSession(a)
	must(t, err)
	if password, _ := s.user.Password(); s.user.Username() != "machines@vsphere.local" || password != " pass word " {
		t.Errorf("logs in as %q with %q", s.user.Username(), password)
	}
	a.Credentials["vc.test.password"] = []byte("\n")
	if _, err := newSession(a); provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "has no key vc.test.password") {
		t.Errorf("of an empty key: %v", err)
	}
}

// sessions are those of an account that the vCenter has, also of the tagging service.
func (v *vcenter) sessions(t *testing.T, a provider.Account) (n int) {
	t.Helper()
	c := v.client(t)
	var m mo.SessionManager
	must(t, property.DefaultCollector(c).RetrieveOne(t.Context(), *c.ServiceContent.SessionManager, []string{"sessionList"}, &m))
	for _, s := range m.SessionList {
		if s.UserName == string(a.Credentials[keyOf(v.host)+".username"]) {
			n++
		}
	}
	return n
}

// Sessions of a vCenter are few: a driver that is closed leaves none, also if somebody is still calling, or calls later.
func TestCloseLogsOut(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	a := v.account()
	d, w := v.wired(t, a)
	must(t, d.Close(t.Context())) // before anything was asked
	if len(w.sent) != 0 {
		t.Errorf("asked %v", w.sent)
	}
	d, w = v.wired(t, a)
	_, err := d.Resolve(t.Context(), v.spec(nil)) // asks the tagging service, too
	must(t, err)
	tagging := d.session.rest
	if s, err := tagging.Session(t.Context()); err != nil || s == nil || v.sessions(t, a) != 1 {
		t.Fatalf("while open %d sessions, and of the tagging service %v, %v", v.sessions(t, a), s, err)
	}
	must(t, d.Close(t.Context()))
	if s, err := tagging.Session(t.Context()); err != nil || s != nil || v.sessions(t, a) != 0 {
		t.Errorf("when closed %d sessions, and of the tagging service %v, %v", v.sessions(t, a), s, err)
	}
	var closed error
	w.set(func(method string, next func() (*http.Response, error)) (*http.Response, error) {
		if method == "FindAllByUuid" {
			closed = d.Close(t.Context()) // in the midst of a call
		}
		return next()
	})
	_, err = d.Resolve(t.Context(), v.spec(nil))
	must(t, err)
	_, err = d.Find(t.Context(), provider.Ref{UID: uuid.NewUUID()})
	must(t, errors.Join(err, closed))
	if n := v.sessions(t, a); n != 0 {
		t.Errorf("%d sessions after further calls", n)
	}
	must(t, d.Close(t.Context())) // once more: the vCenter has forgotten it, which is what was wanted
}

// A vCenter that has forgotten the session leaves properties out without a fault: that is no instance that is gone.
func TestForgottenSessionHidesNothing(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	r, _, err := create(t, d, "worker-a", v.spec(nil))
	must(t, err)
	forget := true
	w.set(func(method string, next func() (*http.Response, error)) (*http.Response, error) {
		if method == "RetrievePropertiesEx" && forget {
			forget = false
			must(t, d.session.logout(t.Context()))
		}
		return next()
	})
	found, err := d.Find(t.Context(), r)
	if err != nil || len(found) != 1 || forget {
		t.Errorf("Find = %v, %v", found, err)
	}
}

// Where no vCenter is, none is asked, over TLS neither: the SDK dials by itself unless it is told not to (RELIABILITY 4).
func TestAPIServerIsNoVCenter(t *testing.T) {
	v := newVCenter(t)
	host, _, err := net.SplitHostPort(v.host)
	must(t, err)
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	d, w := v.wired(t, v.account())
	_, err = d.List(t.Context())
	if provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "API server") {
		t.Errorf("List = %v after %v, want none", err, w.sent)
	}
}

// A spec's sizes are told one by one, and the template by the name that the list has (E28).
func TestSpecStatesSomeOfItsSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]provider.InstanceType{
		`{"kind":"VSphereMachineProviderSpec","template":"/DC0/vm/rhcos","numCPUs":16}`:                                           {Name: "rhcos", Arch: arch, MilliCPU: 16000},
		`{"kind":"VSphereMachineProviderSpec","template":"rhcos","memoryMiB":8192}`:                                               {Name: "rhcos", Arch: arch, Memory: 8 << 30},
		`{"kind":"VSphereMachineProviderSpec","template":"rhcos","numCPUs":4,"memoryMiB":8192,"diskGiB":50}`:                      {Name: "rhcos", Arch: arch, MilliCPU: 4000, Memory: 8 << 30, Disk: 50 << 30},
		`{"kind":"VSphereMachineProviderSpec"}`:                                                                                   {Arch: arch},
		`{"kind":"VSphereMachineProviderSpec","numCPUs":9223372036854775807,"memoryMiB":17592186048512,"diskGiB":17592186044416}`: {Arch: arch, MilliCPU: most * 1000, Memory: most << 20, Disk: most << 30},
		`{"kind":"VSphereMachineProviderSpec","numCPUs":-9223372036854775807,"memoryMiB":-17592186044415,"diskGiB":-1}`:           {Arch: arch},
	} {
		if got, err := instanceType([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

// A size that is more than can be counted is none that a vCenter is asked for: it would be asked for what is left of it.
func TestSizesThatCannotBeCounted(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	for _, name := range []string{"memoryMiB", "diskGiB"} {
		if _, err := parse(v.spec(map[string]any{name: int64(1<<44 + 4096)})); provider.CodeOf(err) != provider.Invalid || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Templates of one name are one type as long as they have one size; else whoever names one without its size is told why that is
// unknown.
func TestTemplatesOfOneName(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, _ := v.wired(t, v.account())
	one, err := d.InstanceTypes(t.Context())
	must(t, err)
	vm, err := find.NewFinder(v.client(t)).VirtualMachine(t.Context(), "/DC0/vm/DC0_C0_RP0_VM1")
	must(t, err)
	v.Edit(vm.Reference(), func(m *simulator.VirtualMachine) { m.Name, m.Config.Template = templateName, true })
	same, err := d.InstanceTypes(t.Context())
	must(t, err)
	if len(one) != 1 || !reflect.DeepEqual(same, one) {
		t.Errorf("two of one size are %+v, one is %+v", same, one)
	}
	v.Edit(vm.Reference(), func(m *simulator.VirtualMachine) { m.Config.Hardware.NumCPU = 16 })
	differ, err := d.InstanceTypes(t.Context())
	must(t, err)
	if len(differ) != 1 || differ[0].MilliCPU != 0 || !strings.Contains(differ[0].Problem, "2 templates") || !strings.Contains(differ[0].Problem, "16 CPUs") || !strings.Contains(differ[0].Problem, "numCPUs and memoryMiB") {
		t.Errorf("two of different sizes are %+v", differ)
	}
}

// The tagging service forgets its sessions by itself, sooner than the vCenter's: whoever asks it next logs in again, in whichever call.
func TestTaggingSessionThatEndedIsMadeAgain(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	spec := v.spec(map[string]any{"tagIDs": []string{v.tag(t, d, "owner", "team-a", reference{})}})
	resolved, err := d.Resolve(t.Context(), spec)
	must(t, err)
	for name, call := range map[string]func() error{ // which log in again
		"Resolve": func() error { _, err := d.Resolve(t.Context(), spec); return err },
		"Create": func() error {
			_, err := proceed(t.Context(), d, provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}, resolved)
			return err
		},
	} {
		must(t, d.session.rest.Logout(t.Context()))
		if err := call(); err != nil {
			t.Errorf("%s = %v", name, err)
		}
	}
	if n := w.count("Login"); n != 1 {
		t.Errorf("%d logins to the vCenter itself", n)
	}
}

// A password that has changed since the vCenter let us in is tried once by the tagging service too, however many Machines are to be
// made: an account locks after a few.
func TestTaggingServiceIsNotToldAWrongPasswordAgain(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	_, err := d.List(t.Context())
	must(t, err)
	const login = "/rest/com/vmware/cis/session"
	w.set(func(method string, next func() (*http.Response, error)) (*http.Response, error) {
		if method != login {
			return next()
		}
		res, err := page(http.StatusUnauthorized, "application/json", "{}", "")(nil)
		res.Request = &http.Request{Method: http.MethodPost, URL: &url.URL{Path: login}}
		return res, err
	})
	for range 3 {
		_, err := d.Resolve(t.Context(), v.spec(nil))
		if e, ok := errors.AsType[*provider.Error](err); !ok || e.Code != provider.Denied || e.RetryAfter <= 0 || !strings.Contains(err.Error(), keyOf(v.host)+".password") {
			t.Fatalf("Resolve = %v", err)
		}
	}
	if n := w.count(login); n != 1 {
		t.Errorf("%d logins to the tagging service", n)
	}
	if all, err := d.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("who needs no login: List = %v, %v", all, err)
	}
}

// A privilege that the tagging service misses is for a person to mend, and is no lost answer.
func TestTaggingThatIsForbiddenIsDenied(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	w.set(func(method string, next func() (*http.Response, error)) (*http.Response, error) {
		if !strings.HasPrefix(method, "/rest/com/vmware/cis/tagging/") {
			return next()
		}
		res, err := page(http.StatusForbidden, "application/json", "{}", "")(nil)
		res.Request = &http.Request{Method: http.MethodPost, URL: &url.URL{Path: method}}
		return res, err
	})
	if _, err := d.Resolve(t.Context(), v.spec(nil)); provider.CodeOf(err) != provider.Denied || strings.Contains(err.Error(), ".password") {
		t.Errorf("Resolve = %v (%v), want Denied, and no fault of the credentials", err, provider.CodeOf(err))
	}
}
