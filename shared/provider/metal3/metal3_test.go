// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"encoding/json"
	"testing"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/drivertest"
)

const image = `"image": {"url": "http://192.0.2.9/rhcos.qcow2", "checksum": "http://192.0.2.9/rhcos.sum"}`

func specOf(fields string) json.RawMessage {
	return json.RawMessage(`{"apiVersion": "baremetal.cluster.k8s.io/v1alpha1", "kind": "BareMetalMachineProviderSpec", ` + fields + `}`)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	drivertest.RunVirtual(t, func(t *testing.T) drivertest.Harness {
		t.Helper()
		return harness(newStock(12))
	})
}

func harness(s *stock) drivertest.Harness {
	return drivertest.Harness{
		Provider: Provider(s),
		Account:  provider.Account{Kind: Kind, Namespace: "machines", UserData: secrets},
		Spec:     specOf(image + `, "userData": {"name": "worker-user-data-managed"}, "hostSelector": {"matchLabels": {"role": "worker"}}`),
		Invalid: []drivertest.Bad{
			{Spec: specOf(`"hostSelector": {}`), Names: []string{"providerSpec.value.image.url"}},
			{Spec: specOf(`"image": {"url": "http://192.0.2.9/a"}`), Names: []string{"providerSpec.value.image.checksum"}},
			{Spec: specOf(image + `, "color": "red"`), Names: []string{"color"}},
			{Spec: specOf(image + `, "userData": {"name": "a", "namespace": "other"}`), Names: []string{"providerSpec.value.userData.namespace", "other"}},
			{Spec: specOf(image + `, "hostSelector": {"matchExpressions": [{"key": "a", "operator": "like", "values": ["b"]}]}`), Names: []string{"operator", "like"}},
		},
		Missing:       &drivertest.Bad{Spec: specOf(image + `, "userData": {"name": "nobody-wrote-it"}`), Names: []string{"providerSpec.value.userData.name", "nobody-wrote-it"}},
		Exhaust:       s.exhaust,
		Hang:          func(hang bool) { s.mu.Lock(); s.hangs = hang; s.mu.Unlock() },
		Writes:        func() int { s.mu.Lock(); defer s.mu.Unlock(); return s.writes },
		Untagged:      s.untagged,
		UntaggedOf:    "master-0",
		Foreign:       func(string) string { id, _ := s.untagged(); return id },
		OnePerMachine: true,
		TokensReused:  true,
		OwnNames:      true,
	}
}

func secrets(_ context.Context, name string) (map[string][]byte, string, error) {
	if name != "worker-user-data-managed" {
		return nil, "", provider.Errorf(provider.Exhausted, "secret %q not found", name)
	}
	return map[string][]byte{"userData": []byte("{}")}, "1", nil
}

// exhaust lets somebody else take every free host, or give them back.
func (s *stock) exhaust(exhausted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hosts {
		switch {
		case exhausted && h.Spec.ConsumerRef == nil:
			h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Metal3Machine", Name: "foreign"}
		case !exhausted && h.Spec.ConsumerRef != nil && h.Spec.ConsumerRef.Name == "foreign":
			h.Spec.ConsumerRef = nil
		}
		s.put(h)
	}
}

// untagged is a host that an installer gave to a Machine: the claim names it, and knows no UID.
func (s *stock) untagged() (providerID string, exists func() bool) {
	h := free(99)
	h.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: consumerVersion, Kind: consumerKind, Namespace: "machines", Name: "master-0"}
	h.Spec.ExternallyProvisioned = true
	h.Status.Provisioning.State = metal3v1alpha1.StateExternallyProvisioned
	s.add(h)
	return providerIDOf(h), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.hosts[h.Name].Spec.ConsumerRef != nil
	}
}
