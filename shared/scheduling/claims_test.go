// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// owning gives a Pod a claim of its own, of a class that waits for its first consumer.
func owning(class string, more ...func(*corev1.PersistentVolumeClaim)) func(*corev1.Pod, *Facts) {
	return func(p *corev1.Pod, f *Facts) {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "data-" + p.Name}}
		c.Spec.StorageClassName = &class
		for _, m := range more {
			m(c)
		}
		f.Claims = append(f.Claims, c)
		claiming(c.Name)(p)
	}
}

func onceOnly(c *corev1.PersistentVolumeClaim) {
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
}

// The Pods of a StatefulSet, each with a claim of its own, are planned for as one: they are spread, and kept apart, as if they
// had none. Where a claim is anything special its Pod is (SPEC C12, C20).
func TestPodsWithClaimsOfTheirOwnAreAlike(t *testing.T) {
	t.Parallel()
	var offers []Offer
	for _, z := range []string{"a", "b", "c"} {
		offers = append(offers, offersOf(9, aNode(z, "2", "8Gi", inZone(z)))...)
	}
	for _, tt := range []struct {
		name   string
		rule   func(*corev1.Pod)
		claim  func(*corev1.Pod, *Facts)
		facts  []func(*Facts)
		shapes int
		want   string
	}{
		{"spread over zones", spreadBy(zoneKey, 1), owning("wait"), nil, 1, "0 fit, 6 helped by map[a:1 b:1 c:1], 0 left"},
		{"one for each zone", apartBy(zoneKey), owning("wait"), nil, 1, "0 fit, 3 helped by map[a:1 b:1 c:1], 3 left"},
		{"claims for one Pod alone", spreadBy(zoneKey, 1), owning("wait", onceOnly), nil, 1, "0 fit, 6 helped by map[a:1 b:1 c:1], 0 left"},
		{"a volume that one of them may have", spreadBy(zoneKey, 1), owning("wait"), []func(*Facts){available("local", "wait")}, 6, "0 fit, 6 helped by map[a:1 b:1 c:1], 0 left"},
		{"a Node was chosen for each", func(*corev1.Pod) {}, owning("wait", func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{selectedNode: "gone"} }), nil, 6, "0 fit, 0 helped by map[], 6 left"},
		{"one claim for all", func(*corev1.Pod) {}, func(p *corev1.Pod, _ *Facts) { claiming("wait")(p) }, nil, 1, "0 fit, 6 helped by map[a:3], 0 left"},
	} {
		facts := factsOf(append([]func(*Facts){waitingClaim("wait", "csi")}, tt.facts...)...)
		waiting := several(6, aPod("db", "1", "1Gi", tt.rule))
		for _, p := range waiting {
			tt.claim(p, facts)
		}
		p := NewWorld(nil, waiting, facts).Place(waiting, slices.Clone(offers))
		if got := outcome(p); len(p.Shapes) != tt.shapes || got != tt.want {
			t.Errorf("%s: %d shapes: %s", tt.name, len(p.Shapes), got)
		}
	}
}

// available is a volume of a class that exists and that nobody has.
func available(name, class string) func(*Facts) {
	return func(f *Facts) {
		_, v := boundClaim(name)
		v.Spec.ClaimRef, v.Spec.StorageClassName, v.Status.Phase = nil, class, corev1.VolumeAvailable
		f.Volumes = append(f.Volumes, v)
	}
}

// Volumes that have their claims are not looked through for others.
func TestVolumesInUseAreNoCandidates(t *testing.T) {
	t.Parallel()
	facts := factsOf(waitingClaim("wait", "csi"))
	for i := range 3 {
		name := fmt.Sprint("volume-", i)
		available(name, "wait")(facts)
		facts.Volumes[i].Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: []string{"taken", "wait", "wait"}[i]}
	}
	facts.Volumes[2].Spec.StorageClassName = "other"
	c := facts.storage().claimed(aPod("p", "1", "1Gi", claiming("wait")))
	if len(c.unbound) != 1 || len(c.unbound[0].candidates) != 1 || c.unbound[0].candidates[0].Name != "of-volume-1" {
		t.Errorf("%+v", c.unbound)
	}
}
