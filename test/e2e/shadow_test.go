// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var eventID = regexp.MustCompile(`"event_id":"([^"]+\.evaluate-autoscale)","event_type":"machine\.evaluate-autoscale\.decided"`)

// shadow runs the recipe of docs/shadow.md: another evaluate-autoscale decides on the same ticks and does nothing, and a
// subscriber gets both decisions. Decisions on one tick share their event's id.
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
		times := map[string]int{}
		for _, found := range eventID.FindAllStringSubmatch(y.do(t, "logs --tail=-1 -c user-container -l serving.knative.dev/service=compare-decisions"+inMachines), -1) {
			if times[found[1]]++; times[found[1]] == 2 {
				return ""
			}
		}
		return fmt.Sprint(times)
	})
	k.took("a shadow of evaluate-autoscale deployed, and both decided on one tick", began)
	y.shows(t, "get machineset shadowed"+inMachines+" -o jsonpath={.metadata.annotations}", `node-group-max-size":"2"`)
}
