// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// A spec may name a flavor by its id (E18): then the capacity is known by that (E21). What is one flavor's id and another's name is
// the name, as for an instance.
func TestFlavorByIDHasCapacity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		id := f.named("flavors", "4c12g30d")
		f.add("flavors", map[string]any{"name": f.named("flavors", "4c16g30d"), "vcpus": 64, "ram": 1024, "disk": 1, "extra_specs": map[string]any{}})
		p := providerOf(f)
		d, err := p.Open(t.Context(), accountOf("secret"))
		if err != nil {
			t.Fatal(err)
		}
		all, err := d.InstanceTypes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for asked, cpu := range map[string]int64{id: 4000, "4c12g30d": 4000, f.named("flavors", "4c16g30d"): 64000} {
			want, err := p.InstanceType(specWith(`"flavor": "` + asked + `"`))
			i := slices.IndexFunc(all, func(have provider.InstanceType) bool { return have.Name == want.Name })
			if err != nil || i < 0 || all[i].MilliCPU != cpu {
				t.Errorf("flavor %s: %v, %v", asked, all, err)
			}
		}
		if !slices.IsSortedFunc(all, func(a, b provider.InstanceType) int { return strings.Compare(a.Name, b.Name) }) || len(all) != 5 {
			t.Errorf("%d types: %+v", len(all), all)
		}
	})
}
