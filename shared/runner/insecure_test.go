// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// unproven is a driver whose credentials may let its cloud not prove who it is. It counts how often that is listed.
type unproven struct {
	provider.Driver
	why    string
	listed *int
}

func (d unproven) Insecure() string { return d.why }

func (d unproven) List(ctx context.Context) ([]provider.Instance, error) {
	*d.listed++
	return d.Driver.List(ctx)
}

// An account whose cloud need not prove who it is says so, with the Secret and the key. Where STRICT_TLS is set it is refused
// in the same words, and its cloud is not asked anything (RELIABILITY §4).
func TestCloudsThatNeedNotProveWhoTheyAre(t *testing.T) {
	t.Parallel()
	const of = "credentials secret " + machine.Namespace + "/cloud: key clouds.yaml: verify is false"
	for _, c := range []struct {
		name, why, told, refused string
		strict                   bool
	}{
		{name: "it has to"},
		{name: "it has to, strictly", strict: true},
		{name: "it need not", why: "key clouds.yaml: verify is false", told: of},
		{name: "it need not, strictly", why: "key clouds.yaml: verify is false", strict: true, refused: of + "; STRICT_TLS refuses a cloud that need not prove who it is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			table, listed := (&memory.Cloud{}).Provider(), 0
			open := table.Open
			table.Account = func(json.RawMessage) (region, secret string, err error) { return "", "cloud", nil }
			table.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
				d, err := open(ctx, a)
				return unproven{d, c.why, &listed}, err
			}
			key := accountOfC + "cloud"
			var got snapshot.Account
			r := testRunner(function.Function{
				Name: "look",
				Reads: func(snapshot.Snapshot) snapshot.Scope {
					spec := fmt.Sprintf(`{"kind":%q,"type":"small"}`, memory.Kind)
					return snapshot.Scope{Accounts: []snapshot.AccountQuery{{Key: key, Namespace: machine.Namespace, Spec: spec, ClusterID: "c"}}}
				},
				Decide: func(s snapshot.Snapshot) plan.Plan { got = s.Accounts[key]; return plan.Plan{} },
			}, apiserver.New(time.Now).As("look"))
			r.Clouds = NewClouds([]provider.Provider{table}, func(context.Context, string, string) (map[string][]byte, string, error) { return nil, "1", nil })
			r.Clouds.StrictTLS = c.strict
			if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
				t.Fatal(err)
			}
			refused := ""
			if got.Err != nil && got.Err.Code == provider.Denied {
				refused = got.Err.Message
			}
			if got.Insecure != c.told || refused != c.refused || listed == 0 != (c.refused != "") {
				t.Errorf("told %q, refused %q (%v), listed %d times; want %q, %q", got.Insecure, refused, got.Err, listed, c.told, c.refused)
			}
		})
	}
}
