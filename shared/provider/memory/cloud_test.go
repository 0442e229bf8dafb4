// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
)

// clock is a time that only the test moves.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

func newClock() *clock { return &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

var small = json.RawMessage(`{"type": "small"}`)

func open(t *testing.T, c *memory.Cloud, region string) provider.Driver {
	t.Helper()
	d, err := c.Open(t.Context(), provider.Account{Kind: memory.Kind, ClusterID: "ours", Region: region})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAnswerLostAfterTheEffect(t *testing.T) {
	t.Parallel()
	lose := true
	c := &memory.Cloud{Untokened: true, Fault: func(_ context.Context, call memory.Call) error {
		if call.Op == memory.OpCreate && call.After && lose {
			return provider.Errorf(provider.Unknown, "503 Service Unavailable")
		}
		return nil
	}}
	d, r := open(t, c, ""), provider.Ref{UID: "u", Name: "worker", Token: "t"}
	if _, err := d.Create(t.Context(), r, small); provider.CodeOf(err) != provider.Unknown {
		t.Fatalf("Create = %v, want the fault", err)
	}
	if n := c.Most("u"); n != 1 {
		t.Errorf("%d instances exist after a lost answer, want 1", n)
	}
	lose = false
	if _, err := d.Create(t.Context(), r, small); err != nil || c.Most("u") != 2 {
		t.Errorf("repeated without tokens: %v, most %d, want 2", err, c.Most("u"))
	}
}

func TestFindLags(t *testing.T) {
	t.Parallel()
	now := newClock()
	c := &memory.Cloud{Lag: 8 * time.Second, Clock: now.Now}
	d, r := open(t, c, ""), provider.Ref{UID: "u", Name: "worker", Token: "t"}
	see := func(want int) {
		t.Helper()
		if found, err := d.Find(t.Context(), r); err != nil || len(found) != want {
			t.Errorf("%v: found %v, %v, want %d", now.now, found, err, want)
		}
	}
	i, err := d.Create(t.Context(), r, small)
	if err != nil {
		t.Fatal(err)
	}
	see(0)
	if err := d.Delete(t.Context(), r); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("Delete by a tag that is not yet seen = %v, want NotFound", err)
	}
	now.pass(8 * time.Second)
	see(1)
	if err := d.Delete(t.Context(), provider.Ref{ID: i.ID}); err != nil {
		t.Fatal(err)
	}
	see(1)
	now.pass(8 * time.Second)
	see(0)
}

func TestAccountsShareOneCloud(t *testing.T) {
	t.Parallel()
	c := &memory.Cloud{}
	c.SetStock("small", 1)
	east, west := open(t, c, "east"), open(t, c, "west")
	if _, err := east.Create(t.Context(), provider.Ref{UID: "a", Token: "t"}, small); err != nil {
		t.Fatal(err)
	}
	if _, err := west.Create(t.Context(), provider.Ref{UID: "b", Token: "t"}, small); provider.CodeOf(err) != provider.Exhausted {
		t.Errorf("Create = %v, want Exhausted: the stock is one", err)
	}
	c.SetStock("small", -1)
	if _, err := west.Create(t.Context(), provider.Ref{UID: "b", Token: "t"}, small); err != nil {
		t.Error(err)
	}
	if all, err := west.List(t.Context()); err != nil || len(all) != 1 || all[0].UID != "b" {
		t.Errorf("west lists %v, %v", all, err)
	}
}

func TestHistoryHasEverything(t *testing.T) {
	t.Parallel()
	now := newClock()
	c := &memory.Cloud{Clock: now.Now, Removal: 5 * time.Second}
	d := open(t, c, "")
	for n, uid := range []string{"a", "b"} {
		if _, err := d.Create(t.Context(), provider.Ref{UID: "u-a", Name: uid, Token: fmt.Sprint(n)}, small); err != nil {
			t.Fatal(err)
		}
		now.pass(time.Second)
	}
	all := c.Instances()
	if !c.SetState(all[0].ID, provider.StateFailed) || !c.Vanish(all[0].ID) || c.Vanish(all[0].ID) || c.SetState(all[0].ID, "") {
		t.Error("an instance that is gone takes orders, or one that exists does not")
	}
	if err := d.Delete(t.Context(), provider.Ref{ID: all[1].ID}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range c.History() {
		got = append(got, fmt.Sprintf("%ds %s %s until %d", e.At.Second(), e.What, e.Name, e.Gone.Second()))
	}
	want := []string{"0s created a until 0", "1s created b until 0", "2s vanished a until 2", "2s deleted b until 7"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if n := c.Most("u-a"); n != 2 {
		t.Errorf("most = %d, want 2", n)
	}
	if i, one := c.InstanceOf("u-a"); !one || i.State != provider.StateDeleting {
		t.Errorf("InstanceOf = %+v, %t", i, one)
	}
	now.pass(5 * time.Second)
	if _, one := c.InstanceOf("u-a"); one {
		t.Error("an instance is left")
	}
}

func ExampleCloud() {
	cloud := &memory.Cloud{Ports: 1}
	d, _ := cloud.Open(context.Background(), provider.Account{Kind: memory.Kind, ClusterID: "cluster-a389"})
	ref := provider.Ref{UID: "7a6f", Name: "worker-bggcg", Token: "first"}
	request, _ := d.Resolve(context.Background(), json.RawMessage(`{"type": "small"}`))
	for {
		i, err := d.Create(context.Background(), ref, request)
		fmt.Println(i.State, i.ProviderID, err)
		if i.State != provider.StateIncomplete {
			break
		}
		ref.Progress = i.Progress
	}
	// Output:
	// incomplete  <nil>
	// running memory:///i-000002 <nil>
}
