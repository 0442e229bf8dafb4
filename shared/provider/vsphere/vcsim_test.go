// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator" // the tagging service
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"

	"github.com/machine-functions/machine-functions/shared/provider"
	local "github.com/machine-functions/machine-functions/test/local/vcenter"
)

// vcenter is VMware's own simulator, vcsim, over HTTPS.
type vcenter struct {
	*local.VCenter
	service *simulator.Service
	host    string
	ca      []byte
	users   atomic.Int32
	admin   *vim25.Client
}

const (
	templateName = local.Template
	ignitionData = `{"ignition": {"version": "3.2.0"}}`
)

// newVCenter starts a vCenter with a cluster, a template, a resource pool, a folder and a VM group.
func newVCenter(t *testing.T) *vcenter {
	t.Helper()
	sim, err := local.Start(t.Context())
	must(t, err)
	t.Cleanup(sim.Stop)
	return &vcenter{VCenter: sim, service: sim.Service, host: sim.Host, ca: sim.CA}
}

// client is the administrator's.
func (v *vcenter) client(t *testing.T) *vim25.Client {
	t.Helper()
	if v.admin != nil {
		return v.admin
	}
	d, err := open(t.Context(), v.account(), nil)
	must(t, err)
	v.admin, err = d.(*driver).session.connect(t.Context())
	must(t, err)
	return v.admin
}

// account is that of another user each time, whose calls are counted by themselves.
func (v *vcenter) account() provider.Account {
	return provider.Account{
		Kind: Kind, ClusterID: "cluster-a389-fmxsv", Region: v.host, Namespace: "machines", Secret: "vsphere-cloud-credentials",
		Credentials: map[string][]byte{
			keyOf(v.host) + ".username": fmt.Appendf(nil, "machines-%d@vsphere.local", v.users.Add(1)), keyOf(v.host) + ".password": []byte("canary-7f3a"),
			keyOf(v.host) + ".port": []byte(v.host[strings.LastIndex(v.host, ":")+1:]),
			keyOf(v.host) + ".ca":   v.ca,
		},
		UserData: func(_ context.Context, name string) (map[string][]byte, string, error) {
			switch name {
			case "worker-user-data":
				return map[string][]byte{"userData": []byte(ignitionData)}, "1", nil
			case "cloud-init":
				return map[string][]byte{"userData": []byte("#cloud-config\n")}, "1", nil
			case "empty":
				return nil, "1", nil
			}
			if name == "unread" {
				return nil, "", errors.New("the API server is not ready")
			}
			return nil, "", provider.Errorf(provider.Exhausted, "secret %s not found", name)
		},
	}
}

// spec is the providerSpec of the walk-through with fields replaced.
func (v *vcenter) spec(change map[string]any) json.RawMessage {
	s := map[string]any{
		"apiVersion": "machine.openshift.io/v1beta1", "kind": Kind, "template": templateName,
		"workspace": map[string]any{
			"server": v.host, "datacenter": "DC0", "folder": "/DC0/vm/cluster-a389-fmxsv", "datastore": "LocalDS_0",
			"resourcePool": "/DC0/host/DC0_C0/Resources/workers",
		},
		"network": map[string]any{"devices": []any{map[string]any{"networkName": "DC0_DVPG0"}, map[string]any{"networkName": "VM Network"}}},
		"numCPUs": 4, "numCoresPerSocket": 2, "memoryMiB": 12288, "diskGiB": 30,
		"dataDisks":      []any{map[string]any{"name": "images", "sizeGiB": 2, "provisioningMode": "Thin"}},
		"userDataSecret": map[string]any{"name": "worker-user-data"}, "credentialsSecret": map[string]any{"name": "vsphere-cloud-credentials"},
	}
	for k, value := range change {
		if inner, ok := value.(map[string]any); ok && s[k] != nil {
			for ik, iv := range inner {
				s[k].(map[string]any)[ik] = iv
			}
			continue
		}
		s[k] = value
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}

// machines returns all virtual machines but the template and those that the model has, by name.
func (v *vcenter) machines(t *testing.T) map[string]mo.VirtualMachine {
	t.Helper()
	c := v.client(t)
	found, err := everywhere(t.Context(), c, "name")
	must(t, err)
	all := map[string]mo.VirtualMachine{}
	for _, o := range found {
		vm := object.NewVirtualMachine(c, o.Obj)
		var m mo.VirtualMachine
		must(t, vm.Properties(t.Context(), o.Obj, nil, &m))
		if m.Name != templateName && !strings.HasPrefix(m.Name, "DC0_") {
			all[m.Name] = m
		}
	}
	return all
}

// wire is the HTTP traffic of a driver, where a test may look and cut.
type wire struct {
	next http.RoundTripper
	mu   sync.Mutex
	sent []string // the SOAPAction's method, or the REST path
	cut  func(method string, next func() (*http.Response, error)) (*http.Response, error)
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	method := r.URL.Path
	if r.URL.Path == "/sdk" {
		method = methodOf(r)
	}
	w.mu.Lock()
	w.sent = append(w.sent, method)
	cut := w.cut
	w.mu.Unlock()
	if cut != nil {
		return cut(method, func() (*http.Response, error) { return w.next.RoundTrip(r) })
	}
	return w.next.RoundTrip(r)
}

func (w *wire) set(cut func(method string, next func() (*http.Response, error)) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
}

// count returns how many calls of these methods were sent.
func (w *wire) count(methods ...string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sent {
		if slices.Contains(methods, s) {
			n++
		}
	}
	return n
}

// methodOf reads the method out of a SOAP envelope.
func methodOf(r *http.Request) string {
	var b bytes.Buffer
	_, _ = b.ReadFrom(r.Body) // a request of this process
	r.Body = http.NoBody
	body := b.Bytes()
	r.Body = &replay{bytes.NewReader(body)}
	_, after, _ := strings.Cut(string(body), "<Body><")
	name, _, _ := strings.Cut(strings.TrimLeft(after, "<"), " ")
	return strings.TrimSuffix(strings.TrimSuffix(name, ">"), "/")
}

type replay struct{ *bytes.Reader }

func (replay) Close() error { return nil }

// wired opens a driver whose traffic the test holds.
func (v *vcenter) wired(t *testing.T, a provider.Account) (*driver, *wire) {
	t.Helper()
	d, err := open(t.Context(), a, nil)
	must(t, err)
	s := d.(*driver).session
	guarded := s.soap.Client.Transport.(vcenterOnly)
	w := &wire{next: guarded.next}
	s.soap.Client.Transport = vcenterOnly{w}
	return d.(*driver), w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func done(t *testing.T) func(*object.Task, error) {
	t.Helper()
	return func(task *object.Task, err error) {
		t.Helper()
		must(t, err)
		must(t, task.Wait(t.Context()))
	}
}
