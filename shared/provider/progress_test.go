// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// A call that failed says what is there; where nothing is, it says nothing, so that another attempt may begin elsewhere.
func TestHaltedCallSaysWhatIsThere(t *testing.T) {
	t.Parallel()
	type progress struct{ Step string }
	refusal, p, r := errors.New("no"), progress{"start"}, provider.Ref{UID: "u", Name: "m", Token: "t"}
	in, err := provider.Halted(r, p, false, refusal)
	if !errors.Is(err, refusal) || !reflect.DeepEqual(in, provider.Instance{}) {
		t.Errorf("where nothing is: %+v, %v", in, err)
	}
	in, err = provider.Halted(r, p, true, refusal)
	if !errors.Is(err, refusal) || in.State != provider.StateIncomplete || in.UID != "u" || in.Name != "m" || in.Token != "t" {
		t.Errorf("where something is: %+v, %v", in, err)
	}
	if told, err := provider.ProgressOf[progress](provider.Ref{Progress: in.Progress}); err != nil || told != p {
		t.Errorf("recorded %+v, %v", told, err)
	}
	if in, err := provider.Halted(r, func() {}, true, refusal); !errors.Is(err, refusal) || !reflect.DeepEqual(in, provider.Instance{}) {
		t.Errorf("what cannot be written: %+v, %v", in, err)
	}
}

// No record is no progress, and one that nobody can read proves nothing.
func TestProgressOfWhatIsRecorded(t *testing.T) {
	t.Parallel()
	if p, err := provider.ProgressOf[[]string](provider.Ref{}); err != nil || p != nil {
		t.Errorf("of nothing: %v, %v", p, err)
	}
	if _, err := provider.ProgressOf[[]string](provider.Ref{Progress: []byte("{")}); err == nil || provider.CodeOf(err) != provider.Unknown {
		t.Errorf("of what cannot be read: %v", err)
	}
}
