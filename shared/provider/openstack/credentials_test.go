// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	provisionmachine "github.com/machine-functions/machine-functions/functions/provision-machine"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// office is one process of provision-machine with a Machine, on a cloud whose password changes.
type office struct {
	cloud *fake
	api   *memory.Server
	run   *runner.Runner
	log   bytes.Buffer
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{cloud: newFake(), api: memory.New(time.Now)}
	as := o.api.As(provisionmachine.Function.Name)
	o.run = &runner.Runner{
		Function: provisionmachine.Function, Cluster: as, Clock: time.Now, Log: slog.New(slog.NewJSONHandler(&o.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Clouds: runner.NewClouds([]provider.Provider{providerOf(o.cloud)}, as.Secret),
	}
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "worker-0", Labels: map[string]string{machine.LabelCluster: "ocp43-abcde"}}}
	m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: specWith("")}
	if err := o.api.Put(m); err != nil {
		t.Fatal(err)
	}
	o.api.PutSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "worker-user-data"}, Data: map[string][]byte{"userData": []byte("{}")}})
	return o
}

// password puts one into the Secret.
func (o *office) password(text string) {
	clouds := accountOf(text).Credentials
	o.api.PutSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "openstack-cloud-credentials"}, Data: clouds})
}

// scans lets ten seconds pass before each of n scans, and returns how often somebody tried to log in.
func (o *office) scans(t *testing.T, n int) (logins int) {
	t.Helper()
	before := len(o.cloud.calls)
	for range n {
		time.Sleep(10 * time.Second)
		_, _ = o.run.Handle(t.Context(), snapshot.Request{}) // a cloud that refuses is no failure of a scan
	}
	for _, call := range o.cloud.calls[before:] {
		if strings.HasSuffix(call, "/auth/tokens") {
			logins++
		}
	}
	return logins
}

// wantRefused wants one condition and one Event that say why, on a Machine that has not failed.
func (o *office) wantRefused(t *testing.T, events int, says ...string) {
	t.Helper()
	m := memory.List[*machine.Machine](o.api)[0]
	if phase := machine.Phase(m); phase != machine.PhaseProvisioning {
		t.Errorf("the phase is %q", phase)
	}
	told := o.api.Events()
	if len(told) != events {
		t.Errorf("%d Events: %v", len(told), told)
	}
	var shown []string
	for _, c := range m.Status.Conditions {
		if c.Status != corev1.ConditionTrue && c.Reason != machinev1beta1.InstanceNotCreatedReason { // that is no cause
			shown = append(shown, c.Message)
		}
	}
	if len(shown) != 1 || len(told) == 0 {
		t.Fatalf("conditions %q, Events %v", shown, told)
	}
	for _, text := range says {
		if !strings.Contains(shown[0], text) || !strings.Contains(told[len(told)-1].Message, text) {
			t.Errorf("neither condition nor Event may lack %q: %q, %q", text, shown[0], told[len(told)-1].Message)
		}
	}
}

// A Secret that is missing, or whose password is wrong, holds a Machine up and never fails it; the cloud is asked once in
// a minute; another password is used at once, by the same process; nothing ever tells one (SPEC B19, E2, E18).
func TestSecretIsMissingThenWrongThenRightThenAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const wrong, right, another = "hunter2-wrong", "hunter2-right", "hunter2-another"
		o := newOffice(t)
		if n := o.scans(t, 30); n != 0 || len(o.cloud.calls) != 0 {
			t.Errorf("without a Secret the cloud was asked %d times", len(o.cloud.calls))
		}
		o.wantRefused(t, 1, "credentials secret openshift-machine-api/openstack-cloud-credentials")

		o.cloud.refuses = wrong
		o.password(wrong)
		if n := o.scans(t, 30); n < 4 || n > 6 {
			t.Errorf("%d logins in five minutes", n)
		}
		o.wantRefused(t, 2, "credentials secret openshift-machine-api/openstack-cloud-credentials", "log in to openstack", "requires authentication. (401)")

		o.password(right)
		o.scans(t, 6)
		m := memory.List[*machine.Machine](o.api)[0]
		if phase := machine.Phase(m); phase != machine.PhaseProvisioned || o.cloud.count("servers") != 1 {
			t.Errorf("with the right password the phase is %q, with %d servers", phase, o.cloud.count("servers"))
		}

		told := len(o.api.Events())
		o.cloud.refuses, o.cloud.tokens = right, map[string]time.Time{} // rotated; the old tokens went with the old password
		o.password(another)
		if n := o.scans(t, 30); n != 1 {
			t.Errorf("%d logins with the other password", n)
		}
		if after := len(o.api.Events()); after != told || o.cloud.count("servers") != 1 {
			t.Errorf("the rotation was told of: %v", o.api.Events()[told:])
		}

		text, err := json.Marshal(memory.List[*machine.Machine](o.api))
		if err != nil {
			t.Fatal(err)
		}
		if all := o.log.String() + fmt.Sprint(o.api.Events()) + string(text); strings.Contains(all, "hunter2") {
			t.Errorf("a password is told in %s", all)
		}
	})
}

// A password that was wrong when the Machine was made is told of once, however the cloud is asked: at first how to make an
// instance, later whether there is one. What comes after it is told, and what comes back after that as well.
func TestPasswordIsWrongFromTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.cloud.refuses = "hunter2-wrong"
		o.password("hunter2-wrong")
		o.scans(t, 30)
		denied := []string{"credentials secret openshift-machine-api/openstack-cloud-credentials", "log in to openstack", "requires authentication. (401)"}
		o.wantRefused(t, 1, denied...)

		exists := func() string {
			if c := machine.FindCondition(memory.List[*machine.Machine](o.api)[0].Status.Conditions, machine.ConditionInstanceExists); c != nil {
				return c.Message
			}
			return ""
		}
		o.cloud.wire = func(context.Context, *http.Request, bool) (*http.Response, error) {
			return nil, errors.New("no route to host")
		}
		o.scans(t, 30)
		if said := exists(); !strings.Contains(said, "no route to host") {
			t.Errorf("without a network it says %q", said)
		}
		o.cloud.wire = nil
		o.scans(t, 90)
		if said := exists(); !strings.Contains(said, denied[2]) {
			t.Errorf("refused again, it says %q", said)
		}
	})
}

// A cloud whose certificate the Secret's authorities did not sign is no cloud that fails: it is asked once in a minute, and
// the Machine says at which key of which Secret to look. It begins when the certificate is the right one.
func TestCertificateIsNotTheSecrets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.password("right")
		asked := 0
		o.cloud.wire = func(context.Context, *http.Request, bool) (*http.Response, error) {
			asked++
			return nil, &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
		}
		for range 30 {
			time.Sleep(10 * time.Second)
			if _, err := o.run.Handle(t.Context(), snapshot.Request{}); err != nil {
				t.Errorf("a scan failed: %v", err)
			}
		}
		if asked < 4 || asked > 6 {
			t.Errorf("%d requests in five minutes", asked)
		}
		o.wantRefused(t, 1, "credentials secret openshift-machine-api/openstack-cloud-credentials: log in to openstack: tls: failed to verify certificate: x509: certificate signed by unknown authority; see to key cacert")
		o.cloud.wire = nil
		o.scans(t, 12)
		if m := memory.List[*machine.Machine](o.api)[0]; machine.Phase(m) != machine.PhaseProvisioned {
			t.Errorf("the phase is %q in the end", machine.Phase(m))
		}
	})
}
