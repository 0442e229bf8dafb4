// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
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

// What an earlier system recorded of an instance, in other words than the driver's, names it all the same: it is not missing, nor called
// anew, and of two Machines that record it each knows of the other (B5, R-S3).
func TestRecordsInOtherWordsNameTheSameInstance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ recorded, cloud string }{
		{"openstack:///6a1b2c3d", "openstack:///6a1b2c3d"},
		{"openstack://RegionOne/6a1b2c3d", "openstack:///6a1b2c3d"},
		{"aws:////i-0b1", "aws:///us-east-2a/i-0b1"},
		{"vsphere://4228E784-3F9E", "vsphere://4228e784-3f9e"},
	} {
		lifeOf := func(tag types.UID) life {
			m, o := &machine.Machine{}, &machine.Machine{}
			m.UID, m.Spec.ProviderID, o.UID, o.Spec.ProviderID = "m", &c.recorded, "o", &c.cloud
			l := life{m: m, cloud: snapshot.Cloud{Account: "b", Found: []provider.Instance{{ID: "i", ProviderID: c.cloud, UID: tag, State: provider.StateRunning}}}}
			l.Machines = []*machine.Machine{m, o}
			return l
		}
		mine, another, untagged := lifeOf("m"), lifeOf("former"), lifeOf("")
		mine.intent = &machine.Intent{Account: "a", Attempt: 1, Request: []byte(`{}`), Outcome: machine.OutcomeCreated}
		if mine.shown() == nil || untagged.shown() == nil || !mine.tagged() || !mine.moved() {
			t.Errorf("%s is not found as %s: %v, untagged %v, tagged %v, moved %v", c.recorded, c.cloud, mine.shown(), untagged.shown(), mine.tagged(), mine.moved())
		}
		if got := mine.exists(mine.cloud.Found[0]); got.Message != "" {
			t.Errorf("%s shown as %s: %s", c.recorded, c.cloud, got.Message)
		}
		if o := untagged.claimant(); o == nil || o.UID != "o" {
			t.Errorf("%s is nobody's beside who records %s: %v", c.recorded, c.cloud, o)
		}
		if another.former = another.foreignTag(); another.former == nil {
			t.Errorf("%s: another's tag is not seen on %s", c.recorded, c.cloud)
		} else if another.m.CreationTimestamp = metav1.Now(); another.inherit() != nil {
			t.Errorf("%s is taken over beside who records %s and is older", c.recorded, c.cloud)
		}
	}
}
