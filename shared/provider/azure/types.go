// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// offer is one size of instance, in one location.
type offer struct {
	Kind         string `json:"resourceType"`
	Name         string `json:"name"`
	Capabilities []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"capabilities"`
	Locations []struct {
		Location string   `json:"location"`
		Zones    []string `json:"zones"`
	} `json:"locationInfo"`
	Restrictions []struct {
		Type   string `json:"type"`
		Reason string `json:"reasonCode"`
		Info   struct {
			Zones []string `json:"zones"`
		} `json:"restrictionInfo"`
	} `json:"restrictions"`
}

// capability returns a number that an offer tells, or 0. No offer has more than a trillion of anything.
func (o offer) capability(name string) float64 {
	const most = 1e12
	n, err := strconv.ParseFloat(o.text(name), 64)
	if err != nil || math.IsNaN(n) || n < 0 || n > most {
		return 0
	}
	return n
}

func (o offer) text(name string) string {
	for _, c := range o.Capabilities {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// InstanceTypes implements [provider.Driver], from Azure's list of what it sells in the location (SPEC E13, E40).
func (d *driver) InstanceTypes(ctx context.Context) (types []provider.InstanceType, err error) {
	err = d.call(ctx, func(ctx context.Context) error {
		found, err := all[offer](ctx, d.client, ask{
			method: http.MethodGet, id: "/subscriptions/" + d.subscription + "/providers/" + skuKind,
			query: map[string]string{"$filter": "location eq '" + d.location + "'"},
		})
		if err != nil {
			return err
		}
		for _, o := range found {
			if it := d.offered(o); it.MilliCPU > 0 && it.Memory > 0 || it.Problem != "" {
				types = append(types, it)
			}
		}
		slices.SortFunc(types, func(a, b provider.InstanceType) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Problem, b.Problem))
		})
		types = slices.CompactFunc(types, func(a, b provider.InstanceType) bool { return a.Name == b.Name })
		return nil
	})
	if err != nil {
		return nil, absent("instance types", err)
	}
	return types, nil
}

// offered reads the capacity of a size. Some sizes have fewer CPUs than their hardware, and say both. Of what nobody gets there is none.
func (d *driver) offered(o offer) provider.InstanceType {
	if o.Kind != "virtualMachines" || o.Name == "" {
		return provider.InstanceType{}
	}
	cpus := o.capability("vCPUsAvailable")
	if cpus == 0 {
		cpus = o.capability("vCPUs")
	}
	it := provider.InstanceType{
		Name: o.Name, Arch: "amd64", MilliCPU: int64(cpus * 1000), Memory: int64(o.capability("MemoryGB") * (1 << 30)),
		Disk: int64(o.capability("MaxResourceVolumeMB")) << 20, GPU: int64(o.capability("GPUs")), Zones: d.zones(o),
	}
	if strings.EqualFold(o.text("CpuArchitectureType"), "Arm64") {
		it.Arch = "arm64"
	}
	if why, barred := o.barred(); barred {
		const says = "Azure does not sell it to this subscription in %s (%s): ask Azure for it, or name another size"
		return provider.InstanceType{Name: it.Name, Arch: it.Arch, Problem: fmt.Sprintf(says, d.location, why)}
	}
	if it.GPU > 0 {
		it.GPUType = machine.ResourceGPU
		if byAMD.MatchString(o.Name) {
			it.GPUType = "amd.com/gpu"
		}
	}
	return it
}

// barred returns why this subscription may not have a size anywhere in the location, and whether that is so.
func (o offer) barred() (why string, barred bool) {
	for _, r := range o.Restrictions {
		if r.Type == "Location" {
			return cmp.Or(shorten(r.Reason), "it does not say why"), true
		}
	}
	return "", false
}

// byAMD are the sizes whose GPUs are AMD's: Azure tells no maker (https://learn.microsoft.com/azure/virtual-machines/sizes/overview).
var byAMD = regexp.MustCompile(`(?i)^Standard_NV\d+as_v4$|_V620(_|$)|_MI\d+X`)

// zones are those in which a size can be had with this subscription.
func (d *driver) zones(o offer) (all []string) {
	for _, l := range o.Locations {
		if normal(l.Location) == d.location {
			all = append(all, l.Zones...)
		}
	}
	for _, r := range o.Restrictions {
		if r.Type == "Zone" {
			all = slices.DeleteFunc(all, func(z string) bool { return slices.Contains(r.Info.Zones, z) })
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
