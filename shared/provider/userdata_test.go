// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// What a guest gets at its first start is read from one key of a Secret, up to what the cloud takes. What people have to mend is a refusal, what could
// not be read is none (G5); each names the Secret.
func TestGuest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values map[string][]byte
		err    error
		code   provider.Code
		says   string
	}{
		{values: map[string][]byte{provider.KeyUserData: []byte("1234"), "other": nil}},
		{values: map[string][]byte{provider.KeyUserData: nil}},
		{values: map[string][]byte{provider.KeyUserData: []byte("12345")}, code: provider.Exhausted, says: "5 bytes of userData are more than the 4 that the cloud takes"},
		{values: map[string][]byte{"userdata": nil}, code: provider.Exhausted, says: "has no key userData: add it"},
		{err: errors.New("not ready"), code: provider.Unknown, says: "not ready"},
		{err: provider.Errorf(provider.Exhausted, "not found"), code: provider.Exhausted, says: "not found"},
	} {
		a := provider.Account{Namespace: "machines", UserData: func(context.Context, string) (map[string][]byte, string, error) { return c.values, "7", c.err }}
		values, version, err := a.Guest(t.Context(), "worker", 4)
		if c.says == "" {
			if err != nil || version != "7" || len(values) != len(c.values) {
				t.Errorf("of %q: %q, %s, %v", c.values, values, version, err)
			}
			continue
		}
		if provider.CodeOf(err) != c.code || !strings.Contains(err.Error(), "user data secret machines/worker") || !strings.Contains(err.Error(), c.says) || values != nil || version != "" {
			t.Errorf("of %q, %v: %q, %s, %v", c.values, c.err, values, version, err)
		}
	}
	if values, version, err := (provider.Account{}).Guest(t.Context(), "", 4); values != nil || version != "" || err != nil {
		t.Errorf("of a spec that names no Secret: %q, %s, %v", values, version, err)
	}
}
