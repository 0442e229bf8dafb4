// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// providerID is what Nodes of an instance say (SPEC E40); empty for what is none. Azure's cloud controller writes subscription and group in small letters too.
func providerID(id string) string {
	parts := strings.Split(id, "/") // "", subscriptions, …, resourceGroups, …, providers, Microsoft.Compute, virtualMachines, …
	const whole = 9
	if len(parts) != whole || !strings.EqualFold(parts[6]+"/"+parts[7], instanceKind) {
		return ""
	}
	return scheme + "/subscriptions/" + strings.ToLower(parts[2]) + "/resourceGroups/" + strings.ToLower(parts[4]) + "/providers/" + instanceKind + "/" + parts[8]
}

const scheme = "azure://"

// copied reports whether a thing has the tags of what a Machine has, and another name than that has: whoever restores or makes one more
// like it copies tags. Names tell apart in a resource group, and nobody looks into another.
func copied(t thing, machineWouldBe string) bool {
	of := t.tag(tagMachine)
	return t.tag(tagUID) != "" && !strings.EqualFold(of, machineWouldBe)
}

// word returns the last part of the status of one kind, as of PowerState, and its message.
func (i instance) word(kind string) (word, message string) {
	if i.Properties.View == nil {
		return "", ""
	}
	for _, s := range i.Properties.View.Statuses {
		if rest, ok := strings.CutPrefix(s.Code, kind+"/"); ok {
			return rest, s.Message
		}
	}
	return "", ""
}

// power returns whether an instance has power, in Azure's word; empty if nobody tells.
func (i instance) power() string {
	word, _ := i.word("PowerState")
	return word
}

// reason returns why the latest change of an instance failed, which is in its view: ProvisioningState/failed/AllocationFailed.
func (i instance) reason() (code, message string) {
	why, message := i.word("ProvisioningState")
	_, code, _ = strings.Cut(why, "/")
	return code, message
}

// state returns what an instance is. One that Azure could not make has no power, and its latest change failed; where that failed and it
// has power it runs on as before.
func (i instance) state() (provider.State, provider.Code, string) {
	reason, message := i.reason()
	if reason != "" {
		message = reason + ": " + message
	}
	switch i.Properties.State {
	case deleting:
		return provider.StateDeleting, 0, ""
	case creating:
		return provider.StateIncomplete, 0, ""
	case failed:
		return i.ended(reason, shorten(message))
	}
	switch i.power() {
	case "starting":
		return provider.StatePending, 0, ""
	case "stopping", "stopped", "deallocating", "deallocated":
		return provider.StateStopped, 0, ""
	}
	return provider.StateRunning, 0, ""
}

// ended is the state of an instance whose latest change failed for a reason. What never had power goes and is made anew, whatever the
// reason, as without room, but for what is wrong with its spec.
func (i instance) ended(reason, message string) (provider.State, provider.Code, string) {
	switch power := i.power(); {
	case power == "running" || power == "starting":
		return provider.StateRunning, 0, message
	case power != "" && power != "unknown" && !shortages.MatchString(reason): // it had power, and may have it again
		return provider.StateStopped, 0, message
	case codeOf(http.StatusBadRequest, reason, message) == provider.Invalid:
		return provider.StateFailed, 0, message
	}
	return provider.StateFailed, provider.Exhausted, cmp.Or(message, "Azure does not say why")
}

// cloudState is Azure's own word, as OpenShift writes it.
func (i instance) cloudState() string {
	power := i.power()
	if i.Properties.State != succeeded || power == "" {
		return i.Properties.State
	}
	return strings.ToUpper(power[:1]) + power[1:]
}

// providerStatus is the providerStatus of a Machine, as OpenShift writes it.
type providerStatus struct {
	ID    string `json:"vmId"`
	State string `json:"vmState"`
}

// view is the machine layer's view of an instance, with the cards and public addresses that are known, by id in small letters.
func (d *driver) view(i instance, cards map[string]card, addresses map[string]address) provider.Instance {
	state, code, message := i.state()
	in := provider.Instance{
		ID: strings.ToLower(i.Properties.VMID), ProviderID: providerID(i.ID), UID: types.UID(i.tag(tagUID)), ClusterUID: types.UID(i.tag(tagMark)),
		Token: i.tag(tagToken), Name: i.called(), State: state, CloudState: i.cloudState(), Region: normal(i.Location),
		Addresses: reached(i, cards, addresses), Created: moment(i.Properties.Created), Message: message, Code: code,
		Spot: i.Properties.Priority == "Spot", Tags: map[string]string{},
	}
	if i.Properties.Hardware != nil {
		in.Type = i.Properties.Hardware.Size
	}
	if len(i.Zones) > 0 {
		in.Zone = i.Zones[0]
	}
	if copied(i.thing, i.called()) { // nobody's: at most it is told of
		in.Message, in.UID, in.Token = fmt.Sprintf("it carries a copy of the tags of machine UID %s", in.UID), "", ""
	}
	for name, value := range i.Tags {
		if !reserved(name) {
			in.Tags[name] = value
		}
	}
	if i.Properties.State == succeeded && i.power() == "" && d.states.doubt() { // what is on record of it stays
		in.CloudState = ""
		return in
	}
	in.Status, _ = json.Marshal(providerStatus{i.ID, in.CloudState}) // strings only
	return in
}

// reached are the addresses of an instance's cards, then its names, once it has an address: a kubelet's certificate is told by them
// (SPEC B80).
func reached(i instance, cards map[string]card, addresses map[string]address) []corev1.NodeAddress {
	var all []corev1.NodeAddress
	add := func(kind corev1.NodeAddressType, text string) {
		a := corev1.NodeAddress{Type: kind, Address: text}
		if text != "" && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	host, suffixes := "", []string(nil)
	if i.Properties.System != nil {
		host = i.Properties.System.Name
	}
	for _, c := range i.cards() {
		known, ok := cards[strings.ToLower(c.ID)]
		if !ok || !known.Properties.Instance.is(i.ID) {
			continue
		}
		if known.Properties.DNS != nil && known.Properties.DNS.Suffix != "" {
			suffixes = append(suffixes, known.Properties.DNS.Suffix)
		}
		for _, a := range known.Properties.Addresses {
			add(corev1.NodeInternalIP, a.Properties.Private)
			if a.Properties.Public == nil {
				continue
			}
			public := addresses[strings.ToLower(a.Properties.Public.ID)]
			add(corev1.NodeExternalIP, public.Properties.IP)
			if public.Properties.DNS != nil {
				add(corev1.NodeExternalDNS, public.Properties.DNS.FQDN)
			}
		}
	}
	if len(all) == 0 || host == "" {
		return all
	}
	add(corev1.NodeHostName, host)
	add(corev1.NodeInternalDNS, host)
	for _, suffix := range suffixes {
		add(corev1.NodeInternalDNS, host+"."+suffix)
	}
	return all
}

func (i instance) cards() []cardRef {
	if i.Properties.Network == nil {
		return nil
	}
	return i.Properties.Network.Cards
}
