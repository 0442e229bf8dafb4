// SPDX-License-Identifier: Apache-2.0

package test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// kubectl is one that can render and print: the user's own, or that of the control plane, which only long runs build.
func kubectl(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("kubectl"); err == nil {
		return path
	}
	if testing.Short() {
		t.Skip("no kubectl on PATH")
	}
	return run(t, "..", nil, "test/cluster/build.sh") + " kubectl"
}

// checkout copies what deploy.sh needs of the repository, so that it can write into build/.
func checkout(t *testing.T, parts ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, part := range append(parts, "config", "triggers", "overlays", "tools/func") {
		if err := os.CopyFS(filepath.Join(root, part), os.DirFS(filepath.Join("..", part))); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"go.mod", "go.sum", "function.go", "func.yaml"} {
		if err := os.WriteFile(filepath.Join(root, file), []byte(text(t, filepath.Join("..", file))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// object is what these tests ask of a manifest.
type object struct {
	Kind, APIVersion string
	Metadata         struct {
		Name, Namespace string
		Annotations     map[string]string
	}
	Spec struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Image string
					Env   []pair
				}
			}
		}
		Subscriber        struct{ Audience string }
		Delivery          delivery
		NamespaceSelector any
		Sink              struct {
			Ref struct{ Kind, Name, Namespace string }
		}
		Config struct{ Kind, Name, Namespace string }
		From   []struct{ Ref struct{ Kind, Name string } }

		Variables []struct{ Expression string }
	}
	Subjects        []struct{ Name, Namespace string }
	AggregationRule any
	Rules           []any
}

// delivery is what a Trigger does where a function fails.
type delivery struct {
	Retry                                int
	BackoffPolicy, BackoffDelay, Timeout string
	DeadLetterSink                       struct{ Ref struct{ Name string } }
}

// render returns the manifests of a kustomization by kind, namespace and name. It fails if one comes twice.
func render(t *testing.T, kubectl, dir string) map[string]object {
	t.Helper()
	command := strings.Fields(kubectl)
	all := map[string]object{}
	for doc := range strings.SplitSeq(run(t, dir, nil, command[0], append(command[1:], "kustomize", ".")...), "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatal(err)
		}
		key := o.Kind + " " + o.Metadata.Namespace + "/" + o.Metadata.Name
		if _, twice := all[key]; twice {
			t.Errorf("%s comes twice", key)
		}
		all[key] = o
	}
	return all
}

// env returns a Service's variables.
func (o object) env() map[string]string {
	for _, c := range o.Spec.Template.Spec.Containers {
		return pairs(c.Env)
	}
	return nil
}

const home = "openshift-machine-api"

// Every combination of overlays renders, by the words of docs/deploying.md, into one installation in which each overlay holds for
// every function, approve-node included.
func TestOverlaysCombine(t *testing.T) {
	t.Parallel()
	program := kubectl(t)
	all := []string{"approve-node", "kafka", "namespaces", "oidc"}
	combinations := [][]string{{"kubernetes-1.35"}, {"openshift"}, {"openshift", "namespaces", "approve-node"}, append(slices.Clone(all), "kubernetes-1.33"), append(slices.Clone(all), "placement")}
	for chosen := range 1 << len(all) {
		var names []string
		for i, name := range all {
			if chosen&(1<<i) != 0 {
				names = append([]string{name}, names...) // their order says nothing
			}
		}
		if !testing.Short() || len(names) < 2 {
			combinations = append(combinations, names)
		}
	}
	for _, names := range combinations {
		t.Run(strings.Join(names, " "), func(t *testing.T) {
			t.Parallel()
			root := checkout(t)
			dir := run(t, root, []string{"OVERLAYS=" + strings.Join(names, " ")}, "tools/func/deploy.sh", "manifests")
			if len(names) > len(all) {
				for key, o := range render(t, program, dir) {
					if o.Kind == "Service" {
						t.Errorf("build/manifests has %s, which is func's", key)
					}
				}
			}
			whole := filepath.Join(filepath.Dir(dir), "whole") // as build/release is, but for the images
			edited := regexp.MustCompile(`(?s)patches:.*`).ReplaceAllString(text(t, filepath.Join(dir, "kustomization.yaml")), "")
			if err := os.Mkdir(whole, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(whole, "kustomization.yaml"), []byte(edited), 0o600); err != nil {
				t.Fatal(err)
			}
			installed(t, render(t, program, whole), names)
		})
	}
}

// installed checks an installation with overlays.
func installed(t *testing.T, got map[string]object, names []string) {
	t.Helper()
	has := func(overlay string) bool { return slices.Contains(names, overlay) }
	functions := load(t, os.DirFS("..")).functions()
	if !has("approve-node") {
		functions = slices.DeleteFunc(functions, func(name string) bool { return name == "approve-node" })
	}
	for _, name := range functions {
		service, ok := got["Service "+home+"/"+name]
		if !ok {
			t.Errorf("%s is missing", name)
			continue
		}
		image, env := service.Spec.Template.Spec.Containers[0].Image, service.env()
		want := map[string]string{}
		if has("namespaces") {
			want["MACHINE_NAMESPACES"] = home + ",machines-b"
		}
		if has("oidc") {
			want["OIDC_AUDIENCE"] = "machine-functions/" + name
			want["OIDC_SUBJECTS"] = "system:serviceaccount:" + home + ":" + name + "*-oidc-eventing.knative.dev-trigger"
		}
		maps.DeleteFunc(env, func(name, _ string) bool {
			return want[name] == "" && name != "OIDC_AUDIENCE" && name != "MACHINE_NAMESPACES"
		})
		if diff := cmp.Diff(want, env); diff != "" || image != "images.invalid/machine-functions/"+name {
			t.Errorf("%s has image %s, variables -want +got:\n%s", name, image, diff)
		}
		if trigger := got["Trigger "+home+"/"+name]; name != "sweep-instances" && trigger.Spec.Subscriber.Audience != want["OIDC_AUDIENCE"] {
			t.Errorf("Trigger %s: %+v", name, trigger)
		}
		if elsewhere, ok := got["RoleBinding machines-b/"+name]; ok != has("namespaces") || ok && elsewhere.Subjects[0].Namespace != home {
			t.Errorf("rights of %s in machines-b: %v, subjects %v", name, ok, elsewhere.Subjects)
		}
	}
	for key, o := range got {
		stays(t, key, o)
		if o.AggregationRule != nil && o.Rules != nil { // each time it is applied they would be gone, until the controller adds them up again
			t.Errorf("%s says rules, which are those of others", key)
		}
		if newer := strings.HasPrefix(o.Kind, "MutatingAdmissionPolicy"); newer && (has("kubernetes-1.33") || has("kubernetes-1.35")) {
			t.Errorf("%s %s is for a newer Kubernetes", o.Kind, o.Metadata.Name)
		}
	}
	if _, ok := got["MutatingAdmissionPolicy /placement.machine-functions"]; ok != has("placement") {
		t.Errorf("Pods are placed: %v", ok)
	}
	_, ours := got["Namespace /"+home]
	if _, more := got["ValidatingAdmissionPolicy /azure-private.machine-functions"]; ours == has("openshift") || more != has("openshift") {
		t.Errorf("the namespace is ours: %v, and what asks OpenShift is there: %v", ours, more)
	}
	if _, ok := got["CustomResourceDefinition /infrastructures.config.openshift.io"]; ok == has("openshift") {
		t.Errorf("the kind Infrastructure is ours: %v", ok)
	}
	for _, name := range []string{"served-namespace", "served-namespace-stays"} {
		policy := got["ValidatingAdmissionPolicy /"+name+".machine-functions"]
		if v := policy.Spec.Variables; len(v) != 1 || strings.Contains(v[0].Expression, "'machines-b'") != has("namespaces") {
			t.Errorf("policy %s knows the namespaces %v", name, v)
		}
	}
	routed(t, got, has)
}

// stays checks that no tool prunes a kind or a namespace when its manifest is gone from Git: all objects of it would go along.
func stays(t *testing.T, key string, o object) {
	t.Helper()
	if o.Kind != "CustomResourceDefinition" && o.Kind != "Namespace" {
		return
	}
	for name, want := range map[string]string{
		"argocd.argoproj.io/sync-options": "Prune=false,Delete=false", "helm.sh/resource-policy": "keep", "kustomize.toolkit.fluxcd.io/prune": "disabled",
	} {
		if got := o.Metadata.Annotations[name]; got != want {
			t.Errorf("%s may be pruned: %s is %q, want %q", key, name, got, want)
		}
	}
}

// routed checks where the sources of an installation send, and whose events the Broker takes.
func routed(t *testing.T, got map[string]object, has func(string) bool) {
	t.Helper()
	sources := set{}
	for key, o := range got {
		if o.Kind != "ApiServerSource" && o.Kind != "PingSource" {
			continue
		}
		sources[o.Metadata.Name] = true
		if o.Spec.Sink.Ref.Kind != "Broker" {
			t.Errorf("%s sends to %s", key, o.Spec.Sink.Ref.Kind)
		}
	}
	if source := got["ApiServerSource "+home+"/machines"]; (source.Spec.NamespaceSelector != nil) != has("namespaces") {
		t.Errorf("the source looks in %v", source.Spec.NamespaceSelector)
	}
	known := set{}
	for _, from := range got["EventPolicy "+home+"/machines"].Spec.From {
		if from.Ref.Name != "" {
			known[from.Ref.Name] = true
		}
	}
	if has("oidc") != (len(known) > 0) || has("oidc") && !slices.Equal(known.sorted(), sources.sorted()) {
		t.Errorf("the Broker takes events of %q, the sources are %q", known.sorted(), sources.sorted())
	}
	broker := got["Broker "+home+"/machines"]
	want, config := map[string]string{"eventing.knative.dev/broker.class": "MTChannelBasedBroker", "messaging.knative.dev/async-handler": "true"}, "config-br-default-channel"
	if has("kafka") {
		want, config = map[string]string{"eventing.knative.dev/broker.class": "Kafka"}, "kafka-broker-config"
	}
	if diff := cmp.Diff(want, broker.Metadata.Annotations); diff != "" {
		t.Errorf("Broker (-want +got):\n%s", diff)
	}
	if in := broker.Spec.Config; in.Kind != "ConfigMap" || in.Name != config || in.Namespace != "knative-eventing" {
		t.Errorf("the Broker's settings are in %+v", in)
	}
	for key, o := range got {
		if o.Kind != "Trigger" {
			continue
		}
		if order := o.Metadata.Annotations["kafka.eventing.knative.dev/delivery.order"]; order != "" { // what fails would hold up the ticks
			t.Errorf("%s delivers %q", key, order)
		}
		want := delivery{Retry: 5, BackoffPolicy: "exponential", BackoffDelay: "PT0.5S", Timeout: "PT30S"} // RELIABILITY 2g
		if strings.HasPrefix(o.Metadata.Name, "sweep-instances") || strings.HasSuffix(o.Metadata.Name, "-simulate") {
			want.Retry, want.BackoffDelay = 1, "PT1S"
		}
		want.DeadLetterSink.Ref.Name = "dead-letter"
		if diff := cmp.Diff(want, o.Spec.Delivery); diff != "" {
			t.Errorf("%s is delivered otherwise than RELIABILITY 2g says (-want +got):\n%s", key, diff)
		}
	}
}

// Who takes an installation away deletes config/, triggers/ and their namespace. What overlays brought besides, docs/upgrading.md names.
func TestWhatOverlaysLeaveIsNamed(t *testing.T) {
	t.Parallel()
	program, named := kubectl(t), text(t, filepath.Join("..", "docs", "upgrading.md"))
	dir := run(t, checkout(t), []string{"OVERLAYS=approve-node kafka namespaces oidc openshift placement"}, "tools/func/deploy.sh", "manifests")
	taken, left := render(t, program, filepath.Join("..", "config")), 0
	maps.Copy(taken, render(t, program, filepath.Join("..", "triggers")))
	for key, o := range render(t, program, dir) {
		if _, ok := taken[key]; ok || o.Metadata.Namespace != "" {
			continue // or it goes with its namespace
		}
		left++
		if !strings.Contains(named, o.Metadata.Name) {
			t.Errorf("%s stays, and nothing says so", key)
		}
	}
	if left < 7 {
		t.Errorf("overlays bring %d objects that have no namespace", left)
	}
}

// What is applied beside an installation renders too, and no manifest names an image that somebody else could publish.
func TestOverlaysBeside(t *testing.T) {
	t.Parallel()
	program := kubectl(t)
	var folders []string
	for _, pattern := range []string{"config", "triggers", "config/overlays/*", "triggers/overlays/*", "config/monitoring", "overlays/shadow"} {
		found, err := filepath.Glob(filepath.Join("..", pattern, "kustomization.yaml"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		folders = append(folders, found...)
	}
	for _, folder := range folders {
		t.Run(filepath.Dir(folder), func(t *testing.T) {
			t.Parallel()
			for key, o := range render(t, program, filepath.Dir(folder)) {
				if o.Metadata.Name != "kubemark" { // simulated, all of it
					stays(t, key, o)
				}
				for _, c := range o.Spec.Template.Spec.Containers {
					if !strings.HasPrefix(c.Image, "images.invalid/machine-functions/") {
						t.Errorf("%s: %s", key, c.Image)
					}
				}
			}
		})
	}
}

// An overlay that is not there, or that stands alone, is refused by name.
func TestOverlaysAreKnown(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"shadow", "nonsense"} {
		cmd := exec.CommandContext(t.Context(), "tools/func/deploy.sh", "manifests")
		cmd.Dir, cmd.Env = "..", append(os.Environ(), "OVERLAYS=oidc "+name)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "there is no overlay "+name+": approve-node kafka kubernetes-1.33 kubernetes-1.35 namespaces oidc") {
			t.Errorf("%v: %s", err, out)
		}
	}
}
