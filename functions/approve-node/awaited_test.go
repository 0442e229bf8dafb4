// SPDX-License-Identifier: Apache-2.0

package approvenode

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A guest chooses its own name: one that reads as an address is no address of its Machine, nor is an address a name (B81).
func TestNamesAreNoAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind    corev1.NodeAddressType
		address string
		name    bool // it is asked for as a name
		want    int
	}{
		{corev1.NodeHostName, "10.0.0.1", false, 0},
		{corev1.NodeInternalDNS, "10.0.0.1", false, 0},
		{corev1.NodeExternalDNS, "10.0.0.1", false, 0},
		{corev1.NodeInternalIP, "10.0.0.1", false, 1},
		{corev1.NodeExternalIP, "10.0.0.1", false, 1},
		{corev1.NodeInternalIP, "10.0.0.1", true, 0},
		{corev1.NodeHostName, "host", true, 1},
		{corev1.NodeInternalDNS, "host", true, 1},
		{corev1.NodeExternalDNS, "host", true, 1},
	} {
		m, n := joined("a", "10.0.0.5")
		m.Status.Addresses = append(m.Status.Addresses, corev1.NodeAddress{Type: c.kind, Address: c.address})
		r := serving(t, "a", []string{"a"}, c.address)
		if c.name {
			r = serving(t, "a", []string{c.address}, "10.0.0.5")
		}
		s := snapshot.Snapshot{Now: now}
		s.Add(m, n, r)
		if p := Decide(s.Answered(allRequests, allMachines)); len(p.Actions()) != c.want {
			t.Errorf("%+v: %v", c, p)
		}
	}
}

// Who has not seen all Machines and all requests does not know that only one fits, nor how many ask.
func TestNothingIsApprovedOfHalfTheCluster(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seen []snapshot.Query
		want int
	}{
		{nil, 0}, {[]snapshot.Query{allRequests}, 0}, {[]snapshot.Query{allMachines}, 0}, {[]snapshot.Query{allRequests, allMachines}, 1},
	} {
		s := snapshot.Snapshot{Now: now}
		s.Add(joining("a"), client(t, "a", time.Hour))
		if p := Decide(s.Answered(c.seen...)); len(p.Actions()) != c.want || len(p.Notes) > 0 {
			t.Errorf("of %v: %v", c.seen, p)
		}
	}
}

// A lost race, or an answer that did not come, is no refusal of which to tell.
func TestOnlyRefusalsOfApprovalsAreTold(t *testing.T) {
	t.Parallel()
	for result, want := range map[plan.Result]int{plan.Conflict: 0, plan.Failed: 0, plan.Refused: 1} {
		s := snapshot.Snapshot{Now: now}
		r := client(t, "a", time.Hour)
		s.Add(joining("a"), r)
		s.Outcomes = map[plan.Key]plan.Outcome{plan.Approve{Request: r}.Key(): {Result: result, Message: "no"}}
		if p := Decide(s.Answered(allRequests, allMachines)); len(p.Notes) != want {
			t.Errorf("%v: %v", result, p)
		}
	}
}

// The configured groups are those that may ask, and no others (B80).
func TestGroupsThatMayBootstrap(t *testing.T) {
	t.Parallel()
	for groups, want := range map[string]int{"system:bootstrappers, mine": 1, "mine": 0, "": 0} {
		s := snapshot.Snapshot{Now: now}
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: name}, Data: map[string]string{settingGroups: groups}}
		s.Add(joining("a"), client(t, "a", time.Hour), cm)
		if p := Decide(s.Answered(allRequests, allMachines)); len(p.Actions()) != want {
			t.Errorf("%q: %v", groups, p)
		}
	}
}

// What counts is the last call for the instance where that came after the Machine, if its record can be read.
func TestUntilWhenANodeMayAskFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		record  string
		created time.Duration // ago
		want    time.Time
	}{
		{"", time.Hour, now.Add(-time.Hour).Add(latest)},
		{"{", time.Hour, now.Add(-time.Hour).Add(latest)},
		{intent(-2 * time.Hour), time.Hour, now.Add(-time.Hour).Add(latest)},
		{intent(-2 * time.Hour), 9 * time.Hour, now.Add(-2 * time.Hour).Add(latest)},
	} {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{UID: "u", CreationTimestamp: metav1.NewTime(now.Add(-c.created))}}
		if c.record != "" {
			m.Annotations = map[string]string{machine.AnnotationIntent: c.record}
		}
		if got := until(m); !got.Equal(c.want) {
			t.Errorf("%s, made %v ago: until %v, want %v", c.record, c.created, got, c.want)
		}
	}
}

// intent is the record of an attempt that began so much from now.
func intent(from time.Duration) string {
	i := machine.Intent{Schema: 1, Attempt: 1, Token: machine.Token("u", 1, ""), StartedAt: metav1.NewTime(now.Add(from))}
	text, _ := json.Marshal(i)
	return string(text)
}

// A Machine wakes for what may wait for it: its first name, or its Node, unless it goes, failed, or that was long ago.
func TestMachinesThatRequestsMayWaitFor(t *testing.T) {
	t.Parallel()
	failed := func(m *machine.Machine) { m.Status.Phase = new(machine.PhaseFailed) }
	linked := func(ago time.Duration) func(*machine.Machine) {
		return func(m *machine.Machine) {
			m.Status.NodeRef = &corev1.ObjectReference{Name: "a"}
			m.Status.LastUpdated = new(metav1.NewTime(now.Add(-ago)))
		}
	}
	for name, c := range map[string]struct {
		change func(*machine.Machine)
		want   bool
	}{
		"named":               {func(*machine.Machine) {}, true},
		"nameless":            {func(m *machine.Machine) { m.Status.Addresses = nil }, false},
		"failed":              {failed, false},
		"goes":                {func(m *machine.Machine) { m.DeletionTimestamp = new(metav1.NewTime(now)) }, false},
		"made long ago":       {func(m *machine.Machine) { m.CreationTimestamp = metav1.NewTime(now.Add(-9 * time.Hour)) }, false},
		"linked now":          {linked(0), true},
		"linked long ago":     {linked(time.Hour), false},
		"linked, nobody says": {func(m *machine.Machine) { m.Status.NodeRef = &corev1.ObjectReference{Name: "a"} }, false},
	} {
		m := joining("a")
		c.change(m)
		if got := awaited(m, now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// How many may ask depends on how many Nodes there are, which is asked where it may matter, whoever woke us (B82).
func TestNodesAreCountedWhereManyAsk(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]bool{spare: false, spare + 1: true} {
		s := snapshot.Snapshot{Now: now, Request: snapshot.Request{Kind: "CertificateSigningRequest", Name: "csr-0"}}
		for k := range n {
			r := client(t, "a", time.Minute)
			r.Name = fmt.Sprint("csr-", k)
			s.Add(r)
		}
		if got := slices.Contains(reads(s.Answered(allRequests)).Objects, snapshot.All("Node")); got != want {
			t.Errorf("%d requests: all Nodes are read: %v", n, got)
		}
	}
}
