// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"strings"
	"testing"
)

func TestNodesThatAreNotMeantAreLeftOut(t *testing.T) {
	t.Parallel()
	const selector = "real!=true"
	for command, want := range map[string]string{
		"get nodes":                             "get nodes -l real!=true",
		"get nodes -o jsonpath={.items}":        "get nodes -o jsonpath={.items} -l real!=true",
		"delete nodes --all":                    "delete nodes -l real!=true",
		"get machines,nodes -A -o name":         "get machines,nodes -A -o name -l real!=true",
		"-n machines get nodes -l role=a -L b":  "-n machines get nodes -l role=a,real!=true -L b",
		"get nodes worker-0":                    "get nodes worker-0",
		"get machines":                          "get machines",
		"label node worker-0 kubelet=stopped":   "label node worker-0 kubelet=stopped",
		"get nodes --field-selector metadata.x": "get nodes --field-selector metadata.x",
	} {
		if got := strings.Join(choosing(selector, strings.Fields(command)), " "); got != want {
			t.Errorf("%q became %q, want %q", command, got, want)
		}
	}
	if got := strings.Join(choosing("", []string{"get", "nodes"}), " "); got != "get nodes" {
		t.Errorf("without a selector: %q", got)
	}
}
