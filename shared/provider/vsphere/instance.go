// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"
	corev1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// scheme is what a provider id begins with (SPEC E26).
const scheme = "vsphere://"

func (m clone) providerID() string { return scheme + m.UUID }

// status is the providerStatus of a Machine, as OpenShift writes it (SPEC E22).
type status struct {
	InstanceID    string `json:"instanceId"`
	InstanceState string `json:"instanceState"`
}

// instance returns the machine layer's view of m.
func (d *driver) instance(m clone) provider.Instance {
	i := provider.Instance{
		ID: m.UUID, ProviderID: m.providerID(), UID: apitypes.UID(m.Mark.UID), ClusterUID: apitypes.UID(m.Mark.Of), Sole: m.Mark.UID != "", Token: m.Mark.Token, Name: m.Name,
		State: m.state(), CloudState: string(m.Power), Region: m.Mark.Region, Zone: m.Mark.Zone,
		Addresses: m.addresses(d.account.VirtualIPs), Created: m.Created, Tags: valueless(m.Tags),
	}
	if m.copied() { // nobody's: at most it is told of
		i.UID, i.Sole, i.Token = "", false, ""
		i.Message = fmt.Sprintf("it carries a copy of the mark of Machine UID %s", m.Mark.UID)
	}
	if len(m.Unreadable) > 0 {
		i.Message = "cannot be read: " + strings.Join(m.Unreadable, ", ")
	}
	i.Status, _ = json.Marshal(status{m.UUID, string(m.Power)}) // two strings
	return i
}

// state tells an instance that was stopped from one that has yet to be started. Only Create can go on with the latter.
func (m clone) state() provider.State {
	switch {
	case m.Power == types.VirtualMachinePowerStatePoweredOn:
		return provider.StateRunning
	case m.Launched != nil || m.Mark.UID == "" || m.copied():
		return provider.StateStopped
	}
	return provider.StateIncomplete
}

// addresses are those of the guest's network cards; pods' and bridges' are not (they have no card). The name is there from the beginning
// (SPEC E26, B80).
func (m clone) addresses(moving []string) []corev1.NodeAddress {
	var heard []string
	for _, nic := range m.Guest {
		if nic.DeviceConfigId >= 0 {
			heard = append(heard, nic.IpAddress...)
		}
	}
	return append([]corev1.NodeAddress{{Type: corev1.NodeInternalDNS, Address: m.Name}}, provider.InternalIPs(heard, moving)...)
}

// templates returns the sizes of templates.
func templates(ctx context.Context, c *vim25.Client) ([]provider.InstanceType, error) {
	found, err := everywhere(ctx, c, "name", "config.template", "config.hardware.numCPU", "config.hardware.memoryMB")
	if err != nil {
		return nil, err
	}
	var all []provider.InstanceType
	for _, o := range found {
		it := provider.InstanceType{Arch: arch}
		template := false
		for _, p := range o.PropSet {
			switch v := p.Val.(type) {
			case string:
				it.Name = v
			case bool:
				template = v
			case int32:
				if p.Name == "config.hardware.numCPU" {
					it.MilliCPU = int64(v) * 1000
				} else {
					it.Memory = int64(v) << 20
				}
			}
		}
		if template && it.Name != "" && it.MilliCPU > 0 && it.Memory > 0 {
			all = append(all, it)
		}
	}
	slices.SortFunc(all, func(a, b provider.InstanceType) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.MilliCPU, b.MilliCPU), cmp.Compare(a.Memory, b.Memory))
	})
	var types []provider.InstanceType
	for len(all) > 0 {
		n := slices.IndexFunc(all, func(it provider.InstanceType) bool { return it.Name != all[0].Name })
		if n < 0 {
			n = len(all)
		}
		types, all = append(types, namesakes(all[:n])), all[n:]
	}
	return types, nil
}

// namesakes returns the type of templates that have one name: without a size if they have several.
func namesakes(all []provider.InstanceType) provider.InstanceType {
	var sizes []string
	for _, it := range all {
		sizes = append(sizes, fmt.Sprintf("%d CPUs and %d MiB", it.MilliCPU/1000, it.Memory>>20))
	}
	if sizes = slices.Compact(sizes); len(sizes) == 1 {
		return all[0]
	}
	return provider.InstanceType{Name: all[0].Name, Arch: arch, Problem: fmt.Sprintf("%d templates have this name, with %s: give numCPUs and memoryMiB, or rename all but one",
		len(all), strings.Join(sizes, ", or "))}
}
