// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// A host that is taken for a Secret without user data boots into nothing, after its disks were written.
func TestNoHostIsTakenWithoutUserData(t *testing.T) {
	t.Parallel()
	values, unread := map[string][]byte{}, error(nil)
	d, err := Provider(newStock(1)).Open(t.Context(), provider.Account{
		Kind: Kind, ClusterID: "abi-sb5b6", Namespace: "machines",
		UserData: func(context.Context, string) (map[string][]byte, string, error) { return values, "1", unread },
	})
	if err != nil {
		t.Fatal(err)
	}
	spec := specOf(image + `, "userData": {"name": "worker-user-data"}`)
	for _, code := range []provider.Code{provider.Exhausted, provider.Unknown} { // it is not there, or nobody knows
		unread = provider.Errorf(code, "no answer")
		if _, err := d.Resolve(t.Context(), spec); provider.CodeOf(err) != code || !strings.Contains(err.Error(), `"worker-user-data": no answer`) {
			t.Errorf("Resolve = %v (%v), want %v", err, provider.CodeOf(err), code)
		}
	}
	unread = nil
	if _, err := d.Resolve(t.Context(), spec); provider.CodeOf(err) != provider.NotFound || !strings.Contains(err.Error(), `"worker-user-data": the Secret has no key userData`) {
		t.Errorf("Resolve = %v", err)
	}
	for _, key := range []string{"userData", "value"} {
		values = map[string][]byte{key: []byte("{}")}
		if _, err := d.Resolve(t.Context(), spec); err != nil {
			t.Errorf("with %s: %v", key, err)
		}
	}
}
