// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// On a cluster where OpenShift's feature gate MachineAPIMigration is on, another API may have the say over a Machine or a set (SPEC B7).
// config/crd is applied over such definitions: what it says stays and goes on changing by OpenShift's rules, so nobody here touches what
// Cluster API runs. Where nobody said anything, nothing is filled in.
func TestWhoHasTheSayOutlivesTheDefinitions(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	k, root := startCluster(t), repository(t)
	k.must(t, "apply", "-f", filepath.Join(root, "config", "namespace.yaml"))
	manifests := filepath.Join(folder(t, root, "github.com/openshift/api"), "machine", "v1beta1", "zz_generated.crd-manifests", "0000_10_machine-api_01_")
	for _, plural := range []string{"machines", "machinesets"} {
		k.must(t, "apply", "--server-side", "-f", manifests+plural+"-TechPreviewNoUpgrade.crd.yaml")
	}
	k.must(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	k.creatable(t, upgraded)
	k.mustGiven(t, upgraded, "create", "-f", "-")
	const in, shown = "-n=openshift-machine-api", "jsonpath={.spec.authoritativeAPI} {.status.authoritativeAPI} {.status.synchronizedAPI} {.status.synchronizedGeneration}"
	kept := []string{"machine/kept", "machineset/kept"}
	moved := func(object string, status ...string) {
		for _, s := range status {
			k.must(t, "patch", object, in, "--subresource=status", "--type=merge", "-p", `{"status":`+s+`}`)
		}
	}
	for _, object := range kept {
		k.must(t, "patch", object, in, "--type=merge", "-p", `{"spec":{"authoritativeAPI":"ClusterAPI"}}`)
		moved(object, `{"authoritativeAPI":"Migrating"}`, `{"authoritativeAPI":"ClusterAPI","synchronizedAPI":"ClusterAPI","synchronizedGeneration":3}`)
	}
	k.must(t, "patch", "machineset/kept", in, "--type=merge", "-p", `{"spec":{"template":{"spec":{"authoritativeAPI":"ClusterAPI"}}}}`)

	k.must(t, "apply", "--server-side", "--force-conflicts", "-k", filepath.Join(root, "config", "crd"))
	k.must(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	fresh := strings.ReplaceAll(upgraded, "name: kept", "name: fresh")
	k.eventually(t, "nothing is filled in", func() bool {
		made := k.mustGiven(t, fresh, "create", "--dry-run=server", "-o", "jsonpath={.spec.authoritativeAPI}{.spec.template.spec.authoritativeAPI}", "-f", "-")
		return !strings.Contains(made, "MachineAPI")
	})
	for _, object := range kept {
		k.must(t, "annotate", object, in, "example.com/seen=yes") // whoever writes it writes what the definition knows
		if got := k.must(t, "get", object, in, "-o", shown); got != "ClusterAPI ClusterAPI ClusterAPI 3" {
			t.Errorf("%s: spec, status, synchronized and its generation are %s", object, got)
		}
		k.refused(t, "", []string{"must not transition directly"}, "patch", object, in, "--subresource=status", "--type=merge", "-p", `{"status":{"authoritativeAPI":"MachineAPI"}}`)
		k.refused(t, "", []string{"may not be removed once set"}, "patch", object, in, "--subresource=status", "--type=merge", "-p", `{"status":{"authoritativeAPI":null}}`)
		k.refused(t, "", []string{"must not decrease"}, "patch", object, in, "--subresource=status", "--type=merge", "-p", `{"status":{"synchronizedGeneration":2}}`)
		k.refused(t, "", []string{"Unsupported value"}, "patch", object, in, "--type=merge", "-p", `{"spec":{"authoritativeAPI":"Migrating"}}`)
		moved(object, `{"authoritativeAPI":"Migrating"}`, `{"authoritativeAPI":"MachineAPI","synchronizedAPI":"MachineAPI","synchronizedGeneration":1}`)
	}
	if got := k.must(t, "get", "machineset/kept", in, "-o", "jsonpath={.spec.template.spec.authoritativeAPI}"); got != "ClusterAPI" {
		t.Errorf("the Machines of the set are to be %q's", got)
	}
}
