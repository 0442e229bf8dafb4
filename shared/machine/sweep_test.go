// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// An account that credentials led to before is forgotten once other credentials show what is left there, and only then: one and the same
// owner has other instances in another region, what carries another id of the cluster is in no list of this one's, and what is left may be of
// a namespace that is served no more (RELIABILITY 2b.10).
func TestFormerAccountIsForgottenOnceItIsSeen(t *testing.T) {
	t.Parallel()
	const west, east = "Kind/west/ns/c", "Kind/east/ns/c"
	for name, c := range map[string]struct {
		key, owner, cluster string
		namespace           string
		want                bool // the former one is on record still
	}{
		"the same credentials lead back":       {west, "a", "abi", "ns", false},
		"other credentials of the same region": {"Kind/west/ns/d", "a", "abi", "ns", false},
		"another region of the same owner":     {east, "a", "abi", "ns", true},
		"another owner":                        {"Kind/west/ns/d", "b", "abi", "ns", true},
		"another id of the cluster":            {"Kind/west/ns/d", "a", "new", "ns", true},
		"another namespace":                    {"Kind/west/other/d", "a", "abi", "other", true},
		"nobody knows whose":                   {"Kind/west/ns/d", "", "abi", "ns", true},
	} {
		known := map[string]machine.SweptAccount{
			west:        {Namespace: "ns", ClusterID: "abi", Owner: "b"},
			west + "#a": {Namespace: "ns", ClusterID: "abi", Owner: "a", Of: west},
		}
		if c.key != west {
			known[c.key] = machine.SweptAccount{Namespace: c.namespace, ClusterID: c.cluster}
		}
		machine.LedTo(known, c.key, c.owner, false)
		if _, got := known[west+"#a"]; got != c.want {
			t.Errorf("%s: on record are %v", name, slices.Sorted(maps.Keys(known)))
		}
	}
}

// Regions of one owner are told apart where both records name one: what a former version wrote names none, and leads nowhere else for that.
func TestOwnerInAnotherRegionIsAnother(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"a", "a", true},
		{"a", "b", false},
		{"a:west", "a:west", true},
		{"a:west", "a:east", false},
		{"a:west", "b:west", false},
		{"a", "a:west", true},
		{"a:west", "a", true},
		{"b", "a:west", false},
	} {
		if got := machine.SameOwner(c.a, c.b); got != c.want {
			t.Errorf("SameOwner(%q, %q) = %v", c.a, c.b, got)
		}
		known := map[string]machine.SweptAccount{"k": {Owner: c.a}}
		machine.LedTo(known, "k", c.b, false)
		if _, led := known["k#"+c.a]; led == c.want || known["k"].Owner != c.b {
			t.Errorf("%q, then %q: on record are %v", c.a, c.b, known)
		}
	}
}

// Where credentials led before is as unseen as where they lead now: that one of them was found empty says nothing of the other. Who cannot
// tell the owner tells of no other one, and no record of a former account shows what is left in one (RELIABILITY 2b.10).
func TestFormerAccountIsSeenByNobody(t *testing.T) {
	t.Parallel()
	const key = "Kind/west/ns/c"
	since := metav1.NewTime(time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC))
	before := machine.SweptAccount{Namespace: "ns", ClusterID: "abi", Owner: "a", EmptySince: &since}
	known := map[string]machine.SweptAccount{key: before}
	if machine.LedTo(known, key, "", false); len(known) != 1 || known[key].Owner != "a" || known[key].EmptySince == nil {
		t.Errorf("nobody told the owner: on record are %+v", known)
	}
	if machine.LedTo(known, key, "a", false); len(known) != 1 || known[key].EmptySince == nil {
		t.Errorf("led where they led before: on record are %+v", known)
	}
	machine.LedTo(known, key, "b", false)
	now, former := known[key], known[key+"#a"]
	if now.Owner != "b" || now.EmptySince != nil || former.Of != key || former.Owner != "a" || former.EmptySince != nil {
		t.Errorf("led elsewhere: %+v, before %+v", now, former)
	}
	if machine.Shown(known, former) {
		t.Errorf("%+v is shown by %+v", former, known)
	}
	known["Kind/west/ns/d"] = machine.SweptAccount{Namespace: "ns", ClusterID: "abi", Owner: "a"}
	if !machine.Shown(known, former) {
		t.Errorf("%+v is not shown by %+v", former, known)
	}
	known = map[string]machine.SweptAccount{key: {Namespace: "ns", ClusterID: "abi"}}
	if machine.LedTo(known, key, "a", false); len(known) != 1 || known[key].Owner != "a" {
		t.Errorf("told for the first time: on record are %+v", known)
	}
	known = map[string]machine.SweptAccount{key: before}
	if machine.LedTo(known, key, "b", true); len(known) != 1 || known[key].Owner != "b" || known[key].EmptySince != nil {
		t.Errorf("led elsewhere from where nothing was left: %+v", known)
	}
}

// Nothing is noted of an account that is on no record.
func TestUnknownAccountLeadsNowhere(t *testing.T) {
	t.Parallel()
	known := map[string]machine.SweptAccount{}
	if machine.LedTo(known, "a", "owner", false); len(known) > 0 {
		t.Errorf("on record are %v", known)
	}
}

// Keys of which one names no region, or none at all, may be of one account (RELIABILITY 2b.10).
func TestOtherRegionIsOneThatBothName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"Kind/west/ns/c", "Kind/east/ns/c", true},
		{"Kind/west/ns/c", "Kind/west/ns/d", false},
		{"Kind/west/ns/c", "Other/west/ns/c", true},
		{"Kind/https://a:5000/v3/west/ns/c", "Kind/https://b:5000/v3/west/ns/c", true},
		{"Kind/west/ns/c", "Kind//ns/c", false},
		{"Kind//ns/c", "Kind/west/ns/c", false},
		{"kubemark", "Kind/west/ns/c", false},
		{"Kind/west/ns/c", "kubemark", false},
	} {
		if got := machine.OtherRegion(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

// Instances that were made for a Machine and belong to none are counted, neither Nodes nor what is only reported.
func TestOrphansAreInstancesOfMachines(t *testing.T) {
	t.Parallel()
	s := machine.SweepState{Sightings: map[string]metav1.Time{
		machine.SightingKey("Kind/west/ns/c", "i-1"): {}, machine.SightingKey("Kind/west/ns/d", "i-1"): {},
		machine.SightingKey(machine.SweptNodes, "n"): {}, machine.ForeignKey("Kind/west/ns/c", "i-2"): {},
	}}
	if got := s.Orphans(); got != 2 {
		t.Errorf("%d orphans, want 2", got)
	}
}
