// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// What another system's object runs on, Cluster API's Machine or Metal3Machine, is in no list of ours: the sweep would take it for an orphan.
func TestHostsOfOtherKindsAreNotOurs(t *testing.T) {
	t.Parallel()
	for _, consumer := range []corev1.ObjectReference{
		{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: consumerKind},
		{APIVersion: "infrastructure.cluster.x-k8s.io/v1beta1", Kind: "Metal3Machine"},
		{APIVersion: consumerVersion, Kind: "MachineSet"},
	} {
		consumer.Namespace, consumer.Name, consumer.UID = "machines", worker.Name, worker.UID
		s := newStock(1)
		runs(t, s, "host-0", consumer)
		d := open(t, s)
		if all, err := d.List(t.Context()); err != nil || len(all) > 0 {
			t.Errorf("of a %s %s the list is %+v, %v", consumer.APIVersion, consumer.Kind, all, err)
		}
		if err := d.Delete(t.Context(), worker); provider.CodeOf(err) != provider.NotFound || s.writes > 0 {
			t.Errorf("of a %s %s: Delete = %v after %d writes", consumer.APIVersion, consumer.Kind, err, s.writes)
		}
	}
}

// SPEC E32: a host that is deployed in a way of its own lives as one with an image does, and is no host that its Machine began to let go.
func TestLifeOfAHostThatIsDeployedInAWayOfItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStock(1)
		s.change(t, "host-0", func(h *host) { h.Status.HardwareDetails = nil }) // it need not be inspected
		d, spec := open(t, s), specOf(`"customDeploy": {"method": "install_coreos"}`)
		r := chosen(t, d, worker, spec)
		for range 2 { // also by who asks again
			if in, err := d.Create(t.Context(), r, spec); err != nil || in.State != provider.StatePending {
				t.Fatalf("Create = %+v, %v", in, err)
			}
		}
		follow(t, d, provider.StateRunning)
		if h := s.hosts["host-0"]; h.Spec.CustomDeploy == nil || h.Spec.CustomDeploy.Method != "install_coreos" || h.Spec.Image != nil || s.writes != 1 {
			t.Errorf("after %d writes the host is %+v", s.writes, h.Spec)
		}
		if all, err := d.List(t.Context()); err != nil || len(all) != 1 || all[0].Created.IsZero() {
			t.Errorf("a sweep would not know its age: %+v, %v", all, err)
		}
	})
}

// SPEC E29: a way to deploy may take an image: where a spec has both the operator is told of both, as OpenShift does.
func TestAWayToDeployMayTakeAnImage(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	d, spec := open(t, s), specOf(image+`, "customDeploy": {"method": "install_coreos"}`)
	if in, err := d.Create(t.Context(), chosen(t, d, worker, spec), spec); err != nil || in.State != provider.StatePending {
		t.Fatalf("Create = %+v, %v", in, err)
	}
	if h := s.hosts["host-0"]; h.Spec.Image == nil || h.Spec.Image.URL != "http://192.0.2.9/rhcos.qcow2" || h.Spec.CustomDeploy == nil || h.Spec.CustomDeploy.Method != "install_coreos" {
		t.Errorf("the host is %+v", h.Spec)
	}
}

// A host that somebody is about to deploy in a way of its own is that one's, though nothing is on it yet.
func TestHostThatSomebodyElseDeploysIsNotTaken(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	s.change(t, "host-0", func(h *host) { h.Spec.CustomDeploy = &metal3v1alpha1.CustomDeploy{Method: "install"} })
	if in, err := open(t, s).Create(t.Context(), worker, specOf(image)); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "provisioned by somebody else") {
		t.Errorf("Create = %+v, %v", in, err)
	}
}

// RELIABILITY R-B33: while nobody knows whether the host that a Machine began to let go is gone, the Machine gets no other.
func TestNoOtherHostBeforeTheFirstIsLetGo(t *testing.T) {
	t.Parallel()
	s := newStock(2)
	d, spec := open(t, s), specOf(image)
	r := chosen(t, d, worker, spec)
	runs(t, s, "host-0", corev1.ObjectReference{APIVersion: consumerVersion, Kind: consumerKind, Namespace: "machines", Name: worker.Name, UID: worker.UID})
	s.change(t, "host-0", func(h *host) { h.Spec.Image = nil })
	s.refuses = map[string]error{"host-0": errors.New("<html>bad gateway</html>")}
	for _, r := range []provider.Ref{worker, r} {
		if in, err := d.Create(t.Context(), r, spec); err == nil || !strings.Contains(err.Error(), "release host host-0") || s.hosts["host-1"].Spec.ConsumerRef != nil {
			t.Errorf("Create = %+v, %v", in, err)
		}
	}
}

// A claim that the API server gave no answer to may have come true: no other host is chosen, and nothing is taken for refused (G5).
func TestClaimWithoutAnAnswerIsNotPassedOver(t *testing.T) {
	t.Parallel()
	s := newStock(2)
	d, spec := open(t, s), specOf(image)
	r := chosen(t, d, worker, spec)
	timeout := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonTimeout, Code: 504, Details: &metav1.StatusDetails{Kind: "BareMetalHost"}}}
	s.refuses = map[string]error{"host-0": timeout, "host-1": timeout}
	if in, err := d.Create(t.Context(), r, spec); provider.CodeOf(err) != provider.Unknown || in.Progress != nil {
		t.Errorf("Create = %+v, %v (%v)", in, err, provider.CodeOf(err))
	}
}

// Whoever was faster costs a Machine no attempt: it chooses again, at once.
func TestWhoIsOvertakenChoosesAgain(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	d, spec := open(t, s), specOf(image)
	r := chosen(t, d, worker, spec)
	s.overtake = 1
	if r = chosen(t, d, r, spec); s.writes > 0 {
		t.Errorf("%d writes", s.writes)
	}
	if in, err := d.Create(t.Context(), r, spec); err != nil || in.State != provider.StatePending {
		t.Errorf("Create = %+v, %v", in, err)
	}
}

// After the last host comes the first again: who was refused all of them tries each once more, and what is free by then.
func TestTheFirstHostComesAfterTheLast(t *testing.T) {
	t.Parallel()
	s := newStock(2)
	refusal := provider.Errorf(provider.Denied, "told so")
	s.refuses = map[string]error{"host-0": refusal, "host-1": refusal}
	d, spec := open(t, s), specOf(image)
	r := chosen(t, d, worker, spec)
	first := r.Progress
	for range 2 {
		in, err := d.Create(t.Context(), r, spec)
		if provider.CodeOf(err) != provider.Exhausted {
			t.Fatalf("Create = %+v, %v", in, err)
		}
		r.Progress = in.Progress
	}
	if string(r.Progress) != string(first) {
		t.Errorf("after both comes %s, first was %s", r.Progress, first)
	}
}

// A request that cannot be read selects every host there is.
func TestNoHostIsTakenForAnUnreadableRequest(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	d, spec := open(t, s), specOf(image)
	r := chosen(t, d, worker, spec)
	for _, bad := range []string{``, `{}`, string(specOf(image + `, "hostSelector": {"matchExpressions": [{"key": "size", "operator": "like"}]}`))} {
		if in, err := d.Create(t.Context(), r, json.RawMessage(bad)); provider.CodeOf(err) != provider.Invalid || s.writes > 0 {
			t.Errorf("%q: Create = %+v, %v", bad, in, err)
		}
	}
}
