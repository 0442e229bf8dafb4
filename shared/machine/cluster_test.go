// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Under which id of the cluster an instance is looked for: under another one it seems to be gone, and is made twice (R-S1, R-S12).
func TestInstanceIsOfTheClusterThatMadeIt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	made := func(outcome, cluster string) *Intent {
		i := NewIntent(&Machine{}, 1, "cloud", []byte(`{}`)).Claimed("me", now, time.Minute).Released(outcome, time.Time{})
		i.Cluster = cluster
		return &i
	}
	uncalled := NewIntent(&Machine{}, 1, "cloud", nil)
	newer := *made("", "old")
	newer.Schema++
	for name, tt := range map[string]struct {
		intent             *Intent
		recorded, deleting bool
		id                 string
		told               bool
	}{
		"nothing is there":                      {nil, false, false, "", true},
		"made by others":                        {nil, true, false, "label", false},
		"recorded, of a former id":              {made(OutcomeCreated, "old"), true, false, "old", true},
		"recorded, of the present id":           {made(OutcomeCreated, ""), true, false, "label", true},
		"recorded, and never asked for":         {&uncalled, true, false, "label", false},
		"never asked for":                       {&uncalled, false, false, "", true},
		"unanswered, of a former id":            {made("", "old"), false, false, "old", true},
		"unanswered, of the present id":         {made("", ""), false, false, "label", true},
		"refused: the next is of the present":   {made(OutcomeRefused, "old"), false, false, "", true},
		"refused, and what is left is to go":    {made(OutcomeRefused, "old"), false, true, "old", true},
		"nobody can read it":                    {&newer, false, false, "label", false},
		"nobody can read it, and it is on Node": {&newer, true, false, "label", false},
	} {
		m := &Machine{}
		m.Labels, m.Annotations = map[string]string{LabelCluster: "label"}, map[string]string{}
		if tt.intent != nil {
			m.Annotations[AnnotationIntent] = tt.intent.String()
		}
		if tt.deleting {
			m.DeletionTimestamp = new(metav1.NewTime(now))
		}
		var records *Records
		for _, by := range []func(){
			func() { m.Spec.ProviderID = new("aws:///z/i-1") },
			func() {
				m.Spec.ProviderID, m.Status.Addresses = nil, []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
			},
		} {
			if tt.recorded {
				by()
			}
			if id, told := records.InstanceCluster(m); id != tt.id || told != tt.told {
				t.Errorf("%s: %q, told %v; want %q, %v", name, id, told, tt.id, tt.told)
			}
		}
	}
	m := &Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{LabelCluster: "label"}}}
	if a, b := made("", "x").In(m, "old"), made("", "x").In(m, "label"); a.Cluster != "old" || b.Cluster != "" {
		t.Errorf("of a former id %q, of the present one %q", a.Cluster, b.Cluster)
	}
}
