// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
)

// Headroom that cannot be read any more keeps what it was; headroom that is taken away is gone (SPEC W7).
func TestHeadroomOutlivesATypo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, epoch)
	w.load(t, "small.yaml")
	w.must(t, w.Remove("Pod", "default", "web-b", memory.Force))
	wish := func(text string) {
		w.must(t, memory.Patch(w.Server, "", "default", func(ca *autoscaling.ClusterAutoscaler) {
			ca.Annotations = map[string]string{autoscaling.HeadroomAnnotation: text}
		}))
		w.pass(t, 30*time.Minute)
	}
	for _, tt := range []struct {
		text string
		want int32
	}{{"1 of cpu=3", 2}, {"1 of cpu=3 memory", 2}, {"1 of", 2}, {"", 1}} {
		wish(tt.text)
		if got := w.replicas("worker"); got[0] != tt.want {
			t.Errorf("with headroom %q: replicas %v, want %d", tt.text, got, tt.want)
		}
	}
}
