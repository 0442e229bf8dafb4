// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// That credentials are missing, or may not be read, a person has to mend. That the API server did not tell them proves nothing.
func TestCredentialsThatCannotBeReadSayWhy(t *testing.T) {
	t.Parallel()
	secrets := schema.GroupResource{Resource: "secrets"}
	for _, c := range []struct {
		name string
		err  error
		want provider.Code
	}{
		{"there is no such secret", cluster.ErrGone, provider.Denied},
		{"nobody may read it", apierrors.NewForbidden(secrets, "cloud", errors.New("RBAC")), provider.Denied},
		{"no answer in time", context.DeadlineExceeded, provider.Unknown},
		{"the API server has too much to do", apierrors.NewTooManyRequests("later", 1), provider.Unknown},
		{"the API server fails", apierrors.NewInternalError(errors.New("etcd")), provider.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			table := provider.Provider{Kinds: []string{"K"}, Account: func(json.RawMessage) (string, string, error) { return "", "cloud", nil }}
			clouds := NewClouds([]provider.Provider{table}, func(context.Context, string, string) (map[string][]byte, string, error) {
				return nil, "", fmt.Errorf("secret cloud: %w", c.err)
			})
			if _, _, _, err := clouds.named(t.Context(), clouds.secrets, machine.Namespace, "c", json.RawMessage(`{"kind":"K"}`)); provider.CodeOf(err) != c.want {
				t.Errorf("%v is %v, want %v", err, provider.CodeOf(err), c.want)
			}
		})
	}
}
