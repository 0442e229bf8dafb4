// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// What a providerSpec calls a region is in the key of its account, which all accounts share a record with (RELIABILITY §4).
func TestLongRegionsNameNoAccount(t *testing.T) {
	t.Parallel()
	c := NewClouds([]provider.Provider{(&memory.Cloud{}).Provider()}, nil)
	for n, want := range map[int]bool{maxName: true, maxName + 1: false} {
		spec, err := json.Marshal(map[string]string{"kind": memory.Kind, "type": "small", "region": strings.Repeat("r", n)})
		if err != nil {
			t.Fatal(err)
		}
		_, _, _, err = c.named(t.Context(), c.secrets, machine.Namespace, "c", spec)
		if (err == nil) != want || err != nil && (provider.CodeOf(err) != provider.Invalid || len(err.Error()) > 600) {
			t.Errorf("a region of %d characters: %.100v", n, err)
		}
	}
}

// What a cloud calls an account is on that record too, and on each Machine: one that tells kilobytes tells nothing.
func TestLongNamesOfAccountsAreUntold(t *testing.T) {
	t.Parallel()
	table, asked := (&memory.Cloud{}).Provider(), 0
	open := table.Open
	table.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
		d, err := open(ctx, a)
		return identified{Driver: d, account: strings.Repeat("p", maxName+1), asked: &asked}, err
	}
	for uid, cloud := range lookUp(t, table, snapshot.Lookup{Bulk: true}) {
		if cloud.Owner != "" || uid == "recorded" && cloud.Err == nil {
			t.Errorf("%s is of an account with a name of %d characters, error %v", uid, len(cloud.Owner), cloud.Err)
		}
	}
}
