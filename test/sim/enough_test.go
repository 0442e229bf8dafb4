// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// A request that timed out and is closed is no reason to buy for Machines that are on their way now (R-S4).
func TestEnoughAfterATimeout(t *testing.T) {
	t.Parallel()
	for timedOut, want := range map[bool]int{false: 1, true: 3} {
		p := NewPlay(Config{Level: Scaling}, &Script{})
		p.begin()
		before := metav1.NewTime(p.clock.Add(-2 * time.Hour))
		s := autoscaling.State{Schema: 1, Groups: map[string]autoscaling.NodeGroup{"MachineSet/openshift-machine-api/worker": {
			Request: &autoscaling.Request{At: metav1.NewTime(p.clock), TimedOut: timedOut}, LastFailure: &before, Failures: 1, Reason: "timed out",
		}}}
		p.put(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.ConfigMapStatus}, Data: map[string]string{autoscaling.StateKey: s.String()},
		})
		young := &machine.Machine{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(p.clock)}}
		if n := p.mostFor(&proc{play: p, pods: 1, read: []*machine.Machine{young, young}}); n != want {
			t.Errorf("request timed out: %v: %d replicas are enough for one Pod beside two Machines that come, want %d", timedOut, n, want)
		}
	}
}
