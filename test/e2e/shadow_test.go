// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	deadletter "github.com/machine-functions/machine-functions/functions/dead-letter"
	"github.com/machine-functions/machine-functions/shared/events"
)

var decision = regexp.MustCompile(`"event_id":"([^"]+)","event_source":"/functions/evaluate-autoscale(/dry-run)?","event_type":"machine\.evaluate-autoscale\.decided"`)

// bothDecided reports whether the one that works and its shadow told a decision on the same tick, by the log of who got both. A decision
// that was delivered twice is still one.
func bothDecided(log string) bool {
	type told struct{ worker, shadow bool }
	ticks := map[string]told{}
	for _, found := range decision.FindAllStringSubmatch(log, -1) {
		tick := ticks[found[1]]
		tick.worker, tick.shadow = tick.worker || found[2] == "", tick.shadow || found[2] != ""
		ticks[found[1]] = tick
		if tick.worker && tick.shadow {
			return true
		}
	}
	return false
}

func TestBothDecided(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		told []events.Decision
		tick []string
		want bool
	}{
		{"one decision, delivered twice", []events.Decision{{}, {}}, []string{"1", "1"}, false},
		{"decisions on two ticks", []events.Decision{{}, {DryRun: true}}, []string{"1", "2"}, false},
		{"both on one tick", []events.Decision{{DryRun: true}, {}, {}}, []string{"2", "1", "2"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			sink := deadletter.New(slog.New(slog.NewJSONHandler(&log, nil)))
			for i, d := range tt.told {
				d.Function = "evaluate-autoscale"
				reply := httptest.NewRecorder()
				if err := events.Reply(t.Context(), reply, tt.tick[i]+".evaluate-autoscale", &d, nil); err != nil {
					t.Fatal(err)
				}
				r := httptest.NewRequest(http.MethodPost, "/", reply.Body)
				r.Header = reply.Header()
				sink.Handle(httptest.NewRecorder(), r)
			}
			if got := bothDecided(log.String()); got != tt.want {
				t.Errorf("both decided: %v\n%s", got, &log)
			}
		})
	}
}

// shadow runs the recipe of docs/shadow.md: another evaluate-autoscale decides on the same ticks and does nothing, and a
// subscriber gets both decisions. Decisions on one tick share their event's id, not its source.
func (k knative) shadow(t *testing.T) {
	y := yard{k.kubectl, k.Stack}
	began := time.Now()
	text := k.must(t, "kustomize", filepath.Join(k.repo, "overlays", "shadow"))
	// What counts and names events serves as the subscriber.
	sink, err := os.ReadFile(filepath.Join(k.repo, "config", "services", "dead-letter.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text += "---\n" + strings.Replace(string(sink), "name: dead-letter", "name: compare-decisions", 1)
	text = strings.NewReplacer("images.invalid/machine-functions/evaluate-autoscale-next", k.image(t, "evaluate-autoscale"), "images.invalid/machine-functions/dead-letter", k.image(t, "dead-letter")).Replace(text)
	k.mustGiven(t, text, "apply", "-f", "-")
	t.Cleanup(func() { k.mustGiven(t, text, "delete", "--ignore-not-found", "-f", "-") })
	k.ready(t, "ksvc", "trigger")
	y.set(t, "shadowed", 1, "4c12g30d", "")
	k.must(t, "create", "-f", filepath.Join(k.repo, "test", "local", "story", "objects", "autoscaler.yaml"))
	k.mustGiven(t, `apiVersion: autoscaling.openshift.io/v1beta1
kind: MachineAutoscaler
metadata: {name: shadowed, namespace: openshift-machine-api}
spec: {minReplicas: 1, maxReplicas: 2, scaleTargetRef: {apiVersion: machine.openshift.io/v1beta1, kind: MachineSet, name: shadowed}}
`, "create", "-f", "-")
	await(t, "both decided on one tick", func() string {
		log := y.do(t, "logs --tail=-1 -c user-container -l serving.knative.dev/service=compare-decisions"+inMachines)
		if bothDecided(log) {
			return ""
		}
		return "they told " + log
	})
	k.took("a shadow of evaluate-autoscale deployed, and both decided on one tick", began)
	y.shows(t, "get machineset shadowed"+inMachines+" -o jsonpath={.metadata.annotations}", `node-group-max-size":"2"`)
}
