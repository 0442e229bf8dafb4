// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// whole is the root of the repository as a function: all of them in one image.
const whole = "machine-functions"

// run runs a command in the root of the repository or elsewhere and returns what it prints.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var complaint bytes.Buffer
	cmd.Dir, cmd.Stderr, cmd.Env = dir, &complaint, append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, complaint.Bytes())
	}
	return strings.TrimSpace(string(out))
}

// What make deploy hands to kn func is a function root that holds one function, with the clouds' drivers only where they
// are used, and differs in nothing from what is committed (KNATIVE: func rewrites the func.yaml that it deploys).
func TestStagedRoots(t *testing.T) {
	t.Parallel()
	house := load(t, os.DirFS(".."))
	for _, name := range append(house.functions(), sink, whole) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := run(t, "..", []string{"STAGE=" + t.TempDir()}, "tools/func/deploy.sh", "stage", name)
			committed := filepath.Join("..", "functions", name, "func.yaml")
			if name == whole {
				committed = filepath.Join("..", "func.yaml")
			}
			if diff := cmp.Diff(text(t, committed), text(t, filepath.Join(root, "func.yaml"))); diff != "" {
				t.Errorf("func.yaml (-committed +staged):\n%s", diff)
			}
			deps := strings.Fields(run(t, root, []string{"GOWORK=off", "GOFLAGS=-mod=readonly"}, "go", "list", "-deps", "."))
			var others []string
			for _, dep := range deps {
				if own, ok := strings.CutPrefix(dep, module+"functions/"); ok && own != name {
					others = append(others, own)
				}
			}
			if name != whole && len(others) > 0 {
				t.Errorf("holds %q beside %s", others, name)
			}
			clouds := name == whole || name == "provision-machine" || name == "sweep-instances"
			if has := slices.Contains(deps, module+"shared/provider/drivers"); has != clouds {
				t.Errorf("holds drivers: %v, want %v", has, clouds)
			}
			if !slices.Contains(deps, "knative.dev/func-go/http") {
				t.Error("does not keep the runtime in go.mod")
			}
			noTests(t, root)
		})
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func noTests(t *testing.T, root string) {
	t.Helper()
	if err := fs.WalkDir(os.DirFS(root), ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(p, "_test.go") || d.Name() == "testdata" || d.Name() == "func.yaml" && p != "func.yaml") {
			t.Errorf("%s does not belong into an image", p)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// deployment is what both ways of deploying say about a function.
type deployment struct {
	Account, Min, Max, Target, Concurrency, CPU, Memory, MemoryLimit string
	Labels, Env                                                      map[string]string
}

// kn func deploy and kubectl apply -k config lead to the same Service: whoever changes one changes the other.
func TestBothWaysDeployTheSame(t *testing.T) {
	t.Parallel()
	house := load(t, os.DirFS(".."))
	for _, name := range append(house.functions(), sink) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			byFunc, byManifest := house.byFunc(t, "functions/"+name+"/func.yaml"), house.byManifest(t, name)
			if byManifest.Env["FUNCTION"] != name {
				t.Errorf("config/services sets FUNCTION to %q", byManifest.Env["FUNCTION"])
			}
			delete(byManifest.Env, "FUNCTION") // a staged root is one function
			// func's images listen on [::], which fails where a kernel knows no IPv6; Go takes this for both where it does.
			if got := byManifest.Env["LISTEN_ADDRESS"]; got != "0.0.0.0:8080" {
				t.Errorf("config/services lets it listen on %q", got)
			}
			if diff := cmp.Diff(byManifest, byFunc); diff != "" {
				t.Errorf("-config/services +func.yaml:\n%s", diff)
			}
		})
	}
}

// The root is deployed as a function too. It is provision-machine until FUNCTION says otherwise, so it is bound as that is: reached from
// inside the cluster, within bounds.
func TestRootIsBoundAsItsFunction(t *testing.T) {
	t.Parallel()
	house := load(t, os.DirFS(".."))
	root := house.byFunc(t, "func.yaml")
	like := house.byManifest(t, root.Env["FUNCTION"])
	if diff := cmp.Diff(like, root); diff != "" {
		t.Errorf("-config/services/%s +func.yaml:\n%s", root.Env["FUNCTION"], diff)
	}
}

// func adds a line to the .gitignore beside the func.yaml that it deploys, unless it is there: deploying the root changes no file that is
// committed.
func TestFuncFindsItsLine(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../.gitignore")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(strings.Split(string(text), "\n"), "/.func") {
		t.Errorf(".gitignore has no line /.func:\n%s", text)
	}
}

// A shadow is compared with the one that works: it has the same room and the same settings, and does nothing (docs/shadow.md).
func TestShadowIsBoundAsTheOneThatWorks(t *testing.T) {
	t.Parallel()
	house := load(t, os.DirFS(".."))
	works, shadow := house.byManifest(t, "evaluate-autoscale"), house.serviceIn(t, "overlays/shadow/service.yaml")
	if shadow.Env["DRY_RUN"] != "true" {
		t.Errorf("DRY_RUN=%q", shadow.Env["DRY_RUN"])
	}
	delete(shadow.Env, "DRY_RUN")
	if diff := cmp.Diff(works, shadow); diff != "" {
		t.Errorf("-config/services +overlays/shadow:\n%s", diff)
	}
}

// Pods are what Pod Security calls restricted, and name no user: the image says one, and OpenShift (restricted-v2) lets a Pod name none but
// those that it set aside for the namespace.
func TestServicesAreRestricted(t *testing.T) {
	t.Parallel()
	house, want := load(t, os.DirFS("..")), &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		ReadOnlyRootFilesystem:   new(true),
		RunAsNonRoot:             new(true),
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	manifests := []string{"overlays/shadow/service.yaml"}
	for _, name := range append(house.functions(), sink) {
		manifests = append(manifests, house.manifest("config/services", name))
	}
	for _, manifest := range manifests {
		var s struct {
			Spec struct {
				Template struct{ Spec corev1.PodSpec }
			}
		}
		file, _ := house.find(manifest)
		if err := yaml.Unmarshal(file.text, &s); err != nil || len(s.Spec.Template.Spec.Containers) != 1 {
			t.Errorf("%s: %v, %d containers", manifest, err, len(s.Spec.Template.Spec.Containers))
			continue
		}
		pod := s.Spec.Template.Spec
		if diff := cmp.Diff(want, pod.Containers[0].SecurityContext); diff != "" || pod.SecurityContext != nil {
			t.Errorf("%s: of its Pod %v, of its container (-want +got):\n%s", manifest, pod.SecurityContext, diff)
		}
	}
}

type pair struct{ Key, Name, Value string }

func pairs(all []pair) map[string]string {
	m := map[string]string{}
	for _, p := range all {
		m[p.Key+p.Name] = p.Value
	}
	return m
}

func (tr tree) byFunc(t *testing.T, path string) deployment {
	t.Helper()
	var f struct {
		Run    struct{ Envs []pair }
		Deploy struct {
			ServiceAccountName string
			Labels             []pair
			Options            struct {
				Scale struct {
					Min, Max int
					Target   *int
				}
				Resources struct {
					Requests struct{ CPU, Memory string }
					Limits   struct {
						Memory      string
						Concurrency int
					}
				}
			}
		}
	}
	s, _ := tr.find(path)
	if err := yaml.Unmarshal(s.text, &f); err != nil {
		t.Fatal(err)
	}
	o, target := f.Deploy.Options, ""
	if o.Scale.Target != nil {
		target = strconv.Itoa(*o.Scale.Target)
	}
	return deployment{
		Account: f.Deploy.ServiceAccountName, Min: strconv.Itoa(o.Scale.Min), Max: strconv.Itoa(o.Scale.Max), Target: target,
		Concurrency: strconv.Itoa(o.Resources.Limits.Concurrency), CPU: o.Resources.Requests.CPU,
		Memory: o.Resources.Requests.Memory, MemoryLimit: o.Resources.Limits.Memory,
		Labels: pairs(f.Deploy.Labels), Env: pairs(f.Run.Envs),
	}
}

func (tr tree) byManifest(t *testing.T, name string) deployment {
	t.Helper()
	return tr.serviceIn(t, tr.manifest("config/services", name))
}

func (tr tree) serviceIn(t *testing.T, path string) deployment {
	t.Helper()
	var s struct {
		Metadata struct{ Labels map[string]string }
		Spec     struct {
			Template struct {
				Metadata struct{ Annotations map[string]string }
				Spec     struct {
					ServiceAccountName   string
					ContainerConcurrency int
					Containers           []struct {
						Env       []pair
						Resources struct{ Requests, Limits map[string]string }
					}
				}
			}
		}
	}
	file, _ := tr.find(path)
	if err := yaml.Unmarshal(file.text, &s); err != nil || len(s.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("%s: %v, %d containers", file.path, err, len(s.Spec.Template.Spec.Containers))
	}
	in, c := s.Spec.Template, s.Spec.Template.Spec.Containers[0]
	return deployment{
		Account: in.Spec.ServiceAccountName, Min: in.Metadata.Annotations["autoscaling.knative.dev/min-scale"],
		Max:         in.Metadata.Annotations["autoscaling.knative.dev/max-scale"],
		Target:      in.Metadata.Annotations["autoscaling.knative.dev/target"],
		Concurrency: strconv.Itoa(in.Spec.ContainerConcurrency), CPU: c.Resources.Requests["cpu"],
		Memory: c.Resources.Requests["memory"], MemoryLimit: c.Resources.Limits["memory"],
		Labels: maps.Clone(s.Metadata.Labels), Env: pairs(c.Env),
	}
}
