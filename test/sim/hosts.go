// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/provider/metal3"
)

const (
	numHosts = 6 // in the end; at first there may be fewHosts
	fewHosts = 2
	// numMasters are the Machines, or Nodes, of the control plane.
	numMasters = 3
	hostSpec   = `{"apiVersion":"baremetal.cluster.k8s.io/v1alpha1","image":{"checksum":"sum","url":"http://192.0.2.1/image"},` +
		`"kind":"BareMetalMachineProviderSpec","userData":{"name":"` + credentials + `"}}` // as it is stored
	hostHold = metal3v1alpha1.RebootAnnotationPrefix + "/"
)

// hosts are bare metal: what an API server says of hosts, which the real driver reaches over HTTP, and an operator that
// provisions and cleans them. That API server is not the one that people restore from a backup.
type hosts struct {
	play       *Play
	all        map[string]metal
	sorted     []string // their names; nil: since they were sorted one came or went
	version    int
	made       int
	takes      time.Duration // the operator to provision one
	cleans     time.Duration
	history    []cloud.Event
	operations map[string]time.Time
}

// metal is one host; it is never changed, but replaced.
type metal struct {
	*metal3v1alpha1.BareMetalHost
	text []byte
	read func() metal3v1alpha1.BareMetalHost // what a client reads of the text
}

// What can happen to a host beside what happens to instances.
const (
	released cloud.What = "released" // has no consumer any more
	stolen   cloud.What = "stolen"   // has another consumer than before
)

// enoughHosts are as many as all Machines that people may want can have.
func (p *Play) enoughHosts() int {
	if p.Masters {
		return numHosts + numMasters + p.mostBeside()
	}
	return numHosts + p.mostBeside()
}

func (p *Play) stockUp(n int, takes, cleans time.Duration) {
	h := &hosts{play: p, all: map[string]metal{}, takes: takes, cleans: cleans, operations: map[string]time.Time{}}
	p.hosts = h
	for range n {
		h.add()
	}
	var transport http.RoundTripper = h
	if p.Hosts != nil {
		transport = p.Hosts(h)
	}
	reached, err := metal3.NewHosts(&rest.Config{Host: "http://192.0.2.1", Transport: transport})
	if err != nil {
		panic(fmt.Sprintf("the simulation cannot reach its hosts: %v", err))
	}
	if p.Hosts == nil && !p.Exact {
		reached = readOnce{reached, h}
	}
	p.hostsProvider = metal3.Provider(reached)
}

// add puts a host into the stock that waits for somebody.
func (h *hosts) add() {
	type fresh struct{ number, version int }
	h.made++
	h.version++
	m, _ := machine.Remembered(h.play.records, fresh{h.made, h.version}, func() (metal, error) { return h.stored(h.fresh()), nil })
	h.all[m.Name], h.sorted = m, nil
}

// fresh returns the host that was made last.
func (h *hosts) fresh() *metal3v1alpha1.BareMetalHost {
	name := fmt.Sprintf("host-%d", h.made)
	o := &metal3v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: machine.Namespace, UID: types.UID("of-" + name)}}
	o.APIVersion, o.Kind = "metal3.io/v1alpha1", "BareMetalHost"
	o.Spec.Online = true
	o.Spec.BMC = metal3v1alpha1.BMCDetails{Address: "redfish+http://192.0.2.2/" + name, CredentialsName: "bmc"}
	o.Status.PoweredOn = true
	o.Status.Provisioning.State = metal3v1alpha1.StateAvailable
	o.Status.HardwareDetails = &metal3v1alpha1.HardwareDetails{Hostname: name, NIC: []metal3v1alpha1.NIC{{IP: fmt.Sprintf("198.51.100.%d", h.made)}}}
	o.ResourceVersion = strconv.Itoa(h.version)
	return o
}

func (h *hosts) put(o *metal3v1alpha1.BareMetalHost) metal {
	h.version++
	o.ResourceVersion = strconv.Itoa(h.version)
	m := h.stored(o)
	h.all[o.Name] = m
	return m
}

func addressesOf(o metal) []corev1.NodeAddress {
	found := o.Status.HardwareDetails
	return []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: found.NIC[0].IP}, {Type: corev1.NodeHostName, Address: found.Hostname}, {Type: corev1.NodeInternalDNS, Address: found.Hostname}}
}

// names returns the names of all hosts, sorted. Nobody changes the result.
func (h *hosts) names() []string {
	if h.sorted == nil {
		h.sorted = slices.Sorted(maps.Keys(h.all))
	}
	return h.sorted
}

// change is what the operator and people do to a host.
func (h *hosts) change(name string, f func(*metal3v1alpha1.BareMetalHost)) {
	next := h.all[name].DeepCopy()
	f(next)
	h.put(next)
}

// operate is what the operator does as time passes: each of its writes is a version that others have not seen.
func (h *hosts) operate() {
	for _, name := range h.names() {
		o := h.all[name]
		_, paused := o.Annotations[metal3v1alpha1.PausedAnnotation]
		to, after := h.next(o)
		if to == nil || paused {
			delete(h.operations, name)
			continue
		}
		due, begun := h.operations[name]
		switch {
		case !begun:
			h.operations[name] = h.play.elsewhere().Add(after)
		case !h.play.elsewhere().Before(due):
			delete(h.operations, name)
			h.change(name, to)
			h.powered(o, h.all[name])
			h.play.tracef("the operator makes %s %s, powered: %v", name, h.all[name].Status.Provisioning.State, h.all[name].Status.PoweredOn)
		}
	}
}

// powered tells that the power of a host goes, or comes, while somebody has it.
func (h *hosts) powered(old, now metal) {
	uid := consumerOf(now)
	switch provisioned := metal3v1alpha1.StateProvisioned; {
	case uid == "" || old.Status.Provisioning.State != provisioned || now.Status.Provisioning.State != provisioned:
	case old.Status.PoweredOn && !now.Status.PoweredOn:
		h.play.poweredOff(uid, now.Name)
	case !old.Status.PoweredOn && now.Status.PoweredOn:
		h.play.poweredOn(providerIDOf(now))
	}
}

// next is what the operator does to a host, and how long that takes.
func (h *hosts) next(o metal) (to func(*metal3v1alpha1.BareMetalHost), after time.Duration) {
	enters := func(s metal3v1alpha1.ProvisioningState, on bool) func(*metal3v1alpha1.BareMetalHost) {
		return func(o *metal3v1alpha1.BareMetalHost) { o.Status.Provisioning.State, o.Status.PoweredOn = s, on }
	}
	on, deployed := o.Spec.Online && !heldOff(o), o.Spec.Image != nil
	switch state := o.Status.Provisioning.State; {
	case deployed && state == metal3v1alpha1.StateAvailable:
		return enters(metal3v1alpha1.StateProvisioning, true), time.Second
	case deployed && state == metal3v1alpha1.StateProvisioning:
		start := metav1.NewTime(h.play.clock.Truncate(time.Second))
		return func(o *metal3v1alpha1.BareMetalHost) {
			enters(metal3v1alpha1.StateProvisioned, on)(o)
			o.Status.OperationHistory.Provision.Start = start
		}, h.takes
	case !deployed && (state == metal3v1alpha1.StateProvisioned || state == metal3v1alpha1.StateProvisioning):
		return enters(metal3v1alpha1.StateDeprovisioning, false), time.Second
	case !deployed && state == metal3v1alpha1.StateDeprovisioning:
		return enters(metal3v1alpha1.StateAvailable, on), h.cleans
	case o.Status.PoweredOn != on:
		return enters(state, on), 5 * time.Second
	}
	if _, restart := o.Annotations[metal3v1alpha1.RebootAnnotationPrefix]; restart {
		return func(o *metal3v1alpha1.BareMetalHost) { delete(o.Annotations, metal3v1alpha1.RebootAnnotationPrefix) }, 5 * time.Second
	}
	return nil, 0
}

func heldOff(o metal) bool {
	for key := range o.Annotations {
		if strings.HasPrefix(key, hostHold) {
			return true
		}
	}
	return false
}

// limit pauses the free hosts beyond n, or lets them all be used again.
func (h *hosts) limit(n int) {
	for _, name := range h.names() {
		o := h.all[name]
		_, paused := o.Annotations[metal3v1alpha1.PausedAnnotation]
		free := o.Spec.ConsumerRef == nil
		switch {
		case free && n == 0 && !paused:
			h.change(name, func(o *metal3v1alpha1.BareMetalHost) {
				metav1.SetMetaDataAnnotation(&o.ObjectMeta, metal3v1alpha1.PausedAnnotation, "")
			})
		case n != 0 && paused:
			h.change(name, func(o *metal3v1alpha1.BareMetalHost) { delete(o.Annotations, metal3v1alpha1.PausedAnnotation) })
		}
		if free && n > 0 {
			n--
		}
	}
	for n < 0 && len(h.all) < h.play.enoughHosts() {
		h.add()
	}
}

// vanish takes a host out of the stock: its hardware was carried away.
func (h *hosts) vanish(id string) {
	name, _, _ := strings.Cut(id, "/")
	h.told(cloud.Vanished, h.all[name], h.all[name].Spec.ConsumerRef.UID)
	delete(h.all, name)
	h.sorted = nil
}

func (h *hosts) told(what cloud.What, o metal, uid types.UID) {
	name := ""
	if ref := o.Spec.ConsumerRef; ref != nil {
		name = ref.Name
	}
	h.history = append(h.history, cloud.Event{At: h.play.clock, What: what, ID: o.Name + "/" + string(uid), UID: uid, Name: name})
}

// instances returns what every claimed host is to its Machine.
func (h *hosts) instances() (all []provider.Instance) {
	for _, name := range h.names() {
		o := h.all[name]
		ref := o.Spec.ConsumerRef
		if ref == nil {
			continue
		}
		i := provider.Instance{
			ID: name + "/" + string(ref.UID), ProviderID: providerIDOf(o), UID: ref.UID, Name: ref.Name, State: provider.StatePending,
			Addresses: addressesOf(o),
		}
		switch {
		case o.Spec.Image == nil:
			i.State = provider.StateDeleting
		case o.Status.Provisioning.State == metal3v1alpha1.StateProvisioned && o.Status.PoweredOn:
			i.State = provider.StateRunning
		case o.Status.Provisioning.State == metal3v1alpha1.StateProvisioned:
			i.State = provider.StateStopped
		}
		all = append(all, i)
	}
	return all
}

// judge tells what a write of a function did to a host.
func (h *hosts) judge(old, now metal) {
	was, is := consumerOf(old), consumerOf(now)
	switch {
	case was == "" && is != "":
		h.told(cloud.Created, now, is)
	case was != "" && is == "":
		delete(h.play.sick, providerIDOf(old)) // it was cleaned
		delete(h.play.silent, providerIDOf(old))
		h.told(released, old, was)
	case was != is:
		h.told(stolen, old, was)
		h.told(cloud.Created, now, is)
	case old.Spec.Image != nil && now.Spec.Image == nil:
		h.told(cloud.Deleted, now, is)
	}
	if was != is && old.Spec.Image != nil && was != "" || is == "" && working(old) {
		h.play.violate("R-S3", "%s is taken from %s while it is %s", old.Name, old.Spec.ConsumerRef.Name, old.Status.Provisioning.State)
	}
}

func working(o metal) bool {
	switch o.Status.Provisioning.State { //nolint:exhaustive // in the others there is nothing on it
	case metal3v1alpha1.StateProvisioning, metal3v1alpha1.StateProvisioned, metal3v1alpha1.StateDeprovisioning:
		return true
	}
	return false
}

func consumerOf(o metal) types.UID {
	if o.Spec.ConsumerRef == nil {
		return ""
	}
	return o.Spec.ConsumerRef.UID
}

func providerIDOf(o metal) string {
	return fmt.Sprintf("%s%s/%s/%s", machine.SchemeBareMetal, o.Namespace, o.Name, o.UID)
}

// backup returns what makes the hosts what they are now.
func (h *hosts) backup() (restore func()) {
	if h == nil {
		return func() {}
	}
	all, operations, history, made := maps.Clone(h.all), maps.Clone(h.operations), len(h.history), h.made
	return func() {
		h.all, h.sorted, h.operations, h.history, h.made = maps.Clone(all), nil, maps.Clone(operations), h.history[:history], made
	}
}
