// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// unwatched is how long no scan may come for the times of Nodes to go on: a tick is sent again for some minutes.
const unwatched = 5 * time.Minute

// beginAnew drops the times of Nodes that the process has not looked at for long: in between they may have been needed. Of those that are
// about to go the taint has kept others away, and of a time that began since the process looked another one knows. A process that begins goes
// on with what it finds: whoever restarts it every few minutes does not keep Nodes that nobody needs (SPEC C58, C59).
func (sc *scan) beginAnew() {
	if sc.Before.IsZero() || sc.Now.Sub(sc.Before) <= unwatched {
		return
	}
	sc.state.Unneeded = maps.Clone(sc.state.Unneeded)
	maps.DeleteFunc(sc.state.Unneeded, func(uid types.UID, since metav1.Time) bool {
		return !since.After(sc.Before) && removalOf(sc.state.Removals, uid) == nil
	})
}
