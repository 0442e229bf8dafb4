// SPDX-License-Identifier: Apache-2.0

package kubemark

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Labels of a record, which is all that a Store can select by.
const (
	labelPrefix  = "kubemark.machine-functions.dev/"
	labelRecord  = labelPrefix + "record" // "instance": what is not the settings
	labelLive    = labelPrefix + "live"   // "false" once the instance is gone: the rest is history
	labelCluster = labelPrefix + "cluster"
	labelUID     = labelPrefix + "machine-uid"
	labelType    = labelPrefix + "type"
	labelZone    = labelPrefix + "zone"
	labelAddress = labelPrefix + "address"
)

// Fault is what a person makes of an instance, by writing it into the record.
type Fault string

// Faults.
const (
	FaultNone     Fault = ""
	FaultStopped  Fault = "stopped"  // the kubelet is dead, the instance runs
	FaultUnready  Fault = "unready"  // the kubelet says that it is not ready
	FaultOff      Fault = "off"      // the instance is powered off
	FaultError    Fault = "error"    // the cloud says that the instance will never run
	FaultVanished Fault = "vanished" // the cloud has lost the instance
)

var faults = []Fault{FaultNone, FaultStopped, FaultUnready, FaultOff, FaultError, FaultVanished}

// Kubelet is what the kubelet of an instance does.
type Kubelet string

// What a kubelet does.
const (
	KubeletNone    Kubelet = "none" // not started yet
	KubeletReady   Kubelet = "ready"
	KubeletUnready Kubelet = "unready"
	KubeletStopped Kubelet = "stopped"
)

// Record is one instance, from the wish for it until its history is dropped. Its state at a time follows from what was
// written, so nobody has to be there when a timer ends.
type Record struct {
	ID      string
	Cluster string    // tag; empty if nobody of ours made it
	Mark    types.UID // of the one cluster, whatever other has its id
	UID     types.UID
	Token   string
	Name    string
	Spec    Spec
	Address string

	Admitted   bool      // before, it is a claim to an address and to stock, and no instance
	Created    time.Time // of the instance, or of the claim
	Deleted    time.Time // when its deletion was asked for; zero before
	Gone       time.Time // when it was seen to be gone; zero before
	Cycled     time.Time // when it was last powered off and on; zero before
	Fault      Fault
	Registered bool // its kubelet has made, or found, its Node

	version string
}

// Load reads a record.
func Load(o Object) (Record, error) {
	r := Record{
		ID: o.Name, Cluster: o.Data["cluster"], Mark: types.UID(o.Data["clusterUID"]), UID: types.UID(o.Data["uid"]), Token: o.Data["token"], Name: o.Data["name"],
		Address: o.Data["address"], Fault: Fault(o.Data["fault"]), version: o.Version,
	}
	var err error
	fail := func(key string, why error) {
		if err == nil && why != nil {
			err = fmt.Errorf("record %s: %s: %w", o.Name, key, why)
		}
	}
	for key, into := range map[string]*time.Time{"created": &r.Created, "deleted": &r.Deleted, "gone": &r.Gone, "cycled": &r.Cycled} {
		if text := o.Data[key]; text != "" {
			at, why := time.Parse(time.RFC3339Nano, text)
			fail(key, why)
			*into = at
		}
	}
	for key, into := range map[string]*bool{"admitted": &r.Admitted, "registered": &r.Registered} {
		if text := o.Data[key]; text != "" {
			yes, why := strconv.ParseBool(text)
			fail(key, why)
			*into = yes
		}
	}
	spec, why := parse(json.RawMessage(o.Data["spec"]))
	fail("spec", why)
	if r.Spec = spec; !slices.Contains(faults, r.Fault) {
		fail("fault", fmt.Errorf("%q is none of %q", r.Fault, faults))
	}
	return r, err
}

// object returns the record as it is stored.
func (r Record) object() (Object, error) {
	spec, err := r.Spec.encode()
	if err != nil {
		return Object{}, err
	}
	o := Object{
		Name: r.ID, Version: r.version,
		Labels: map[string]string{
			labelRecord: "instance", labelLive: strconv.FormatBool(r.Gone.IsZero()), labelCluster: r.Cluster, labelUID: string(r.UID),
			labelType: r.Spec.InstanceType().Name, labelZone: r.Spec.Zone, labelAddress: r.Address,
		},
		Data: map[string]string{
			"cluster": r.Cluster, "uid": string(r.UID), "token": r.Token, "name": r.Name, "address": r.Address,
			"fault": string(r.Fault), "admitted": strconv.FormatBool(r.Admitted), "registered": strconv.FormatBool(r.Registered),
			"spec": string(spec),
		},
	}
	if r.Mark != "" {
		o.Data["clusterUID"] = string(r.Mark)
	}
	for key, at := range map[string]time.Time{"created": r.Created, "deleted": r.Deleted, "gone": r.Gone, "cycled": r.Cycled} {
		if !at.IsZero() {
			o.Data[key] = at.UTC().Format(time.RFC3339Nano)
		}
	}
	return o, nil
}

// Save writes the record if nobody wrote it since it was loaded.
func (r Record) Save(ctx context.Context, s Store) (Record, error) {
	o, err := r.object()
	if err == nil {
		o, err = s.Update(ctx, o)
	}
	if err != nil {
		return r, fmt.Errorf("save record %s: %w", r.ID, err)
	}
	r.version = o.Version
	return r, nil
}

// Drop removes the record if nobody wrote it since it was loaded: a claim that came to nothing, or old history.
func (r Record) Drop(ctx context.Context, s Store) error {
	if err := s.Delete(ctx, Object{Name: r.ID, Version: r.version}); err != nil {
		return fmt.Errorf("drop record %s: %w", r.ID, err)
	}
	return nil
}

// identity returns the id of the instance that a token stands for.
func identity(cluster, token string) string {
	h := sha256.Sum256([]byte(cluster + "|" + token))
	return "i-" + hex.EncodeToString(h[:])[:17]
}

// address returns an address of the machine network for an id; another one for every other salt.
func address(id, salt string) string {
	h := sha256.Sum256([]byte(id + "|" + salt))
	return netip.AddrFrom4([4]byte{10, 0, h[0], 1 + h[1]%254}).String()
}

// ProviderID is what the Node will carry.
func (r Record) ProviderID() string { return "kubemark://" + r.Cluster + "/" + r.ID }

// Addresses are known from the start: the name among them, so that the Node is recognized when it joins (SPEC B83).
func (r Record) Addresses() []corev1.NodeAddress {
	return []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: r.Address},
		{Type: corev1.NodeInternalDNS, Address: r.Name},
		{Type: corev1.NodeHostName, Address: r.Name},
	}
}

// IsGone reports whether the instance no longer exists.
func (r Record) IsGone(now time.Time) bool {
	return !r.Gone.IsZero() || r.Fault == FaultVanished ||
		!r.Deleted.IsZero() && !now.Before(r.Deleted.Add(duration(r.Spec.DeletionTimeout))) ||
		r.Spec.VanishAfter != nil && !now.Before(r.Created.Add(r.Spec.VanishAfter.Duration))
}

// Kubelet returns what the instance's kubelet does.
func (r Record) Kubelet(now time.Time) Kubelet {
	started := r.Created
	if !r.Cycled.IsZero() {
		started = r.Cycled
	}
	up := now.Sub(started) - r.Spec.boot()
	switch {
	case r.IsGone(now), !r.Deleted.IsZero(), r.Fault == FaultStopped, r.Fault == FaultOff, r.Fault == FaultError:
		return KubeletStopped
	case up < 0 && r.Registered: // it boots again
		return KubeletStopped
	case !r.Admitted, r.Spec.NeverBoot, up < 0:
		return KubeletNone
	case r.Fault == FaultUnready, !r.Spec.healthy(up):
		return KubeletUnready
	}
	return KubeletReady
}

// state returns what the cloud says about an instance that exists, in our word and in its own.
func (r Record) state(now time.Time) (provider.State, string) {
	switch {
	case !r.Deleted.IsZero():
		return provider.StateDeleting, "DELETING"
	case r.Fault == FaultError:
		return provider.StateFailed, "ERROR"
	case r.Fault == FaultOff:
		return provider.StateStopped, "SHUTOFF"
	case now.Sub(r.Created) < r.Spec.boot():
		return provider.StatePending, "BUILD"
	}
	return provider.StateRunning, "ACTIVE"
}

// instance returns the cloud's view of the record.
func (r Record) instance(now time.Time) (provider.Instance, error) {
	state, word := r.state(now)
	status, err := json.Marshal(map[string]string{
		"apiVersion": APIVersion, "kind": "KubemarkMachineProviderStatus", "instanceId": r.ID, "instanceState": word,
	})
	i := provider.Instance{
		ID: r.ID, ProviderID: r.ProviderID(), UID: r.UID, ClusterUID: r.Mark, Token: r.Token, Name: r.Name, State: state, CloudState: word,
		Type: r.Spec.InstanceType().Name, Region: r.Spec.Region, Zone: r.Spec.Zone, Addresses: r.Addresses(),
		Created: r.Created, Status: status, Tags: r.Spec.Tags,
	}
	if r.Fault == FaultError {
		i.Message = "the record's fault says so"
	}
	return i, err
}

// History returns every instance that ever existed, until the simulator drops what is long gone, in the order of their
// creation.
func History(ctx context.Context, s Store) ([]Record, error) {
	records, err := Records(ctx, s, false)
	records = slices.DeleteFunc(records, func(r Record) bool { return !r.Admitted })
	slices.SortStableFunc(records, func(a, b Record) int { return a.Created.Compare(b.Created) })
	return records, err
}

// Records returns all records, or only those not yet known to be gone. It leaves out what cannot be read, and says so
// in the error.
func Records(ctx context.Context, s Store, live bool) ([]Record, error) {
	labels := map[string]string{labelRecord: "instance"}
	if live {
		labels[labelLive] = "true"
	}
	return load(ctx, s, labels)
}

func load(ctx context.Context, s Store, labels map[string]string) ([]Record, error) {
	all, err := s.List(ctx, labels)
	if err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	var records []Record
	var unread []string
	for _, o := range all {
		r, err := Load(o)
		if err != nil {
			unread = append(unread, err.Error())
			continue
		}
		records = append(records, r)
	}
	if len(unread) > 0 {
		return records, fmt.Errorf("%d records cannot be read: %s", len(unread), strings.Join(unread, "; "))
	}
	return records, nil
}

func isID(s string) bool { return idPattern.MatchString(s) }

var idPattern = regexp.MustCompile(`^i-[0-9a-f]{17}$`)
