// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What docs/deploying.md says of kn is played as it stands there, by kn itself: a Service applied is the one that kubectl would apply; another
// image, and a revision that is gone back to, change nothing else. Nobody makes revisions here, so kn waits for none.
func TestKn(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	k, root := startCluster(t), repository(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "deploying.md"))
	if err != nil {
		t.Fatal(err)
	}
	k.must(t, "apply", "-f", filepath.Join(root, "config", "namespace.yaml"))
	k.must(t, "apply", "-f", filepath.Join(folder(t, filepath.Join(root, "test", "eventing"), "knative.dev/serving"), "config", "core", "300-resources"))
	k.must(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", dir, "./kn")
	build.Dir, build.Env = filepath.Join(root, "tools", "func"), append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	play := func(commands string) {
		t.Helper()
		shell := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", `kubectl() { "$CONTROL_PLANE" kubectl "$@"; }; kn() { "$DIR"/kn "$@" --no-wait; }; `+commands)
		shell.Dir, shell.Env = dir, append(os.Environ(), "CONTROL_PLANE="+k.plane.Binary, "KUBECONFIG="+k.plane.Kubeconfig, "DIR="+dir, "HOME="+dir)
		if out, err := shell.CombinedOutput(); err != nil {
			t.Fatalf("%s\n%v: %s", commands, err, out)
		}
	}
	unsaid := strings.NewReplacer(`,"port":0`, "", `"name":"",`, "") // which Knative's types write out
	spec := func(path string) string {
		t.Helper()
		return unsaid.Replace(k.must(t, "get", "ksvc", "link-node", "-n", "openshift-machine-api", "-o", "jsonpath={.spec"+path+"}"))
	}
	const another = "registry.example.com/machine-functions/link-node@sha256:"
	_, said, _ := strings.Cut(string(text), "**With kn.**")
	apply, update, found := strings.Cut(indented(said), "    kn service update ")
	if !found || !strings.Contains(apply, "build/release") || !strings.Contains(update, another+"…") {
		t.Fatalf("docs/deploying.md says\n%s", indented(said))
	}
	play(strings.ReplaceAll(apply, "build/release", filepath.Join(root, "config")))
	applied := spec("")
	k.must(t, "delete", "ksvc", "link-node", "-n", "openshift-machine-api")
	k.must(t, "apply", "-f", filepath.Join(root, "config", "services", "link-node.yaml"))
	if byKubectl := spec(""); applied != byKubectl {
		t.Errorf("kn applied\n%s\nkubectl\n%s", applied, byKubectl)
	}
	image := another + strings.Repeat("0", 64)
	settings := spec(".template.spec.containers[0].env")
	play("kn service update " + strings.Replace(update, another+"…", image, 1))
	if got := spec(".template.spec.containers[0].image"); got != image {
		t.Errorf("image %s", got)
	}
	if got := spec(".template.spec.containers[0].env"); got != settings {
		t.Errorf("variables %s, were %s", got, settings)
	}
	for _, target := range []struct{ option, want string }{
		{"--traffic link-node-00001=100", `[{"latestRevision":false,"percent":100,"revisionName":"link-node-00001"}]`},
		{"--traffic @latest=100", `[{"latestRevision":true,"percent":100}]`},
	} {
		if !strings.Contains(strings.ReplaceAll(string(text), "\n", " "), target.option) {
			t.Errorf("docs/deploying.md does not say %s", target.option)
		}
		play("kn service update link-node -n openshift-machine-api " + target.option)
		if got := spec(".traffic"); got != target.want {
			t.Errorf("%s: %s", target.option, got)
		}
	}
}

// indented returns the first lines of a document that are code, up to the next heading in bold.
func indented(text string) string {
	text, _, _ = strings.Cut(text, "\n**")
	return strings.Join(regexp.MustCompile(`(?m)^ {4}.*\n`).FindAllString(text, -1), "")
}

// folder is where a module lies that another one requires.
func folder(t *testing.T, in, module string) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir, list.Env = in, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
