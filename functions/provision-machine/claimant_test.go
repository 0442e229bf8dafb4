// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// The removal of a Machine whose instance another one records names nothing but the Machine's own tag: a driver would take
// an instance without a tag by the id that both record (R-S3). What was taken over is named by the tag that it carries.
func TestRemovalNamesWhatIsTheMachines(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]provider.Ref{
		"copy-leaves-the-instance-to-its-machine":        {UID: "m-0"},
		"copied-machine-leaves-the-instance-to-its-copy": {UID: "m-0"},
		"copy-on-its-way-out-leaves-the-instance":        {UID: "m-0"},
		"copy-on-its-way-out-keeps-nobody-waiting":       {UID: "m-0", ProviderID: "kubemark://abi/i-1"},
		"tag-proves-whose-the-instance-is":               {UID: "m-0", ProviderID: "kubemark://abi/i-1"},
		"removes-what-was-taken-over":                    {UID: "m-0", ID: "i-1", ProviderID: "kubemark://abi/i-1"},
		"tag-of-a-copied-record-is-nobodys":              {UID: "m-copy", ID: "i-1", ProviderID: "kubemark://abi/i-1"},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			removed := 0
			for _, d := range removalsIn(t, file) {
				if d.Ref.Name == "worker-p2g5g" {
					removed++
					if got := d.Ref; got.UID != want.UID || got.ID != want.ID || got.ProviderID != want.ProviderID {
						t.Errorf("%+v, want %+v", got, want)
					}
				}
			}
			if removed != 1 {
				t.Errorf("%d removals", removed)
			}
		})
	}
}

// What is removed may be too new for the cloud's reads: a driver is told when the attempt began, or takes it for gone (2b.9).
func TestRemovalSaysWhenTheAttemptBegan(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"delete-removes-the-instance":              "2026-01-01T00:00:00Z",
		"refused-midway-is-cleaned-up-first":       "2026-01-01T00:00:00Z",
		"delete-asks-for-what-another-system-made": "0001-01-01T00:00:00Z",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			var began []string
			for _, d := range removalsIn(t, file) {
				began = append(began, d.Ref.Began.UTC().Format(time.RFC3339))
			}
			if len(began) != 1 || began[0] != want {
				t.Errorf("removals of what began at %v, want %s", began, want)
			}
		})
	}
}

// removalsIn returns what is removed in a scenario.
func removalsIn(t *testing.T, file string) (all []plan.DeleteInstance) {
	t.Helper()
	s, _, err := scenario.Load("testdata/" + file + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	seen, _, err := scenario.Observe(Function, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range Decide(seen).Actions() {
		if d, ok := a.(plan.DeleteInstance); ok {
			all = append(all, d)
		}
	}
	return all
}
