// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// A schedule notices a secret in a line of a log, wherever in the line it stands, and in whatever form (R-S13).
func TestSecretsInLogsAreNoticed(t *testing.T) {
	t.Parallel()
	secret := []byte("password: " + Canary + "\n")
	for name, log := range map[string]func(*Play){
		"in the message":        func(p *Play) { p.Log.Debug("it is " + Canary) },
		"in an error":           func(p *Play) { p.Log.Warn("refused", "error", errors.New(Canary)) },
		"in a list":             func(p *Play) { p.Log.Info("plan", "plan", []string{"a", Canary}) },
		"of all lines":          func(p *Play) { p.Log.With("function", Canary).Info("nothing") },
		"in bytes":              func(p *Play) { p.Log.Info("open", "key", secret) },
		"in bytes by keys":      func(p *Play) { p.Log.Info("open", "credentials", map[string][]byte{"key": secret}) },
		"in bytes of all lines": func(p *Play) { p.Log.With("credentials", map[string][]byte{"key": secret}).Info("nothing") },
		"in a group":            func(p *Play) { p.Log.WithGroup("open").Info("open", slog.Group("of", "key", secret)) },
		"in what has a field":   func(p *Play) { p.Log.Info("open", "of", struct{ Key []byte }{secret}) },
		"in numbers":            func(p *Play) { p.Log.Info("open", "of", fmt.Sprint(secret)) },
		"in numbers of a list":  func(p *Play) { p.Log.Info("open", "of", [len(Canary)]byte([]byte(Canary))) },
		"in bytes as Go":        func(p *Play) { p.Log.Info(fmt.Sprintf("open %#v", secret)) },
		"in hexadecimal digits": func(p *Play) { p.Log.Info("open " + hex.EncodeToString(secret)) },
		"in a quoted text":      func(p *Play) { p.Log.Info("open", "of", fmt.Sprintf("%q", secret)) },
	} {
		p := NewPlay(Config{}, &Script{})
		p.Log.Info("begin", "error", errors.New("refused"), "of", provider.Credentials{"key": secret})
		if p.Violation != nil {
			t.Fatal(p.Violation)
		}
		if log(p); p.Violation == nil || !strings.HasPrefix(p.Violation.Error(), "R-S13") {
			t.Errorf("%s: %v", name, p.Violation)
		}
	}
}

// Whoever logs what an account is opened with is noticed, unless it is of the type that tells no values.
func TestLoggedCredentialsAreNoticed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		logged  func(provider.Account) any
		noticed bool
	}{
		"an account":  {func(a provider.Account) any { return a }, false},
		"credentials": {func(a provider.Account) any { return a.Credentials }, false},
		"a map":       {func(a provider.Account) any { return map[string][]byte(a.Credentials) }, true},
		"a value":     {func(a provider.Account) any { return a.Credentials["key"] }, true},
	} {
		var p *Play
		opened := 0
		p = NewPlay(Config{Level: Machines, Steps: 100, Clouds: func(cloud provider.Provider) provider.Provider {
			open := cloud.Open
			cloud.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
				opened++
				p.Log.Info("account is open", "account", c.logged(a))
				return open(ctx, a)
			}
			return cloud
		}}, &Script{Strategy: NewSwarm(1)})
		err := p.Run()
		if noticed := err != nil && strings.HasPrefix(err.Error(), "R-S13: a secret is told: "); opened == 0 || noticed != c.noticed || !noticed && err != nil {
			t.Errorf("%s: opened %d times: %v", name, opened, err)
		}
	}
}
