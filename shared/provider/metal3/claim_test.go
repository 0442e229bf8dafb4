// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

func open(t *testing.T, s *stock) provider.Driver {
	t.Helper()
	d, err := Provider(s).Open(t.Context(), provider.Account{Kind: Kind, ClusterID: "abi-sb5b6", Namespace: "machines", UserData: secrets})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var worker = provider.Ref{UID: "machine-uid", Name: "abi-sb5b6-worker-0-x2x7k", Token: "token-1"}

// chosen makes the first step and returns what would be recorded.
func chosen(t *testing.T, d provider.Driver, r provider.Ref, spec json.RawMessage) provider.Ref {
	t.Helper()
	in, err := d.Create(t.Context(), r, spec)
	if err != nil || in.State != provider.StateIncomplete {
		t.Fatalf("first step = %+v, %v", in, err)
	}
	r.Progress = in.Progress
	return r
}

// SPEC E30, E32, E33: one write claims a host and starts it; its return takes as many steps as the operator needs.
func TestLifeOfAClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStock(1)
		d := open(t, s)
		spec := specOf(image + `, "userData": {"name": "worker-user-data-managed"}`)
		in, err := d.Create(t.Context(), chosen(t, d, worker, spec), spec)
		if err != nil || in.State != provider.StatePending || in.ProviderID != "baremetalhost:///machines/host-0/uid-host-0" || in.Name != worker.Name {
			t.Fatalf("Create = %+v, %v", in, err)
		}
		h := s.hosts["host-0"]
		want := corev1.ObjectReference{APIVersion: "machine.openshift.io/v1beta1", Kind: "Machine", Namespace: "machines", Name: worker.Name, UID: worker.UID}
		if *h.Spec.ConsumerRef != want || h.Spec.Image.URL == "" || h.Spec.UserData.Namespace != "machines" || h.Spec.UserData.Name != "worker-user-data-managed" || !h.Spec.Online || s.writes != 1 {
			t.Errorf("after %d writes the host is %+v", s.writes, h.Spec)
		}
		states := follow(t, d, provider.StateRunning)
		if err := d.Delete(t.Context(), worker); err != nil {
			t.Fatal(err)
		}
		if h := s.hosts["host-0"]; h.Spec.Image != nil || h.Spec.UserData != nil || h.Spec.Online || h.Spec.ConsumerRef == nil {
			t.Errorf("a host that is being cleaned is still the Machine's, without image: %+v", h.Spec)
		}
		for end := time.Now().Add(time.Minute); provider.CodeOf(d.Delete(t.Context(), worker)) != provider.NotFound; time.Sleep(step / 3) {
			if time.Now().After(end) {
				t.Fatal("the host is not released")
			}
			states = append(states, string(s.hosts["host-0"].Status.Provisioning.State))
		}
		if got := strings.Join(compact(states), " "); got != "available provisioning provisioned deprovisioning" {
			t.Errorf("the host was %s", got)
		}
		if h := s.hosts["host-0"]; h.Spec.ConsumerRef != nil || len(h.Annotations) > 0 {
			t.Errorf("released: %+v %v", h.Spec, h.Annotations)
		}
	})
}

// follow looks until the worker's only instance is in a state, and returns the cloud's words on the way.
func follow(t *testing.T, d provider.Driver, until provider.State) (states []string) {
	t.Helper()
	for range 100 {
		found, err := d.Find(t.Context(), worker)
		if err != nil || len(found) != 1 {
			t.Fatalf("Find = %+v, %v", found, err)
		}
		if states = append(states, found[0].CloudState); found[0].State == until {
			return states
		}
		time.Sleep(step / 3)
	}
	t.Fatalf("never %s: %v", until, states)
	return nil
}

func compact(all []string) (short []string) {
	for i, s := range all {
		if i == 0 || s != all[i-1] {
			short = append(short, s)
		}
	}
	return short
}

// SPEC E33: a host that was cleaned stays the Machine's until it is let go, which nobody else does.
func TestACleanHostWaitsToBeLetGo(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	d := open(t, s)
	if _, err := d.Create(t.Context(), chosen(t, d, worker, specOf(image)), specOf(image)); err != nil {
		t.Fatal(err)
	}
	if err := d.Delete(t.Context(), worker); err != nil {
		t.Fatal(err)
	}
	for state, again := range map[metal3v1alpha1.ProvisioningState]bool{
		metal3v1alpha1.StateProvisioned: false, metal3v1alpha1.StateDeprovisioning: false, metal3v1alpha1.StateAvailable: true,
	} {
		s.change(t, "host-0", func(h *host) { h.Status.Provisioning.State = state })
		found := open(t, s).(*driver).instances([]host{s.hosts["host-0"]})
		if found[0].State != provider.StateDeleting || found[0].Again != again || found[0].Going() == again {
			t.Errorf("%s: %+v", state, found[0])
		}
	}
}

// A host of which the API server takes no change, as of one whose spec a webhook has found fault with since, keeps nobody from
// the others. What is wrong with the Machine's own spec is wrong with every host.
func TestAHostThatCannotBeClaimedIsPassedOver(t *testing.T) {
	t.Parallel()
	schema := func(field string) error {
		return provider.Errorf(provider.Invalid, "%w", &apierrors.StatusError{ErrStatus: metav1.Status{
			Reason: metav1.StatusReasonInvalid, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: field}}}, Message: "told so",
		}})
	}
	for name, tt := range map[string]struct {
		refusal error
		want    provider.Code
	}{
		"by a webhook":                 {provider.Errorf(provider.Denied, "told so"), provider.Exhausted},
		"by the schema":                {schema("spec.bootMACAddress"), provider.Exhausted},
		"which says no more":           {provider.Errorf(provider.Invalid, "%w", &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Message: "told so"}}), provider.Invalid},
		"by the schema, for the image": {schema("spec.image.url"), provider.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStock(3)
			s.refuses = map[string]error{}
			d, spec := open(t, s), specOf(image)
			r := chosen(t, d, worker, spec)
			for len(s.refuses) < 2 {
				var c choice
				if err := json.Unmarshal(r.Progress, &c); err != nil {
					t.Fatal(err)
				}
				s.refuses[c.Host] = tt.refusal
				in, err := d.Create(t.Context(), r, spec)
				if provider.CodeOf(err) != tt.want || !strings.Contains(err.Error(), "claim host "+c.Host+": told so") {
					t.Fatalf("claim of %s = %+v, %v", c.Host, in, err)
				}
				if tt.want == provider.Invalid {
					return
				}
				r.Progress = in.Progress
			}
			if in, err := d.Create(t.Context(), r, spec); err != nil || in.State != provider.StatePending {
				t.Errorf("the third host: %+v, %v", in, err)
			}
		})
	}
}

// What is wrong with the host that a Machine is to let go is wrong with no spec: neither the Machine nor others of the same spec fail for it.
func TestAHostThatCannotBeLetGoIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, code := range []provider.Code{provider.Denied, provider.Invalid} {
		s := newStock(1)
		d, spec := open(t, s), specOf(image)
		if _, err := d.Create(t.Context(), chosen(t, d, worker, spec), spec); err != nil {
			t.Fatal(err)
		}
		s.change(t, "host-0", func(h *host) { h.Spec.Image = nil }) // its release had begun
		s.refuses = map[string]error{"host-0": provider.Errorf(code, "told so")}
		in, err := d.Create(t.Context(), worker, spec)
		if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "release host host-0: told so") {
			t.Errorf("%v: Create = %+v, %v", code, in, err)
		}
	}
}

// A webhook that refuses the change of a host, also because something is not found, says nothing of the host: it is still there.
func TestAHostWhoseChangeIsRefusedIsNotGone(t *testing.T) {
	t.Parallel()
	taken := free(0)
	taken.TypeMeta = metav1.TypeMeta{Kind: "BareMetalHost"}
	taken.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: consumerVersion, Kind: consumerKind, Name: worker.Name, UID: worker.UID}
	taken.Spec.Image = &metal3v1alpha1.Image{URL: "http://192.0.2.1/rhcos.qcow2"}
	taken.Status.Provisioning.State = metal3v1alpha1.StateProvisioned
	hosts := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind": "Status", "reason": "NotFound", "code": 404, "message": "admission webhook \"hosts.example.com\" denied the request: secrets \"bmc\" not found"}`)
			return
		}
		_ = json.NewEncoder(w).Encode(metal3v1alpha1.BareMetalHostList{TypeMeta: metav1.TypeMeta{Kind: "BareMetalHostList"}, Items: []host{taken}})
	})
	d := &driver{hosts: hosts, cluster: "abi-sb5b6", namespace: "machines"}
	if err := d.Delete(t.Context(), worker); provider.CodeOf(err) != provider.Denied {
		t.Errorf("Delete = %v (%v)", err, provider.CodeOf(err))
	}
}

// What runs on a host that others take away, as people do who delete its BareMetalHost, is let go by nobody who only wants to make it.
func TestAHostThatOthersTakeIsNotLetGo(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*host){
		"deleted, and installed by hand": func(h *host) {
			h.DeletionTimestamp, h.Spec.ExternallyProvisioned = &metav1.Time{Time: time.Now()}, true
			h.Status.Provisioning.State = metal3v1alpha1.StateExternallyProvisioned
		},
		"on its way to another image": func(h *host) {
			h.Spec.Image, h.Status.Provisioning.State = &metal3v1alpha1.Image{URL: "http://192.0.2.9/other.qcow2"}, metal3v1alpha1.StateDeprovisioning
			h.Status.Provisioning.Image.URL = "http://192.0.2.9/rhcos.qcow2"
		},
	} {
		s := newStock(2) // the other one is no reason to leave the first alone
		s.change(t, "host-0", func(h *host) {
			h.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: consumerVersion, Kind: consumerKind, Namespace: "machines", Name: worker.Name}
			h.Spec.Online, h.Status.PoweredOn = true, true
			change(h)
		})
		in, err := open(t, s).Create(t.Context(), worker, specOf(image))
		if h := s.hosts["host-0"]; provider.CodeOf(err) != provider.Exhausted || s.writes != 0 || !h.Spec.Online {
			t.Errorf("%s: after %d writes, Create = %+v, %v; the host is %+v", what, s.writes, in, err, h.Spec)
		}
	}
}

// RELIABILITY R-B33: a step that slept with an old choice takes no second host, whatever happened meanwhile.
func TestAnOldChoiceTakesNothing(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	d := open(t, s)
	spec := specOf(image)
	sleeper := chosen(t, d, worker, spec)
	s.change(t, "host-0", func(h *host) { h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Metal3Machine", Name: "faster"} })
	s.add(free(1))
	if _, err := d.Create(t.Context(), chosen(t, d, sleeper, spec), spec); err != nil {
		t.Fatal(err)
	}
	s.change(t, "host-0", func(h *host) { h.Spec.ConsumerRef = nil }) // free again, as a newer version
	in, err := d.Create(t.Context(), sleeper, spec)
	if err != nil || in.ProviderID != "baremetalhost:///machines/host-1/uid-host-1" || s.hosts["host-0"].Spec.ConsumerRef != nil {
		t.Errorf("the sleeper got %+v, %v; host-0 is %+v", in, err, s.hosts["host-0"].Spec.ConsumerRef)
	}
	// Even with nothing claimed yet, a choice of an older version only leads to a new choice.
	other := worker
	other.UID, other.Progress = "other-uid", sleeper.Progress
	if in, err := d.Create(t.Context(), other, spec); err != nil || in.State != provider.StateIncomplete {
		t.Errorf("an outdated choice = %+v, %v, want a new one", in, err)
	}
}

// Whoever may write a Machine may write what was chosen for it: the host of somebody else, as it is now, is not taken for that.
func TestAForgedChoiceTakesNothing(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	s.change(t, "host-0", func(h *host) { h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Metal3Machine", Name: "theirs"} })
	h, forged := s.hosts["host-0"], worker
	forged.Progress = fmt.Appendf(nil, `{"host":%q,"uid":%q,"version":%q}`, h.Name, h.UID, h.ResourceVersion)
	in, err := open(t, s).Create(t.Context(), forged, specOf(image))
	if provider.CodeOf(err) != provider.Exhausted || s.hosts["host-0"].Spec.ConsumerRef.Name != "theirs" {
		t.Errorf("a forged choice = %+v, %v; the host is %+v", in, err, s.hosts["host-0"].Spec.ConsumerRef)
	}
}

// A host whose power people keep on is cleaned before it is let go all the same (SPEC E33). The operator's webhook takes no change that
// would switch it off: it would be nobody's for ever.
func TestAHostThatStaysOnLosesItsImageFirst(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	d, spec := open(t, s), specOf(image)
	if _, err := d.Create(t.Context(), chosen(t, d, worker, spec), spec); err != nil {
		t.Fatal(err)
	}
	s.change(t, "host-0", func(h *host) { h.Spec.DisablePowerOff = true })
	err := d.Delete(t.Context(), worker)
	if h := s.hosts["host-0"]; err != nil || h.Spec.Image != nil || h.Spec.ConsumerRef == nil || !h.Spec.Online {
		t.Errorf("%v; the host is %+v", err, h.Spec)
	}
}

// SPEC E30: what speaks against a host; E31: none left says why, and when to look again.
func TestHostsThatNobodyTakes(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	tests := map[string]func(*host){
		"1 consumed":                     func(h *host) { h.Spec.ConsumerRef = &corev1.ObjectReference{Name: "x"} },
		"1 being deleted":                func(h *host) { h.DeletionTimestamp = &now },
		"1 in error":                     func(h *host) { h.Status.ErrorMessage = "no power" },
		"1 externally provisioned":       func(h *host) { h.Spec.ExternallyProvisioned = true },
		"1 not selected by hostSelector": func(h *host) { h.Labels["size"] = "small" },
		"1 not available yet":            func(h *host) { h.Status.Provisioning.State = metal3v1alpha1.StateInspecting },
		"1 paused":                       func(h *host) { h.Annotations = map[string]string{metal3v1alpha1.PausedAnnotation: ""} },
		"1 detached":                     func(h *host) { h.Annotations = map[string]string{metal3v1alpha1.DetachedAnnotation: ""} },
		"1 held off":                     func(h *host) { h.Annotations = map[string]string{"reboot.metal3.io/firmware-update": ""} },
		"1 provisioned by somebody else": func(h *host) { h.Spec.Image = &metal3v1alpha1.Image{URL: "http://192.0.2.7/a"} },
	}
	for want, f := range tests {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			s := newStock(1)
			s.change(t, "host-0", f)
			spec := specOf(image + `, "hostSelector": {"matchExpressions": [{"key": "size", "operator": "!"}]}`)
			_, err := open(t, s).Create(t.Context(), worker, spec)
			if provider.CodeOf(err) != provider.Exhausted || !strings.HasPrefix(err.Error(), "No available BareMetalHost found: of 1, ") || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("error %v", err)
			}
			if e, ok := errors.AsType[*provider.Error](err); ok && e.RetryAfter != 30*time.Second {
				t.Errorf("retry after %v", e.RetryAfter)
			}
		})
	}
	if _, err := open(t, newStock(0)).Create(t.Context(), worker, specOf(image)); err == nil || !strings.Contains(err.Error(), "there is none in the namespace") {
		t.Errorf("an empty namespace: %v", err)
	}
}

// SPEC E32, E33, E35: what a claimed host's state means.
func TestStates(t *testing.T) {
	t.Parallel()
	type f = func(*host)
	tests := []struct {
		name  string
		state metal3v1alpha1.ProvisioningState
		and   f
		want  provider.State
	}{
		{"just claimed", metal3v1alpha1.StateAvailable, nil, provider.StatePending},
		{"being written", metal3v1alpha1.StateProvisioning, nil, provider.StatePending},
		{"written", metal3v1alpha1.StateProvisioned, nil, provider.StateRunning},
		{"switched off on purpose", metal3v1alpha1.StateProvisioned, func(h *host) { h.Spec.Online, h.Status.PoweredOn = false, false }, provider.StateStopped},
		{"registered again", metal3v1alpha1.StateRegistering, func(h *host) { h.Status.Provisioning.Image.URL = "http://192.0.2.9/a" }, provider.StateRunning},
		{"registered again, deployed in a way of its own", metal3v1alpha1.StateRegistering, func(h *host) {
			h.Status.Provisioning.CustomDeploy = &metal3v1alpha1.CustomDeploy{Method: "install_coreos"}
		}, provider.StateRunning},
		{"registered for the first time", metal3v1alpha1.StateRegistering, nil, provider.StatePending},
		{"an installer's", metal3v1alpha1.StateUnmanaged, func(h *host) { h.Spec.Image = nil }, provider.StateRunning},
		{"somebody else's image", metal3v1alpha1.StateExternallyProvisioned, func(h *host) { h.Spec.Image, h.Spec.ExternallyProvisioned = nil, true }, provider.StateRunning},
		{"the image was taken away", metal3v1alpha1.StateProvisioned, func(h *host) { h.Spec.Image = nil }, provider.StateDeleting},
		{"being cleaned", metal3v1alpha1.StateDeprovisioning, func(h *host) { h.Spec.Image = nil }, provider.StateDeleting},
		{"being cleaned for another image", metal3v1alpha1.StateDeprovisioning, func(h *host) { h.Status.Provisioning.Image.URL = "http://192.0.2.9/b" }, provider.StateDeleting},
		{"being cleaned for another way to deploy", metal3v1alpha1.StateDeprovisioning, func(h *host) {
			h.Status.Provisioning.CustomDeploy = &metal3v1alpha1.CustomDeploy{Method: "install_coreos"}
		}, provider.StateDeleting},
		{"written in vain, and cleaned before it is written again", metal3v1alpha1.StateDeprovisioning, func(h *host) { h.Status.ErrorMessage = "no route" }, provider.StatePending},
		{"the host itself is being deleted", metal3v1alpha1.StateProvisioned, func(h *host) { h.DeletionTimestamp = new(metav1.Now()) }, provider.StateDeleting},
		{"an error is no end", metal3v1alpha1.StateProvisioning, func(h *host) { h.Status.ErrorMessage = "no route" }, provider.StatePending},
	}
	for _, tt := range tests {
		h := free(0)
		h.Spec.Image = &metal3v1alpha1.Image{URL: "http://192.0.2.9/a"}
		h.Status.Provisioning.State = tt.state
		if tt.and != nil {
			tt.and(&h)
		}
		if got := state(h); got != tt.want {
			t.Errorf("%s: %s is %s, want %s", tt.name, tt.state, got, tt.want)
		}
	}
}

// SPEC E33: a host of the operator's own making is let go when it is off; disablePowerOff is respected.
func TestReleaseOfOtherHosts(t *testing.T) {
	t.Parallel()
	s := newStock(0)
	id, claimed := s.untagged()
	d := open(t, s)
	adopted := provider.Ref{UID: "master-uid", Name: "master-0", ProviderID: id}
	if found, err := d.Find(t.Context(), adopted); err != nil || len(found) != 1 || found[0].State != provider.StateRunning {
		t.Fatalf("an adopted Machine's host = %+v, %v", found, err)
	}
	if err := d.Delete(t.Context(), adopted); err != nil || s.hosts["host-99"].Spec.Online || !claimed() {
		t.Errorf("first step: %v, %+v", err, s.hosts["host-99"].Spec)
	}
	if err := d.Delete(t.Context(), adopted); err != nil || !claimed() {
		t.Errorf("while it is on: %v", err)
	}
	s.change(t, "host-99", func(h *host) { h.Status.PoweredOn = false })
	if err := d.Delete(t.Context(), adopted); provider.CodeOf(err) != provider.NotFound || claimed() {
		t.Errorf("once it is off: %v", err)
	}
	id, claimed = s.untagged()
	s.change(t, "host-99", func(h *host) { h.Spec.DisablePowerOff = true; h.Spec.Online = true })
	adopted.ProviderID = id
	if err := d.Delete(t.Context(), adopted); provider.CodeOf(err) != provider.NotFound || claimed() || !s.hosts["host-99"].Spec.Online {
		t.Errorf("with disablePowerOff: %v, %+v", err, s.hosts["host-99"].Spec)
	}
}

// The operator writes to its hosts all the time: a removal that it overtakes is begun all the same.
func TestDeleteIsNotOvertaken(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	d := open(t, s)
	if _, err := d.Create(t.Context(), chosen(t, d, worker, specOf(image)), specOf(image)); err != nil {
		t.Fatal(err)
	}
	s.overtake = 2
	if err := d.Delete(t.Context(), worker); err != nil || s.hosts["host-0"].Spec.Image != nil {
		t.Errorf("Delete = %v, the host is %+v", err, s.hosts["host-0"].Spec)
	}
}

// SPEC E33, RELIABILITY 2b: a host keeps its provider id from one consumer to the next. A Machine that still records it has
// nothing to say about a host that OpenShift's actuator, which writes no UID, gave to another one since.
func TestARecordedHostThatIsAnothersNowIsLetBe(t *testing.T) {
	t.Parallel()
	for what, consumer := range map[string]corev1.ObjectReference{
		"another name":      {APIVersion: consumerVersion, Kind: consumerKind, Namespace: "machines", Name: "machine-b"},
		"another namespace": {APIVersion: consumerVersion, Kind: consumerKind, Namespace: "elsewhere", Name: worker.Name},
	} {
		s := newStock(1)
		s.change(t, "host-0", func(h *host) {
			h.Spec.ConsumerRef = &consumer
			h.Spec.Image = &metal3v1alpha1.Image{URL: "http://192.0.2.9/a"}
			h.Status.Provisioning.State = metal3v1alpha1.StateProvisioned
		})
		d := open(t, s)
		r := worker
		r.ProviderID = providerIDOf(s.hosts["host-0"])
		if found, err := d.Find(t.Context(), r); err != nil || len(found) != 0 {
			t.Errorf("%s: Find = %+v, %v", what, found, err)
		}
		for doing, err := range map[string]error{
			"Delete": d.Delete(t.Context(), r), "PowerCycle": d.(*driver).PowerCycle(t.Context(), r), "PowerOff": d.(*driver).PowerOff(t.Context(), r),
		} {
			if provider.CodeOf(err) != provider.NotFound {
				t.Errorf("%s: %s = %v", what, doing, err)
			}
		}
		if h := s.hosts["host-0"]; s.writes != 0 || h.Spec.Image == nil || h.Spec.ConsumerRef == nil {
			t.Errorf("%s: after %d writes the host is %+v", what, s.writes, h.Spec)
		}
	}
}

// SPEC E30: OpenShift's actuator has claimed a host for a Machine, and had no time to record it, when this driver takes over. The
// Machine gets that host and no second one, goes on with it, and lets it go in the end. Whom the claim does not name gets another.
func TestAHostThatOpenShiftGaveIsTheMachines(t *testing.T) {
	t.Parallel()
	spec := specOf(image)
	given := func(t *testing.T, consumer corev1.ObjectReference, cluster string) (*stock, provider.Driver) {
		t.Helper()
		s := newStock(2)
		s.change(t, "host-0", func(h *host) {
			h.Spec.ConsumerRef, h.Spec.Image = &consumer, &metal3v1alpha1.Image{URL: "http://192.0.2.9/rhcos.qcow2"}
			h.Status.Provisioning.State = metal3v1alpha1.StateProvisioning
			if cluster != "" {
				h.Annotations = map[string]string{annotationCluster: cluster}
			}
		})
		return s, open(t, s)
	}
	mine := corev1.ObjectReference{APIVersion: consumerVersion, Kind: consumerKind, Namespace: "machines", Name: worker.Name}
	s, d := given(t, mine, "")
	const id = "baremetalhost:///machines/host-0/uid-host-0"
	if in, err := d.Create(t.Context(), worker, spec); err != nil || in.ProviderID != id || in.State != provider.StatePending || s.writes != 0 {
		t.Errorf("after %d writes, Create = %+v, %v", s.writes, in, err)
	}
	if found, err := d.Find(t.Context(), worker); err != nil || len(found) != 1 || found[0].ProviderID != id {
		t.Errorf("Find = %+v, %v", found, err)
	}
	if err := d.Delete(t.Context(), worker); err != nil || s.hosts["host-0"].Spec.Image != nil {
		t.Errorf("Delete = %v, the host is %+v", err, s.hosts["host-0"].Spec)
	}
	if in, err := d.Create(t.Context(), worker, spec); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "host-0 is still being released") {
		t.Errorf("while it is released, Create = %+v, %v", in, err)
	}
	s.change(t, "host-0", func(h *host) { h.Status.Provisioning.State, h.Status.PoweredOn = metal3v1alpha1.StateAvailable, false }) // the operator is done
	if in, err := d.Create(t.Context(), chosen(t, d, worker, spec), spec); err != nil || in.UID != worker.UID {
		t.Errorf("once it is free, Create = %+v, %v: nobody else lets it go", in, err)
	}
	for what, of := range map[string]struct {
		change  func(*corev1.ObjectReference)
		cluster string
	}{
		"another Machine":          {func(c *corev1.ObjectReference) { c.Name = "machine-b" }, ""},
		"another namespace":        {func(c *corev1.ObjectReference) { c.Namespace = "elsewhere" }, ""},
		"one made anew since":      {func(c *corev1.ObjectReference) { c.UID = "another-uid" }, ""},
		"another kind of consumer": {func(c *corev1.ObjectReference) { c.APIVersion, c.Kind = "x/v1", "Metal3Machine" }, ""},
		"another cluster":          {func(*corev1.ObjectReference) {}, "another"},
	} {
		consumer := mine
		of.change(&consumer)
		s, d := given(t, consumer, of.cluster)
		if found, err := d.Find(t.Context(), worker); err != nil || len(found) != 0 {
			t.Errorf("%s: Find = %+v, %v", what, found, err)
		}
		if in, err := d.Create(t.Context(), chosen(t, d, worker, spec), spec); err != nil || !strings.HasPrefix(in.ID, "host-1/") {
			t.Errorf("%s: Create = %+v, %v", what, in, err)
		}
		if err := d.Delete(t.Context(), provider.Ref{Name: worker.Name}); provider.CodeOf(err) != provider.NotFound || s.hosts["host-0"].Spec.Image == nil {
			t.Errorf("%s: Delete = %v", what, err)
		}
	}
}

// SPEC E30: the UID in a consumerRef says whose a host is, also when somebody has taken our annotations away. Its Machine
// gets no second host, and whoever looks for hosts that belong to nobody sees it.
func TestAClaimedHostIsKnownWithoutItsAnnotations(t *testing.T) {
	t.Parallel()
	s := newStock(2)
	d := open(t, s)
	spec := specOf(image)
	first, err := d.Create(t.Context(), chosen(t, d, worker, spec), spec)
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(first.ID, "/")
	s.change(t, name, func(h *host) { h.Annotations = nil })
	if in, err := d.Create(t.Context(), worker, spec); err != nil || in.ID != first.ID {
		t.Errorf("Create = %+v, %v, want %s again", in, err, first.ID)
	}
	if all, err := d.List(t.Context()); err != nil || len(all) != 1 || all[0].ID != first.ID || all[0].UID != worker.UID {
		t.Errorf("List = %+v, %v", all, err)
	}
	if err := d.Delete(t.Context(), provider.Ref{Name: worker.Name, ID: first.ID}); err != nil || s.hosts[name].Spec.Image != nil {
		t.Errorf("Delete = %v, the host is %+v", err, s.hosts[name].Spec)
	}
	s.change(t, name, func(h *host) { h.Annotations = map[string]string{annotationCluster: "another"} })
	if all, err := d.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("of another cluster, List = %+v, %v", all, err)
	}
}

// RELIABILITY §4: whoever writes a spec chooses an address of the hosts' network, not one that a function asks: its images are
// handed on as words, whatever becomes of the host.
func TestImagesAreNotOpened(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 100)
	inside := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	defer inside.Close()
	spec := specOf(fmt.Sprintf(`"image": {"url": "%[1]s/image", "checksum": "%[1]s/sum"}`, inside.URL))
	s := newStock(1)
	d := open(t, s)
	if _, err := d.Create(t.Context(), chosen(t, d, worker, spec), spec); err != nil {
		t.Fatal(err)
	}
	if h := s.hosts["host-0"]; h.Spec.Image == nil || h.Spec.Image.URL != inside.URL+"/image" {
		t.Errorf("the host does not have the image: %+v", h.Spec)
	}
	if _, err := d.List(t.Context()); err != nil {
		t.Error(err)
	}
	if err := d.Delete(t.Context(), worker); err != nil {
		t.Error(err)
	}
	select {
	case path := <-asked:
		t.Errorf("%s was opened", path)
	default:
	}
}
