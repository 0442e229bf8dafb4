// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
)

// gate is a cloud whose calls are counted, and denied while it is shut.
type gate struct {
	shut  bool
	calls int
	cloud *memory.Cloud
}

func newGate() *gate {
	g := &gate{}
	g.cloud = &memory.Cloud{Fault: func(_ context.Context, c memory.Call) error {
		if c.After || c.Op != memory.OpList {
			return nil
		}
		if g.calls++; g.shut {
			return provider.Errorf(provider.Denied, "wrong password")
		}
		return nil
	}}
	return g
}

// opened opens the account that a spec names.
func opened(ctx context.Context, c *Clouds, namespace, clusterID string, spec json.RawMessage) (account, error) {
	p, a, version, err := c.named(ctx, c.secrets, namespace, clusterID, spec)
	if err != nil {
		return account{}, err
	}
	return c.opened(ctx, p, a, version)
}

// What was denied is asked again a minute later, or as soon as the credentials are others.
func TestDeniedIsBelievedForAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		p := g.cloud.Provider()
		p.Account = func(json.RawMessage) (string, string, error) { return "here", "credentials", nil }
		version := "1"
		clouds := NewClouds([]provider.Provider{p}, func(context.Context, string, string) (map[string][]byte, string, error) {
			return nil, version, nil
		})
		list := func() error {
			a, err := opened(t.Context(), clouds, "machines", "c", json.RawMessage(`{"kind": "`+memory.Kind+`", "type": "small"}`))
			if err != nil {
				t.Fatal(err)
			}
			_, err = a.driver.List(t.Context())
			return err
		}
		want := func(when string, calls int, denied bool) {
			t.Helper()
			if err := list(); g.calls != calls || (provider.CodeOf(err) == provider.Denied) != denied {
				t.Errorf("%s: %d calls, want %d; error %v", when, g.calls, calls, err)
			}
		}
		g.shut = true
		want("first", 1, true)
		want("again", 1, true)
		if e, ok := errors.AsType[*provider.Error](list()); !ok || e.RetryAfter != deniedFor {
			t.Errorf("a remembered denial says nothing of when to try again: %+v", e)
		}
		if a, err := opened(t.Context(), clouds, "machines", "c", json.RawMessage(`{"kind": "`+memory.Kind+`", "type": "small"}`)); err != nil {
			t.Error(err)
		} else if _, err := a.driver.Find(t.Context(), provider.Ref{UID: "m"}); err != nil {
			t.Errorf("what was denied to one call is denied to another: %v", err)
		}
		time.Sleep(deniedFor)
		want("a minute later", 2, true)
		sent, unsent := cloudOutcome(provider.Instance{}, provider.Errorf(provider.Denied, "wrong password")), cloudOutcome(provider.Instance{}, list())
		if sent.Result != plan.Refused || unsent.Result != plan.Unsent || unsent.Code != provider.Denied || unsent.RetryAfter != deniedFor {
			t.Errorf("a denial is %v, a remembered one %+v", sent.Result, unsent)
		}
		version, g.shut = "2", false
		want("with other credentials", 3, false)
		want("and so on", 4, false)
	})
}

// An account whose cloud does not answer keeps nobody from another one; one that denies is not knocked at again at once.
func TestAccountsAreOpenedByThemselves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		opens := map[string]int{}
		p := newGate().cloud.Provider()
		open := p.Open
		p.Account = func(spec json.RawMessage) (region, secret string, err error) {
			var s struct{ Region string }
			err = json.Unmarshal(spec, &s)
			return s.Region, "", err
		}
		p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
			opens[a.Region]++
			switch a.Region {
			case "silent":
				<-ctx.Done()
				return nil, provider.Errorf(provider.Unknown, "%w", ctx.Err())
			case "closed":
				return nil, provider.Errorf(provider.Denied, "wrong password")
			}
			return open(ctx, a)
		}
		clouds := NewClouds([]provider.Provider{p}, nil)
		account := func(region string) error {
			_, err := opened(t.Context(), clouds, "machines", "c", json.RawMessage(`{"kind": "`+memory.Kind+`", "region": "`+region+`"}`))
			return err
		}
		begin := time.Now()
		silent := make(chan error)
		go func() { silent <- account("silent") }()
		synctest.Wait()
		if err := account("here"); err != nil || time.Since(begin) > 0 {
			t.Errorf("another account: %v after %v", err, time.Since(begin))
		}
		if err := <-silent; !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != callTimeout {
			t.Errorf("the silent one: %v after %v", err, time.Since(begin))
		}
		for range 3 {
			if err := account("closed"); provider.CodeOf(err) != provider.Denied {
				t.Errorf("the closed one: %v", err)
			}
		}
		time.Sleep(deniedFor)
		if err := account("closed"); opens["closed"] != 2 || provider.CodeOf(err) != provider.Denied {
			t.Errorf("the closed one was opened %d times, %v", opens["closed"], err)
		}
	})
}

// What is denied to one spec, or about one Machine, is denied to that alone: a set that may not use its role stops no other
// set. Three in a row are the credentials, and who comes then does not ask.
func TestDeniedToOneIsNotDeniedToAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bad, calls := map[string]bool{"a": true}, 0
		cloud := &memory.Cloud{Fault: func(_ context.Context, c memory.Call) error {
			if c.After || c.Op != memory.OpCreate && c.Op != memory.OpDelete {
				return nil
			}
			if calls++; bad[c.Ref.Name] {
				return provider.Errorf(provider.Denied, "may not pass its role")
			}
			return nil
		}}
		d, err := cloud.Open(t.Context(), provider.Account{Kind: memory.Kind, ClusterID: "c"})
		if err != nil {
			t.Fatal(err)
		}
		p := &patient{Driver: d, clouds: NewClouds(nil, nil)}
		want := func(name string, asked, denied bool) {
			t.Helper()
			r := provider.Ref{UID: types.UID(name), Name: name, Token: name}
			spec := json.RawMessage(`{"type": "small", "tags": {"set": "` + name + `"}}`)
			for call, do := range map[string]func() error{
				"Create": func() error { _, err := p.Create(t.Context(), r, spec); return err },
				"Delete": func() error { return p.Delete(t.Context(), r) },
			} {
				before := calls
				if err := do(); (provider.CodeOf(err) == provider.Denied) != denied || (calls > before) != asked {
					t.Errorf("%s for %s: %v, asked %t, want denied %t, asked %t", call, name, err, calls > before, denied, asked)
				}
			}
		}
		want("a", true, true)
		want("a", false, true)
		want("good", true, false)
		want("a", false, true)
		bad = map[string]bool{"a": true, "b": true, "c": true, "d": true, "good": true}
		want("b", true, true)
		want("c", true, true)
		want("good", true, true)
		want("d", false, true)
		time.Sleep(deniedFor)
		want("d", true, true)
		want("good", false, true)
		time.Sleep(deniedFor)
		bad = nil
		want("good", true, false)
		want("a", true, false)
	})
}

// Who is told that there is nothing was let in: what others were denied before says nothing of it any more.
func TestWhoIsToldThatThereIsNothingWasLetIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer error
		denied bool
	}{
		"nothing there": {provider.Errorf(provider.NotFound, "no such instance"), false},
		"an instance":   {nil, false},
		"no answer":     {provider.Errorf(provider.Unknown, "bad gateway"), true},
	} {
		d := denials{to: map[string]denial{}, row: map[string]bool{}}
		for _, of := range []string{"a", "b"} {
			d.note(of, provider.Errorf(provider.Denied, "not that one"))
		}
		d.note("c", c.answer)
		d.note("d", provider.Errorf(provider.Denied, "not that one"))
		if err := d.standing("e"); (err != nil) != c.denied {
			t.Errorf("%s: whoever is next is told %v", name, err)
		}
	}
}

// What a cloud cannot do is refused, so that somebody hears of it: it is no outcome that nobody knows (RELIABILITY 2g).
func TestWhatACloudCannotDoIsRefused(t *testing.T) {
	t.Parallel()
	p := &patient{Driver: struct{ provider.Driver }{}, clouds: NewClouds(nil, nil), secrets: &unspoken{}}
	for _, to := range []provider.Power{"", provider.PowerHeld, provider.PowerOn} {
		if err := p.power(t.Context(), provider.Ref{UID: "m"}, to); provider.CodeOf(err) != provider.Invalid {
			t.Errorf("power %q: %v", to, err)
		}
	}
	if err := p.Update(t.Context(), provider.Ref{UID: "m"}, nil); provider.CodeOf(err) != provider.Invalid {
		t.Errorf("update: %v", err)
	}
}
