// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/ec2"
)

// An attempt goes on with the tags that it was begun with, whoever goes on with it: EC2 counts a token for the same parameters only, and
// a former version knew of no mark (R-S17).
func TestAttemptKeepsTheMarkItWasBegunWith(t *testing.T) {
	t.Parallel()
	const mark = types.UID("f6b2c5ea-2a3c-4b0e-9f1e-2f5d1d1c0a11")
	for _, begun := range []types.UID{"", mark} {
		cloud := &ec2.Cloud{Lag: time.Hour} // else what the token made is found, whatever the parameters
		region := serve(t, cloud)
		a := region.account()
		a.ClusterUID = begun
		before, _ := region.wired(t, a)
		resolved, err := before.Resolve(t.Context(), spec(nil))
		must(t, err)
		var told map[string]any
		must(t, json.Unmarshal(resolved, &told))
		if _, has := told["clusterUID"]; has != (begun != "") {
			t.Errorf("begun with %q: the frozen request is %s", begun, resolved)
		}
		r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
		first, err := proceed(t.Context(), before, r, resolved)
		must(t, err)
		a.ClusterUID = mark
		after, _ := region.wired(t, a)
		again, err := proceed(t.Context(), after, r, resolved)
		if err != nil || again.ID != first.ID || again.ClusterUID != begun {
			t.Errorf("begun with %q: goes on as %s with %q, %v, want %s", begun, again.ID, again.ClusterUID, err, first.ID)
		}
		if live := cloud.Live(); len(live) != 1 || types.UID(cloud.TagsOf(first.ID)[tagMark]) != begun {
			t.Errorf("begun with %q: %d instances, the first carries %v", begun, len(live), cloud.TagsOf(first.ID))
		}
	}
}
