// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// scheme is what a provider id begins with (SPEC E44).
const scheme = "ovirt://"

func (i instance) providerID() string { return scheme + i.ID }

// status is the providerStatus of a Machine, as OpenShift writes it.
type status struct {
	InstanceID    string `json:"instanceId"`
	InstanceState string `json:"instanceState"`
}

// told returns the machine layer's view of i.
func (d *driver) told(i instance) provider.Instance {
	m := i.Mark
	in := provider.Instance{
		ID: i.ID, ProviderID: i.providerID(), UID: apitypes.UID(m.UID), ClusterUID: apitypes.UID(m.Of), Token: m.Token, Name: i.Name,
		State: i.state(), CloudState: i.Status, Type: i.InstanceType.ID, Addresses: i.addresses(d.account.VirtualIPs), Message: i.message(),
	}
	if i.Created > 0 {
		in.Created = time.UnixMilli(int64(i.Created)).UTC()
	}
	if i.copied() { // nobody's: at most it is told of
		in.UID, in.Token = "", ""
		in.Message = fmt.Sprintf("it carries a copy of the mark of Machine UID %s", m.UID)
	}
	in.Again = in.State == provider.StateDeleting
	in.Status, _ = json.Marshal(status{i.ID, i.Status}) // two strings
	return in
}

// leftover returns the view of a disk whose instance is gone.
func (d *driver) leftover(k disk) provider.Instance {
	m := k.mark()
	in := provider.Instance{
		ID: k.ID, UID: apitypes.UID(m.UID), ClusterUID: apitypes.UID(m.Of), Token: m.Token, Name: k.Alias, State: provider.StateStopped, CloudState: k.Status, Child: true,
	}
	if m.UID == "" {
		in.Message = "a disk that is called as those of the cluster's instances, and its description does not say of which Machine: remove it if nobody needs it"
	}
	return in
}

// belongs reports whether k has the mark of i, or at least its name.
func (k disk) belongs(i instance) bool {
	m := k.mark()
	switch {
	case i.Mark.UID == "" || i.copied():
		return false
	case slices.Contains(i.Mark.Disks, k.ID):
		return true
	case m.UID == "":
		return strings.HasPrefix(k.Alias, prefix(i.Mark.Cluster, i.Mark.UID))
	}
	return m.UID == i.Mark.UID && m.Token == i.Mark.Token
}

// running reports whether i was started, by what the engine says: these words are of what has a process, or had one that goes on.
func (i instance) running() bool {
	switch i.Status {
	case "wait_for_launch", "powering_up", "restoring_state", "up", "migrating", "reboot_in_progress", "powering_down", "not_responding", "unknown", "paused", "suspended", "saving_state":
		return true
	}
	return false
}

// state is what the engine's word means:
//
//	down, image_locked                            Stopped
//	wait_for_launch, powering_up, restoring_state Pending
//	up, migrating, reboot_in_progress             Running
//	powering_down, not_responding, unknown, …     Running: its process may do something
//	paused, suspended, saving_state               Stopped: it does nothing until people let it
//
// until it was started once what does not run is Incomplete, and from the first call of Delete on all is Deleting. A paused process goes on by itself where its
// storage comes back: Stopped is no proof that it does nothing any more.
func (i instance) state() provider.State {
	if i.Mark.Leaving && !i.copied() {
		return provider.StateDeleting
	}
	if i.Mark.UID != "" && !i.Mark.Launched && !i.copied() && !i.running() {
		return provider.StateIncomplete
	}
	switch i.Status {
	case "down", "image_locked":
		return provider.StateStopped
	case "wait_for_launch", "powering_up", "restoring_state":
		return provider.StatePending
	case "paused", "suspended", "saving_state":
		return provider.StateStopped
	}
	return provider.StateRunning
}

// message is what the engine says beside the status.
func (i instance) message() string {
	switch i.Status {
	case "unknown", "not_responding":
		return "the engine does not know whether it runs: see to its host"
	case "image_locked":
		if i.Mark.Leaving {
			return "it is locked: " + stuck
		}
	case "down", "paused", "suspended":
		return shorten(cmp.Or(i.StopReason, i.StatusDetail))
	}
	if i.Mark.Untagged {
		return "the user of the credentials may not give it the cluster's tag: openshift-install does not find it when it destroys the cluster"
	}
	return ""
}

// copied reports whether i has a mark that was made for another: clones of an instance that people make have its comment.
func (i instance) copied() bool { return i.Mark.ID != "" && i.Mark.ID != i.ID }

// addresses are those of the guest's network cards, by their MAC addresses: a bridge over a card has the card's, as OVN-Kubernetes makes it, and
// what belongs to pods has others. The name is there from the beginning.
func (i instance) addresses(moving []string) []corev1.NodeAddress {
	own := map[string]bool{}
	for _, c := range i.Cards.All {
		own[strings.ToLower(c.MAC.Address)] = c.MAC.Address != ""
	}
	var heard []string
	for _, reported := range i.Reported.All {
		if !own[strings.ToLower(reported.MAC.Address)] {
			continue
		}
		for _, a := range reported.IPs.All {
			heard = append(heard, a.Address)
		}
	}
	return append([]corev1.NodeAddress{{Type: corev1.NodeInternalDNS, Address: i.Name}}, provider.InternalIPs(heard, moving)...)
}

// types returns the sizes that the engine has names for.
func (d *driver) types(ctx context.Context) ([]provider.InstanceType, error) {
	found, err := page[kind](ctx, d.session, "list instance types", "/instancetypes", "instance_type", nil)
	if err != nil {
		return nil, err
	}
	var all []provider.InstanceType
	for _, k := range found {
		if k.ID == "" || k.Memory <= 0 {
			continue
		}
		all = append(all, provider.InstanceType{Name: k.ID, Arch: arch, MilliCPU: k.CPU.count() * 1000, Memory: int64(k.Memory)})
	}
	slices.SortFunc(all, func(a, b provider.InstanceType) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b provider.InstanceType) bool { return a.Name == b.Name }), nil
}

// get reads one thing of the engine.
func get[T any](ctx context.Context, s *session, doing, path string) (it T, err error) {
	err = s.ask(ctx, doing, http.MethodGet, path, nil, nil, &it)
	return it, err
}
