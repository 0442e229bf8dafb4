// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const manifests = `apiVersion: apps/v1
kind: Deployment
metadata: {name: controller}
spec: {template: {spec: {containers: [{name: c, image: ko://knative.dev/eventing/cmd/controller, env: [{name: OTHER, value: ko://knative.dev/eventing/cmd/other}], resources: {requests: {cpu: 100m, memory: 100Mi}, limits: {cpu: "1"}}}]}}}
---
# a comment only
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: controller}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: config-network}
`

func TestManifestsFitTheNode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(path, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := render(map[string]string{"knative.dev/eventing/cmd/controller": "127.0.0.1:5000/c@sha256:1"}, filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	got := string(out)
	for _, want := range []string{"image: 127.0.0.1:5000/c@sha256:1", "value: 127.0.0.1:5000/not-here", "cpu: 10m", `cpu: "1"`, "ingress-class: machine-functions-test"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "HorizontalPodAutoscaler") || strings.Count(got, "---") != 2 {
		t.Errorf("more than is needed:\n%s", got)
	}
}
