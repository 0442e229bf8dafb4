// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Whoever may annotate a set, or ask a question, writes an amount whose digits fill the memory: it is refused before anybody
// writes them out. What anybody means stays an amount.
func TestEndlessQuantitiesAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"1e-99999999", "1e99999999", "-1E+999", ".5e-100", "1e-0000000000000000000000002", " 1e-99999999\u00a0", strings.Repeat("9", 1<<20), "0." + strings.Repeat("0", 64) + "1",
	} {
		if q, err := ParseQuantity(text); err == nil {
			t.Errorf("%.30q is read as %v", text, &q)
		}
		quoted, err := json.Marshal(map[string]any{"cpu": text, "memory": "1Gi"})
		if err != nil {
			t.Fatal(err)
		}
		var a Amounts
		if err := json.Unmarshal(quoted, &a); err == nil {
			t.Errorf("%.40s is read as %v", quoted, a)
		}
	}
	if err := CheckQuantities([]byte(`{"cpu":1e-99999999}`)); err == nil {
		t.Error("a number without quotes is let through")
	}
	for _, text := range []string{"4", "500m", "1.5", "12e6", "1E3", "16Gi", "1e-3", strings.Repeat("9", 18), "0.000000000000000000001"} {
		q, err := ParseQuantity(text)
		if want := resource.MustParse(text); err != nil || q.Cmp(want) != 0 {
			t.Errorf("%s is read as %v, error %v", text, &q, err)
		}
	}
	for _, text := range []string{`{"uid":"1234567e-1234-5678-9012-345678901234"}`, `{"image":"worker-1e-1234.example"}`, `"` + strings.Repeat("0123456789abcdef", 4) + `"`} {
		if err := CheckQuantities([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A limit that is far more than anything leaves the number to what else is said: it does not become less than nothing.
func TestCapacityBufferOfAHugeLimit(t *testing.T) {
	t.Parallel()
	b, err := ParseCapacityBuffer(map[string]any{"spec": map[string]any{"replicas": int64(3), "limits": map[string]any{"cpu": "1e30"}}})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := b.Count(0, corev1.ResourceList{"cpu": resource.MustParse("1m")}); n != 3 || err != nil {
		t.Errorf("room for %d, error %v, want 3", n, err)
	}
	b, err = ParseCapacityBuffer(map[string]any{"spec": map[string]any{"limits": map[string]any{"cpu": "1e-99999999"}}})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := b.Count(0, corev1.ResourceList{"cpu": resource.MustParse("1m")}); err == nil {
		t.Errorf("room for %d", n)
	}
}

// Whatever people write about room, amounts, timers and windows is read in no time, and within bounds.
func FuzzSettings(f *testing.F) {
	for _, text := range []string{
		"3 of cpu=1 memory=2Gi; 1 of nvidia.com/gpu=1 on zone=a role=", "1 of cpu=1e-99999999", "0.5", "NaN", "1h", "-1h", "2562047h47m16.854775807s", "1e-99999999",
		"0 8 * * 1-5 for 10h min=3 max=20", "*/5 * * * * for 1m in Europe/Berlin min=1", "migration=0.1 payback=1h", `{"cpu":"1e99999999"}`, `{"cpu":1e-99999999}`,
	} {
		f.Add(text)
	}
	names := []string{"scaledownutilizationthreshold", "scaledowngpuutilizationthreshold", "scaledownunneededtime", "scaledownunreadytime", "maxnodeprovisiontime", "maxnodestartuptime"}
	f.Fuzz(func(t *testing.T, text string) {
		if all, err := ParseHeadroom(text); err == nil {
			total := 0
			for _, h := range all {
				total += h.Count
				for name, q := range h.Requests {
					if q.Sign() <= 0 || q.Cmp(resource.MustParse("-1")) < 0 {
						t.Errorf("room for %s of %s", &q, name)
					}
				}
			}
			if total > maxHeadroom {
				t.Errorf("room for %d pods", total)
			}
		}
		for _, name := range names {
			o, _ := Effective(ClusterAutoscalerSpec{}).Options(map[string]string{OptionsPrefix + name: text})
			for _, f := range []float64{o.UtilizationThreshold, o.GPUUtilizationThreshold} {
				if !(f >= 0 && f <= 1) {
					t.Errorf("%s: a threshold of %v", name, f)
				}
			}
			if least := min(o.UnneededTime, o.UnreadyTime, o.MaxNodeProvisionTime, o.MaxNodeStartupTime); least < 0 {
				t.Errorf("%s: %v", name, least)
			}
		}
		if windows, err := ParseSchedule(text); err == nil {
			for _, w := range windows {
				w.Open(time.Date(2026, 2, 28, 23, 59, 0, 0, time.UTC))
			}
		}
		if r, err := ParseRepacking(text); err == nil && !(r.Migration >= 0) {
			t.Errorf("a migration costs %v", r.Migration)
		}
		var a Amounts
		if json.Unmarshal([]byte(text), &a) == nil {
			for _, q := range a {
				q.Add(resource.MustParse("1"))
			}
		}
	})
}
