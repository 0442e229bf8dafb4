// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Where the list does not come and our own time is over, nobody whose instance was not asked for has had a turn: else those who come first
// would come first again, and the others never go (R-L4).
func TestWhoWasNotAskedForHasHadNoTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := map[types.UID]bool{}
		cloud := &memory.Cloud{Fault: func(ctx context.Context, c memory.Call) error {
			if c.Op != memory.OpFind || c.After || ctx.Err() != nil {
				return ctx.Err()
			}
			mu.Lock()
			asked[c.Ref.UID] = true
			mu.Unlock()
			<-ctx.Done()
			return ctx.Err()
		}}
		clouds, subjects, turns := NewClouds([]provider.Provider{cloud.Provider()}, nil), map[types.UID]subject{}, &turns{}
		var all []listed
		for k := range 3 * maxParallel {
			m := machineIn(fmt.Sprintf("worker-%02d", k), types.UID(fmt.Sprintf("worker-%02d", k)))
			m.DeletionTimestamp = new(metav1.Now())
			subjects[m.UID] = subject{object: m}
			all = append(all, listed{Lookup: snapshot.Lookup{UID: m.UID, Bulk: true, Alone: true}, account: both(t, clouds, m)[0]})
		}
		for range 6 { // in each, one that got no place any more loses a turn
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			a := all[0].account
			a.turns = turns
			later := 0
			(&invocation{Runner: &Runner{Clouds: clouds}}).askInTurn(ctx, a, all, subjects, func(_ *machine.Machine, c snapshot.Cloud) {
				if c.Later {
					later++
				}
			})
			cancel()
			if later != len(all) {
				t.Errorf("%d of %d are told that their turn comes later", later, len(all))
			}
		}
		if len(asked) != len(all) {
			t.Errorf("of %d Machines, %d at a time, six scans asked for %d", len(all), maxParallel, len(asked))
		}
	})
}
