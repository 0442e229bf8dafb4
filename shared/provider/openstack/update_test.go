// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"maps"
	"testing"
	"testing/synctest"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// The spec's metadata and tags come to an instance that runs; what says whose it is is neither told nor changed (SPEC E1, B20).
func TestMetadataAndTagsFollowTheSpec(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		d, err := providerOf(f).Open(t.Context(), accountOf("secret"))
		if err != nil {
			t.Fatal(err)
		}
		updater := d.(provider.Updater)
		asMade, err := updater.Tags(specWith(""))
		if err != nil || len(asMade) != 3 {
			t.Fatalf("%v %v", asMade, err)
		}
		resolved, err := d.Resolve(t.Context(), specWith(""))
		if err != nil {
			t.Fatal(err)
		}
		r := provider.Ref{UID: "uid-1", Name: "worker-1", Token: "token-1"}
		in := provider.Instance{State: provider.StateIncomplete}
		for in.State == provider.StateIncomplete {
			if in, err = d.Create(t.Context(), r, resolved); err != nil {
				t.Fatal(err)
			}
			r.Progress = in.Progress
		}
		if !maps.Equal(in.Tags, asMade) {
			t.Errorf("made with %v, want %v", in.Tags, asMade)
		}
		changed, err := updater.Tags(specWith(`"serverMetadata": {"Name": "ocp43-worker", "team": "a"}, "tags": ["openshiftClusterID=ocp43-abcde", "gold", "machine-uid=stolen"]`))
		if err != nil {
			t.Fatal(err)
		}
		hostile := maps.Clone(changed)
		hostile[bare+"machine-uid=stolen"], hostile[metaPrimary] = "", "stolen"
		if err := updater.Update(t.Context(), r, hostile); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"Name": "ocp43-worker", "openshiftClusterID": "ocp43-abcde", "team": "a", bare + "openshiftClusterID=ocp43-abcde": "", bare + "gold": ""}
		found, err := d.Find(t.Context(), r)
		if err != nil || len(found) != 1 || !maps.Equal(found[0].Tags, want) || found[0].UID != r.UID {
			t.Errorf("found %+v %v, want the tags %v", found, err, want)
		}
		writes := f.writes
		if err := updater.Update(t.Context(), r, changed); err != nil || f.writes != writes {
			t.Errorf("repeated: %v, %d writes more", err, f.writes-writes)
		}
	})
}
