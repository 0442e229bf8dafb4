// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// step is how long the operator of the fake takes from one state to the next.
const step = 300 * time.Millisecond

// stock is hosts in memory, with an operator that provisions and cleans them as time passes.
type stock struct {
	mu      sync.Mutex
	hosts   map[string]host
	moves   map[string]time.Time // when a host moves to its next state
	version int
	writes  int
	hangs   bool

	overtake int              // so many patches meet a version that the operator has just written
	refuses  map[string]error // what the API server has against every patch of a host
}

// newStock has n hosts that are free.
func newStock(n int) *stock {
	s := &stock{hosts: map[string]host{}, moves: map[string]time.Time{}}
	for i := range n {
		s.add(free(i))
	}
	return s
}

// free returns a host that was inspected and waits.
func free(i int) host {
	name := fmt.Sprintf("host-%d", i)
	h := host{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "machines", UID: types.UID("uid-" + name), Labels: map[string]string{"role": "worker"}},
		Spec: metal3v1alpha1.BareMetalHostSpec{
			Online: true, BMC: metal3v1alpha1.BMCDetails{Address: fmt.Sprintf("redfish+http://192.0.2.%d/redfish/v1/Systems/1", i+1), CredentialsName: "bmc"},
		},
	}
	h.Status.Provisioning.State = metal3v1alpha1.StateAvailable
	h.Status.PoweredOn = true
	h.Status.HardwareDetails = &metal3v1alpha1.HardwareDetails{
		Hostname: name + ".lab", NIC: []metal3v1alpha1.NIC{{IP: fmt.Sprintf("192.0.2.%d", i+1)}},
	}
	return h
}

func (s *stock) add(h host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(h)
}

// put writes h. The caller holds the lock.
func (s *stock) put(h host) host {
	s.version++
	h.ResourceVersion = strconv.Itoa(s.version)
	s.hosts[h.Name] = h
	return *h.DeepCopy()
}

// change is what a person or the operator does to a host.
func (s *stock) change(t *testing.T, name string, f func(*host)) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.hosts[name]
	if !ok {
		t.Fatalf("no host %s", name)
	}
	f(&h)
	s.put(h)
}

// operate lets the operator do what is due. The caller holds the lock.
func (s *stock) operate() {
	now := time.Now()
	for _, name := range slices.Sorted(maps.Keys(s.hosts)) {
		h := s.hosts[name]
		wants := h.Spec.Image != nil || h.Spec.CustomDeploy != nil
		next := map[metal3v1alpha1.ProvisioningState]metal3v1alpha1.ProvisioningState{}
		if wants {
			next[metal3v1alpha1.StateAvailable] = metal3v1alpha1.StateProvisioning
			next[metal3v1alpha1.StateProvisioning] = metal3v1alpha1.StateProvisioned
		} else {
			next[metal3v1alpha1.StateProvisioning] = metal3v1alpha1.StateDeprovisioning
			next[metal3v1alpha1.StateProvisioned] = metal3v1alpha1.StateDeprovisioning
			next[metal3v1alpha1.StateDeprovisioning] = metal3v1alpha1.StateAvailable
		}
		if _, asked := h.Annotations[metal3v1alpha1.RebootAnnotationPrefix]; asked { // done at once
			delete(h.Annotations, metal3v1alpha1.RebootAnnotationPrefix)
			s.put(h)
		}
		shallBeOn := h.Spec.Online && !held(h)
		if h.Status.PoweredOn != shallBeOn {
			for _, steady := range []metal3v1alpha1.ProvisioningState{metal3v1alpha1.StateExternallyProvisioned, metal3v1alpha1.StateProvisioned} {
				if _, moves := next[steady]; !moves {
					next[steady] = steady
				}
			}
		}
		to, moving := next[h.Status.Provisioning.State]
		due, timed := s.moves[name]
		switch {
		case !moving:
			delete(s.moves, name)
		case !timed:
			s.moves[name] = now.Add(step)
		case !now.Before(due):
			h.Status.Provisioning.State, h.Status.PoweredOn = to, shallBeOn
			h.Status.OperationHistory.Provision.Start = metav1.NewTime(now)
			delete(s.moves, name)
			s.put(h)
		}
	}
}

func (s *stock) begin(ctx context.Context) error {
	s.mu.Lock()
	hangs := s.hangs
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
	}
	return ctx.Err()
}

// List implements [Hosts].
func (s *stock) List(ctx context.Context, namespace string) ([]host, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.operate()
	var all []host
	for _, name := range slices.Sorted(maps.Keys(s.hosts)) {
		if h := s.hosts[name]; h.Namespace == namespace {
			all = append(all, *h.DeepCopy())
		}
	}
	return all, nil
}

// Get implements [Hosts].
func (s *stock) Get(ctx context.Context, namespace, name string) (host, error) {
	if err := s.begin(ctx); err != nil {
		return host{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.operate()
	h, ok := s.hosts[name]
	if !ok || h.Namespace != namespace {
		return host{}, ErrGone
	}
	return *h.DeepCopy(), nil
}

// Patch implements [Hosts].
func (s *stock) Patch(ctx context.Context, namespace, name string, p patch) (host, error) {
	if err := s.begin(ctx); err != nil {
		return host{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.overtake > 0 {
		s.overtake--
		s.put(s.hosts[name])
	}
	old, ok := s.hosts[name]
	switch {
	case !ok || old.Namespace != namespace:
		return host{}, ErrGone
	case old.ResourceVersion != p.Metadata.ResourceVersion:
		return host{}, ErrConflict
	case s.refuses[name] != nil:
		return host{}, s.refuses[name]
	}
	var next host
	before, err := json.Marshal(old)
	if err != nil {
		return host{}, err
	}
	change, err := json.Marshal(p)
	if err != nil {
		return host{}, err
	}
	after, err := jsonpatch.MergePatch(before, change)
	if err != nil {
		return host{}, err
	}
	if err := json.Unmarshal(after, &next); err != nil {
		return host{}, err
	}
	s.writes++
	return s.put(next), nil
}
