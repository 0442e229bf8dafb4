// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Cinder gives a volume that it restores from a backup the metadata, and the name, of the volume that was backed up: what is in it people
// have restored, and it does not go with the Machine, whose own volume does (R-S3). Nor is an instance made with it.
func TestRestoredVolumeIsNobodys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, `"rootVolume": {"diskSize": 20}`)
		l.up(t)
		if n := f.count("volumes"); n != 1 {
			t.Fatalf("%d volumes", n)
		}
		var restored string
		for _, v := range maps.Clone(f.things["volumes"]) {
			restored = f.add("volumes", map[string]any{
				"name": v.text("name"), "status": "available", "attachments": []any{}, "metadata": maps.Clone(v.fields["metadata"].(map[string]any)),
				"created_at": "2000-01-01T00:00:00.000000",
			})
		}
		told := false
		all, err := l.List(t.Context())
		for _, in := range all {
			told = told || in.ID == restored && in.UID == "" && in.Child && strings.Contains(in.Message, "copy")
		}
		if err != nil || !told || len(all) != 2 {
			t.Errorf("List = %+v, %v", all, err)
		}
		l.down(t)
		if f.count("volumes") != 1 || f.things["volumes"][restored] == nil {
			t.Errorf("%d volumes are left", f.count("volumes"))
		}
		if err := l.Delete(t.Context(), provider.Ref{ID: restored}); provider.CodeOf(err) != provider.NotFound || f.count("volumes") != 1 {
			t.Errorf("Delete by its id = %v", err)
		}
	})
}
