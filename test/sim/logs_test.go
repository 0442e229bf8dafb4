// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"strings"
	"testing"
)

// A schedule notices a secret in a line of a log, wherever in the line it stands (R-S13).
func TestSecretsInLogsAreNoticed(t *testing.T) {
	t.Parallel()
	for name, log := range map[string]func(*Play){
		"in the message": func(p *Play) { p.Log.Debug("it is " + Canary) },
		"in an error":    func(p *Play) { p.Log.Warn("refused", "error", errors.New(Canary)) },
		"in a list":      func(p *Play) { p.Log.Info("plan", "plan", []string{"a", Canary}) },
		"of all lines":   func(p *Play) { p.Log.With("function", Canary).Info("nothing") },
	} {
		p := NewPlay(Config{}, &Script{})
		p.Log.Info("begin", "error", errors.New("refused"))
		if p.Violation != nil {
			t.Fatal(p.Violation)
		}
		if log(p); p.Violation == nil || !strings.HasPrefix(p.Violation.Error(), "R-S13") {
			t.Errorf("%s: %v", name, p.Violation)
		}
	}
}
