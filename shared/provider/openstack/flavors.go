// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"slices"
	"strings"

	"github.com/machine-functions/machine-functions/shared/provider"
)

const (
	mib = 1 << 20
	gib = 1 << 30
	// defaultArch is that of a flavor that says nothing else, as of nearly all.
	defaultArch = "amd64"
)

// flavor is a size that Nova offers. Its extra specs may be hidden from who is no administrator.
type flavor struct {
	ID    string            `json:"id"`
	Name  string            `json:"name"`
	VCPUs int64             `json:"vcpus"`
	RAM   int64             `json:"ram"`  // MiB
	Disk  int64             `json:"disk"` // GiB
	Extra map[string]string `json:"extra_specs"`
}

func (f flavor) id() string { return f.ID }

// InstanceTypes implements [provider.Driver] (SPEC E21): each flavor by its name, and by its id, as a spec may ask for it (E18).
// Flavors are the same in all zones.
func (d *driver) InstanceTypes(ctx context.Context) ([]provider.InstanceType, error) {
	ctx, cancel, c, err := d.connect(ctx)
	defer cancel()
	if err != nil {
		return nil, err
	}
	flavors, err := pages[flavor](ctx, c, c.compute, "list flavors", "flavors/detail", "flavors", nil)
	if err != nil {
		return nil, err
	}
	var all []provider.InstanceType
	for _, f := range flavors {
		t := provider.InstanceType{Name: f.Name, Arch: f.arch(), MilliCPU: f.VCPUs * 1000, Memory: f.RAM * mib, Disk: f.Disk * gib}
		all = append(all, t)
		if named := slices.ContainsFunc(flavors, func(g flavor) bool { return g.Name == f.ID }); !named { // a name comes first
			t.Name = f.ID
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b provider.InstanceType) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// arch returns the architecture in Kubernetes' words.
func (f flavor) arch() string {
	said := first(f.Extra["hw_architecture"], f.Extra["hw:architecture"], f.Extra["capabilities:cpu_arch"], f.Extra["trait:HW_ARCH"])
	switch strings.TrimPrefix(said, "s== ") {
	case "aarch64", "arm64":
		return "arm64"
	case "ppc64le":
		return "ppc64le"
	case "s390x":
		return "s390x"
	}
	for trait, value := range f.Extra {
		if value == "required" && trait == "trait:HW_ARCH_AARCH64" {
			return "arm64"
		}
	}
	return defaultArch
}
