// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"strings"
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

// However many kinds of room are missing, a scan looks for the answer of every set to no more than it may tell, and each has its turn within
// minutes (SPEC W7, RELIABILITY 2c).
func TestMissingHeadroomIsToldInTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, epoch)
	w.load(t, "small.yaml")
	var rooms []string
	for i := range 250 {
		rooms = append(rooms, fmt.Sprintf("1 of cpu=%d", 100+i))
	}
	w.must(t, memory.Patch(w.Server, "", "default", func(ca *autoscaling.ClusterAutoscaler) {
		ca.Annotations = map[string]string{autoscaling.HeadroomAnnotation: strings.Join(rooms, ";")}
	}))
	told := map[string]bool{}
	for range 6 {
		now := map[string]bool{}
		for line := range strings.Lines(w.pass(t, 10*time.Second).String()) {
			if strings.Contains(line, "Headroom: 1 of 1 places are missing: 1 Insufficient cpu (worker: wants ") {
				now[line], told[line] = true, true
			}
		}
		if len(now) > maxTold {
			t.Fatalf("a scan tells of %d kinds", len(now))
		}
		w.now = w.now.Add(time.Minute)
	}
	if len(told) != len(rooms) {
		t.Errorf("within minutes %d kinds of %d were told", len(told), len(rooms))
	}
}
