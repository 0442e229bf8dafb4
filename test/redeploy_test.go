// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestMain plays the programs that deploy.sh calls: kubectl, which prints the Service in LIVE_SERVICE by the template that it is
// given and fails without one; func, where PUSHES says so.
func TestMain(m *testing.M) {
	var err error
	if live, ok := os.LookupEnv("LIVE_SERVICE"); ok {
		err = kubectlGet(live)
	} else if os.Getenv("PUSHES") != "" {
		err = funcBuild(os.Args[1:])
	} else {
		os.Exit(m.Run())
	}
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

func kubectlGet(live string) error {
	text, err := os.ReadFile(live)
	if err != nil || len(text) == 0 {
		return err // --ignore-not-found: nothing is printed
	}
	var service any
	if err := yaml.Unmarshal(text, &service); err != nil {
		return err
	}
	form, _ := strings.CutPrefix(os.Args[len(os.Args)-1], "go-template=")
	parsed, err := template.New("").Parse(form)
	if err != nil {
		return err
	}
	return parsed.Execute(os.Stdout, service)
}

// deployed stages a function and deploys it with a func that only records its arguments, over a live Service. It returns what
// func was told of environment and account, sorted, and what deploy.sh said; no arguments if func was not called. However it ends, it
// leaves no temporary file: the settings of a Service may hold credentials.
func deployed(t *testing.T, name, live string, env ...string) (envs []string, called bool, said string) {
	t.Helper()
	dir := t.TempDir()
	bin, temp := filepath.Join(dir, "bin"), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := func(name, text string) string {
		path := filepath.Join(bin, name)
		if err := os.MkdirAll(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/bash\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	service := filepath.Join(dir, "service.yaml")
	if live != "unreachable" {
		if err := os.WriteFile(service, []byte(live), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script("kubectl", `[ "$1" = get ] || exec $REAL "$@"
LIVE_SERVICE=`+service+" exec "+self+` "$@"`)
	calls := filepath.Join(dir, "calls")
	cmd := exec.CommandContext(t.Context(), "tools/func/deploy.sh", "deploy", name)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "KUBECTL=", "STAGE="+filepath.Join(dir, "stage"), "FUNC_REGISTRY=registry.example.com/f", "PATH="+bin+":"+os.Getenv("PATH"),
		"FUNC_CLI="+script("func", `printf '%s\0' "$@" >`+calls))
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
	recorded, missing := os.ReadFile(calls)
	if (err == nil) != (missing == nil) {
		t.Fatalf("deploy.sh: %v, func: %v\n%s", err, missing, out)
	}
	args := strings.Split(string(recorded), "\x00")
	for i, arg := range args {
		switch arg {
		case "--env":
			envs = append(envs, args[i+1])
		case "--service-account":
			envs = append(envs, arg+" "+args[i+1])
		}
	}
	slices.Sort(envs)
	return envs, missing == nil, string(out)
}

// Images are built with the Go that go.mod names, by whatever Go is there; whoever says which one gets it.
func TestImagesAreBuiltWithThePinnedGo(t *testing.T) {
	t.Parallel()
	_, pinned, found := strings.Cut(text(t, "../go.mod"), "\ntoolchain ")
	if !found {
		t.Fatal("go.mod names no toolchain")
	}
	pinned = strings.Fields(pinned)[0]
	for given, want := range map[string]string{"": pinned + "+auto", "local": "local"} {
		told := filepath.Join(t.TempDir(), "told")
		cli := filepath.Join(t.TempDir(), "func")
		if err := os.WriteFile(cli, []byte("#!/bin/bash\nprintf %s \"$GOTOOLCHAIN\" >"+told), 0o755); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
		run(t, "..", []string{"GOTOOLCHAIN=" + given, "FUNC_CLI=" + cli, "STAGE=" + t.TempDir()}, "tools/func/deploy.sh", "build", "link-node")
		if got := text(t, told); got != want {
			t.Errorf("GOTOOLCHAIN=%q: func builds with %q, want %q", given, got, want)
		}
	}
}

// What goes into an image is what go.sum says: func builds in a module of its own, whose go.sum it writes anew.
func TestImagesAreBuiltOfWhatGoSumSays(t *testing.T) {
	t.Parallel()
	stage, called := t.TempDir(), filepath.Join(t.TempDir(), "called")
	cli := filepath.Join(t.TempDir(), "func")
	if err := os.WriteFile(cli, []byte("#!/bin/bash\ntouch "+called), 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	push := func() (string, bool) {
		cmd := exec.CommandContext(t.Context(), "tools/func/deploy.sh", "push", "link-node")
		cmd.Dir, cmd.Env = "..", append(os.Environ(), "FUNC_CLI="+cli, "STAGE="+stage, "FUNC_REGISTRY=registry.example.com/f", "KUBECTL=true")
		out, err := cmd.CombinedOutput()
		return string(out), err == nil
	}
	root := run(t, "..", []string{"STAGE=" + stage}, "tools/func/deploy.sh", "stage", "link-node")
	if out, done := push(); !done {
		t.Fatal(out)
	}
	if err := os.Remove(called); err != nil {
		t.Fatalf("func was not called: %v", err)
	}
	sums := filepath.Join(root, "go.sum")
	other := regexp.MustCompile(`(?m)^(k8s\.io/api v\S+ h1:).`).ReplaceAllString(text(t, sums), "${1}_")
	if err := os.WriteFile(sums, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	out, done := push()
	if _, err := os.Stat(called); done || err == nil || !strings.Contains(out, "k8s.io/api") {
		t.Errorf("pushed %t, func called %t:\n%s", done, err == nil, out)
	}
}

// container is a Service with one, as the API server gives it.
func container(t *testing.T, c map[string]any, volumes ...any) string {
	t.Helper()
	pod := map[string]any{"containers": []any{c}}
	if len(volumes) > 0 {
		pod["volumes"] = volumes
	}
	text, err := json.Marshal(map[string]any{"kind": "Service", "spec": map[string]any{"template": map[string]any{"spec": pod}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// func replaces a Service's environment by that of func.yaml. A Service that serves two namespaces and asks its senders who they
// are does so after the next deployment too: without MACHINE_NAMESPACES the Machines of the second namespace would be nobody's
// business, without OIDC_AUDIENCE nobody would be asked.
func TestDeployKeepsSettings(t *testing.T) {
	t.Parallel()
	variable := func(name, value string) any { return map[string]any{"name": name, "value": value} }
	from := func(name, kind string) any {
		return map[string]any{"name": name, "valueFrom": map[string]any{kind: map[string]any{"name": "where", "key": "what"}}}
	}
	live := func(env ...any) string { return container(t, map[string]any{"image": "x", "env": env}) }
	const namespaces = "MACHINE_NAMESPACES=openshift-machine-api,machines-b"
	served := variable("MACHINE_NAMESPACES", "openshift-machine-api,machines-b")
	for name, c := range map[string]struct {
		live, env, refused string
		want               []string
	}{
		"no Service yet":                    {},
		"a first deployment, told":          {env: namespaces, want: []string{namespaces}},
		"what an overlay set stays":         {live: live(served, variable("OIDC_AUDIENCE", "a"), variable("OIDC_SUBJECTS", "b:*,c")), want: []string{namespaces, "OIDC_AUDIENCE=a", "OIDC_SUBJECTS=b:*,c"}},
		"what func.yaml says is its own":    {live: live(variable("GOMEMLIMIT", "1MiB"), variable("BUILT", "2026"), variable("ADDRESS", "0.0.0.0"), served), want: []string{namespaces}},
		"any value":                         {live: live(variable("EMPTY", ""), map[string]any{"name": "BARE"}, variable("LINES", "a = b\n\"c\"- $HOME")), want: []string{"BARE=", "EMPTY=", "LINES=a = b\n\"c\"- $HOME"}},
		"from Secrets and ConfigMaps":       {live: live(from("S", "secretKeyRef"), from("C", "configMapKeyRef")), want: []string{"C={{ configMap:where:what }}", "S={{ secret:where:what }}"}},
		"ENV is the last word":              {live: live(served, variable("DRY_RUN", "true")), env: "MACHINE_NAMESPACES=c DRY_RUN- NEW=1 ABSENT-", want: []string{"MACHINE_NAMESPACES=c", "NEW=1"}},
		"ENV takes away what func.yaml has": {env: "GOMEMLIMIT-", want: []string{"GOMEMLIMIT-"}},
		"ENV that says nothing":             {env: "DRY_RUN", refused: "neither NAME=VALUE nor NAME-"},
		"from a field":                      {live: live(from("IP", "fieldRef")), refused: "ENV=IP- gives it up"},
		"from a field, given up":            {live: live(from("IP", "fieldRef")), env: "IP-"},
		"envFrom":                           {live: container(t, map[string]any{"envFrom": []any{map[string]any{}}}), refused: "envFrom, which func would take away"},
		"volumes":                           {live: container(t, map[string]any{}, map[string]any{"name": "ca"}), refused: "volumes, which func would take away"},
		"a cluster that does not answer":    {live: "unreachable", refused: "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, called, said := deployed(t, "link-node", c.live, "ENV="+c.env)
			if diff := cmp.Diff(c.want, got); diff != "" || called != (c.refused == "") || !strings.Contains(said, c.refused) {
				t.Errorf("-want +got:\n%s\nfunc was called: %v\n%s", diff, called, said)
			}
		})
	}
}

// A deployment by func that is told of overlays sets what they say, whatever the Service has; ENV is above both.
func TestOverlaysAreSettings(t *testing.T) {
	t.Parallel()
	live := container(t, map[string]any{"env": []any{map[string]any{"name": "OIDC_AUDIENCE", "value": "another"}, map[string]any{"name": "DRY_RUN", "value": "true"}}})
	got, called, said := deployed(t, "link-node", live, "REAL="+kubectl(t), "OVERLAYS=oidc namespaces", "ENV=OIDC_SUBJECTS=mine")
	want := []string{"DRY_RUN=true", "MACHINE_NAMESPACES=openshift-machine-api,machines-b", "OIDC_AUDIENCE=machine-functions/link-node", "OIDC_SUBJECTS=mine"}
	if diff := cmp.Diff(want, got); diff != "" || !called {
		t.Errorf("-want +got:\n%s\nfunc was called: %v\n%s", diff, called, said)
	}
}

// undeploy takes away everything that deploy may have put there: all functions, optional ones too, and the root.
func TestUndeployTakesTheRootToo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deleted := filepath.Join(dir, "deleted")
	cli := filepath.Join(dir, "func")
	if err := os.WriteFile(cli, []byte("#!/bin/bash\n[ \"$1\" = delete ] && echo \"$2\" >>"+deleted+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "..", []string{"FUNC_CLI=" + cli}, "tools/func/deploy.sh", "undeploy")
	got := strings.Fields(text(t, deleted))
	slices.Sort(got)
	house := load(t, os.DirFS(".."))
	want := append(house.functions(), sink, whole)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +deleted:\n%s", diff)
	}
}

// A function that is not there is gone. Where nobody could ask, whatever else was not found, undeploy fails.
func TestUndeployKnowsWhatIsGone(t *testing.T) {
	t.Parallel()
	for said, gone := range map[string]bool{
		`Error: no remover handled link-node in openshift-machine-api`: true,
		`Error: services.serving.knative.dev "link-node" not found`:    true,
		`Error: getting credentials: exec: executable aws not found`:   false,
	} {
		cli := filepath.Join(t.TempDir(), "func")
		if err := os.WriteFile(cli, []byte("#!/bin/bash\necho '"+said+"' >&2\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "tools/func/deploy.sh", "undeploy", "link-node")
		cmd.Dir, cmd.Env = "..", append(os.Environ(), "FUNC_CLI="+cli)
		if out, err := cmd.CombinedOutput(); (err == nil) != gone {
			t.Errorf("func said %s; undeploy: %v\n%s", said, err, out)
		}
	}
}

// The root is the function that FUNCTION names, under the account of that: chosen once, it stays through later deployments, and takes
// what overlays say of that function.
func TestRootStaysTheFunctionThatItIs(t *testing.T) {
	t.Parallel()
	variable := func(name, value string) any { return map[string]any{"name": name, "value": value} }
	live := func(env ...any) string { return container(t, map[string]any{"env": env}) }
	for name, c := range map[string]struct {
		live, env, overlays, refused string
		want                         []string
	}{
		"a first deployment":    {want: []string{"--service-account provision-machine"}},
		"chosen":                {env: "FUNCTION=link-node", want: []string{"--service-account link-node", "FUNCTION=link-node"}},
		"chosen before":         {live: live(variable("FUNCTION", "remediate")), want: []string{"--service-account remediate", "FUNCTION=remediate"}},
		"chosen anew":           {live: live(variable("FUNCTION", "remediate")), env: "FUNCTION=link-node", want: []string{"--service-account link-node", "FUNCTION=link-node"}},
		"given up":              {live: live(variable("FUNCTION", "remediate")), env: "FUNCTION-", want: []string{"--service-account provision-machine"}},
		"what there is not":     {env: "FUNCTION=link", refused: "there is no function link"},
		"other settings":        {live: live(variable("DRY_RUN", "true"), variable("GOMEMLIMIT", "1MiB")), want: []string{"--service-account provision-machine", "DRY_RUN=true"}},
		"what overlays say":     {overlays: "oidc", want: []string{"--service-account provision-machine", "OIDC_AUDIENCE=machine-functions/provision-machine"}},
		"of the one chosen":     {overlays: "oidc", env: "FUNCTION=link-node", want: []string{"--service-account link-node", "FUNCTION=link-node", "OIDC_AUDIENCE=machine-functions/link-node"}},
		"of the one that it is": {overlays: "oidc", live: live(variable("FUNCTION", "remediate")), want: []string{"--service-account remediate", "FUNCTION=remediate", "OIDC_AUDIENCE=machine-functions/remediate"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := []string{"ENV=" + c.env, "OVERLAYS=" + c.overlays}
			if c.overlays != "" {
				env = append(env, "REAL="+kubectl(t))
			}
			got, called, said := deployed(t, whole, c.live, env...)
			got = slices.DeleteFunc(got, func(one string) bool { return strings.HasPrefix(one, "OIDC_SUBJECTS=") }) // long
			if diff := cmp.Diff(c.want, got); diff != "" || called != (c.refused == "") || !strings.Contains(said, c.refused) {
				t.Errorf("-want +got:\n%s\nfunc was called: %v\n%s", diff, called, said)
			}
		})
	}
}

// What could not be staged is not deployed: func would take what an earlier stage left there.
func TestDeployEndsWhereStagingFails(t *testing.T) {
	t.Parallel()
	root := checkout(t, "functions") // and no shared
	for _, verb := range []string{"deploy", "build"} {
		cmd := exec.CommandContext(t.Context(), "tools/func/deploy.sh", verb, "link-node")
		cmd.Dir, cmd.Env = root, append(os.Environ(), "FUNC_REGISTRY=registry.example.com/f", "KUBECTL=true", "FUNC_CLI=true")
		if out, err := cmd.CombinedOutput(); err == nil || strings.Contains(string(out), "deploy: "+verb+" link-node") {
			t.Errorf("%s: %v\n%s", verb, err, out)
		}
	}
}
