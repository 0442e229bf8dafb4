// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
)

// closing is a driver that notes when it is closed.
type closing struct {
	provider.Driver
	closed func() error
}

func (c closing) Close(context.Context) error { return c.closed() }

// A driver is closed when another takes its place, and what is open when the process ends.
func TestDriversAreClosed(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var closed []string
	version, refusal := "1", errors.New("refused")
	p := new(memory.Cloud).Provider()
	p.Account = func(spec json.RawMessage) (string, string, error) {
		var s struct{ Type string }
		return s.Type, "credentials", json.Unmarshal(spec, &s)
	}
	open := p.Open
	p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
		d, err := open(ctx, a)
		return closing{d, func() error {
			mu.Lock()
			defer mu.Unlock()
			closed = append(closed, string(a.Credentials["v"]))
			return refusal
		}}, err
	}
	clouds := NewClouds([]provider.Provider{p}, func(context.Context, string, string) (map[string][]byte, string, error) {
		return map[string][]byte{"v": []byte(version)}, version, nil
	})
	s := NewServer(&Runner{Clouds: clouds}, nil)
	use := func(clusterID string) {
		t.Helper()
		if _, err := opened(t.Context(), clouds, "machines", clusterID, json.RawMessage(`{"kind": "`+memory.Kind+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	use("c")
	use("c")
	if len(closed) != 0 {
		t.Errorf("closed while in use: %v", closed)
	}
	version = "2"
	use("c")
	use("other")
	if !slices.Equal(closed, []string{"1"}) {
		t.Errorf("closed %v, want the one of the former Secret", closed)
	}
	if err := s.Stop(t.Context()); !errors.Is(err, refusal) || !slices.Equal(closed, []string{"1", "2", "2"}) {
		t.Errorf("Stop = %v after %v, want both closed", err, closed)
	}
	if err := NewServer(&Runner{}, nil).Stop(t.Context()); err != nil {
		t.Errorf("without clouds: %v", err)
	}
}

// Credentials that people have taken away are kept by nobody, nor what was opened at a cloud with them; that they could not be read closes
// nothing.
func TestDriversAreClosedWhenTheirSecretIsGone(t *testing.T) {
	t.Parallel()
	var closed []string
	var unreadable error
	p := new(memory.Cloud).Provider()
	p.Account = func(json.RawMessage) (string, string, error) { return "", "credentials", nil }
	open := p.Open
	p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
		d, err := open(ctx, a)
		return closing{d, func() error { closed = append(closed, a.Namespace+"/"+a.ClusterID); return nil }}, err
	}
	clouds := NewClouds([]provider.Provider{p}, func(_ context.Context, namespace, _ string) (map[string][]byte, string, error) {
		if namespace == "machines" && unreadable != nil {
			return nil, "", unreadable
		}
		return map[string][]byte{}, "1", nil
	})
	use := func(namespace, clusterID string) error {
		_, err := opened(t.Context(), clouds, namespace, clusterID, json.RawMessage(`{"kind": "`+memory.Kind+`", "type": "small"}`))
		return err
	}
	for _, namespace := range []string{"machines", "machines-b"} {
		for _, clusterID := range []string{"c", "former"} {
			if err := use(namespace, clusterID); err != nil {
				t.Fatal(err)
			}
		}
	}
	unreadable = errors.New("no answer in time")
	if err := use("machines", "c"); err == nil || len(closed) != 0 {
		t.Errorf("unread: %v, closed %v", err, closed)
	}
	unreadable = fmt.Errorf("secret credentials: %w", cluster.ErrGone)
	if err := use("machines", "c"); provider.CodeOf(err) != provider.Denied {
		t.Errorf("gone: %v", err)
	}
	if slices.Sort(closed); !slices.Equal(closed, []string{"machines/c", "machines/former"}) {
		t.Errorf("closed %v", closed)
	}
	unreadable = nil
	if err := use("machines", "c"); err != nil || len(clouds.open) != 3 {
		t.Errorf("once it is there again: %v, %d are open", err, len(clouds.open))
	}
}

// Who wants an account that somebody else is opening waits no longer than its own time, and whoever closes it neither (R-L4).
func TestNobodyWaitsLongerForAnAccountThanItHasTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := new(memory.Cloud).Provider()
		p.Open = func(ctx context.Context, _ provider.Account) (provider.Driver, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		clouds := NewClouds([]provider.Provider{p}, nil)
		spec := json.RawMessage(`{"kind": "` + memory.Kind + `", "type": "small"}`)
		go func() { _, _ = opened(t.Context(), clouds, "machines", "c", spec) }()
		synctest.Wait()
		for what, wants := range map[string]func(context.Context) error{
			"open":  func(ctx context.Context) error { _, err := opened(ctx, clouds, "machines", "c", spec); return err },
			"close": clouds.Close,
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			began := time.Now()
			if err := wants(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
				t.Errorf("%s: %v after %v, want the end of its second", what, err, time.Since(began))
			}
			cancel()
		}
	})
}

// Whoever writes providerSpecs names accounts: no more than some are kept open, those that are asked for.
func TestFewAccountsAreKeptOpen(t *testing.T) {
	t.Parallel()
	var closed []string
	p := new(memory.Cloud).Provider()
	open := p.Open
	p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
		d, err := open(ctx, a)
		return closing{d, func() error { closed = append(closed, a.ClusterID); return nil }}, err
	}
	clouds := NewClouds([]provider.Provider{p}, nil)
	use := func(clusterID string) {
		t.Helper()
		if _, err := opened(t.Context(), clouds, "machines", clusterID, json.RawMessage(`{"kind": "`+memory.Kind+`", "type": "small"}`)); err != nil {
			t.Fatal(err)
		}
	}
	for n := range mostOpen + 10 {
		use("ours")
		use(strconv.Itoa(n))
	}
	if want := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}; len(clouds.open) != mostOpen || !slices.Equal(closed, want) {
		t.Errorf("%d are open, closed %v", len(clouds.open), closed)
	}
}

// Who forgets an account that is being opened may have no time to wait for that. What is opened then is closed with the others, and beside
// another of the same account at once: whoever waited for it gets that one.
func TestWhatIsOpenedWhileItIsForgottenIsClosed(t *testing.T) {
	t.Parallel()
	for name, another := range map[string]bool{"alone": false, "beside another": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var asked, closed atomic.Int32
				slow := make(chan struct{})
				p := new(memory.Cloud).Provider()
				open := p.Open
				p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
					if asked.Add(1) == 1 {
						<-slow
					}
					d, err := open(ctx, a)
					return closing{d, func() error { closed.Add(1); return nil }}, err
				}
				clouds := NewClouds([]provider.Provider{p}, nil)
				used := make(chan *patient, 2)
				use := func() {
					a, err := opened(t.Context(), clouds, "machines", "c", json.RawMessage(`{"kind": "`+memory.Kind+`", "type": "small"}`))
					if err != nil {
						t.Error(err)
					}
					used <- a.driver
				}
				go use()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				for at := range clouds.open {
					clouds.forget(ctx, at[:strings.LastIndex(at, "|c|")])
				}
				if len(clouds.open) != 0 {
					t.Fatalf("%d are open", len(clouds.open))
				}
				if another {
					use()
				}
				close(slow)
				synctest.Wait()
				for _, o := range clouds.open {
					for range len(used) {
						if d := <-used; d != o.account.driver {
							t.Error("somebody uses what is closed")
						}
					}
				}
				if err := clouds.Close(t.Context()); err != nil || asked.Load() != closed.Load() {
					t.Errorf("%v: opened %d, closed %d", err, asked.Load(), closed.Load())
				}
			})
		})
	}
}

// Clouds that do not answer when the process ends keep none of fifty from being left: func-go waits 30 s for that.
func TestAllAreLeftBesideTheSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const accounts = 50
		var left atomic.Int32
		p := new(memory.Cloud).Provider()
		open := p.Open
		p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
			d, err := open(ctx, a)
			return silentAtLast{d, &left}, err
		}
		clouds := NewClouds([]provider.Provider{p}, nil)
		for n := range accounts {
			if _, err := opened(t.Context(), clouds, "machines", strconv.Itoa(n), json.RawMessage(`{"kind": "`+memory.Kind+`", "type": "small"}`)); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := NewServer(&Runner{Clouds: clouds}, nil).Stop(ctx); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || left.Load() != accounts {
			t.Errorf("Stop = %v, %d of %d had their time", err, left.Load(), accounts)
		}
	})
}

// silentAtLast is a driver whose cloud does not answer when it is left.
type silentAtLast struct {
	provider.Driver
	left *atomic.Int32
}

func (d silentAtLast) Close(ctx context.Context) error {
	began := time.Now()
	<-ctx.Done()
	if time.Since(began) >= closeTimeout {
		d.left.Add(1)
	}
	return ctx.Err()
}
