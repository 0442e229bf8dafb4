// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/test/local/controlplane"
	"github.com/machine-functions/machine-functions/test/local/stack"
	"github.com/machine-functions/machine-functions/test/local/story"
	"github.com/machine-functions/machine-functions/test/replay"
)

// The stories on real Knative Serving and Eventing, on a real node: functions deployed by make deploy, killed, swapped in
// flight, scaled to zero. test/node/run.sh brings the node up and runs this test on it (make e2e-knative).
func TestKnative(t *testing.T) {
	if os.Getenv("CONTROL_PLANE_DIR") == "" {
		t.Skip("needs a node with real Knative: make e2e-knative")
	}
	k := newKnative(t)
	told := func(name, what string, play func(*testing.T)) { // chapters that report nothing themselves
		began := time.Now()
		if t.Run(name, play) {
			k.took(what, began)
		}
	}
	t.Run("deploy", k.deploy)
	t.Run("walk-through, with pods killed and link-node swapped", k.walkThrough)
	t.Run("scaled to zero", k.coldStart)
	k.empty(t)
	t.Run("a shadow", k.shadow)
	k.empty(t)
	told("healing", "the stories of healing", func(t *testing.T) { heal(t, k.Stack) }) //nolint:thelper // it is the test
	k.empty(t)
	told("lives of Machines", "the lives of Machines", func(t *testing.T) { live(t, yard{kubectl{plane: k.ControlPlane}, k.Stack}) }) //nolint:thelper // it is the test
	k.empty(t)
	t.Run("a second namespace", k.secondNamespace)
	t.Run("senders prove who they are", k.senders)
	t.Run("a release", k.release)
	t.Run("the root", k.root)
	told("undeploy", "make undeploy: no function is left, and no Machine has changed", k.undeploy)
	t.Run("rights", k.rights)
}

// knative is a node with Knative where the API of Machines is installed.
type knative struct {
	kubectl
	*stack.Stack
	repo string
	logs string
}

func newKnative(t *testing.T) knative {
	t.Helper()
	plane, err := controlplane.Attach(os.Getenv("CONTROL_PLANE"), os.Getenv("CONTROL_PLANE_DIR"), "machine-functions.dev/real!=true")
	if err != nil {
		t.Fatal(err)
	}
	logs := os.Getenv("NODE_LOGS")
	s, err := stack.Attach(t.Context(), stack.Options{Root: repository(t), Dir: filepath.Join(logs, "system"), Progress: os.Stderr}, plane)
	if err != nil {
		t.Fatal(err)
	}
	k := knative{kubectl: kubectl{plane: plane}, Stack: s, repo: repository(t), logs: logs}
	t.Cleanup(func() {
		k.keepLogs(t)
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// keepLogs copies what the functions said and how their objects ended to where the node's logs are.
func (k knative) keepLogs(t *testing.T) {
	t.Helper()
	for name, args := range map[string][]string{
		"objects.txt": {"get", "ksvc,revisions,brokers,triggers,apiserversources,pingsources,machines,machinesets,pods", "-n", "openshift-machine-api", "-o", "wide"},
		"pods.txt":    {"describe", "pods", "-n", "openshift-machine-api"},
		"events.txt":  {"get", "events", "-A", "--sort-by=.lastTimestamp"},
		"all.txt":     {"get", "pods", "-A", "-o", "wide"},
	} {
		out, err := k.run("", args...)
		if err != nil {
			out += err.Error()
		}
		if err := os.WriteFile(filepath.Join(k.logs, name), []byte(out), 0o600); err != nil {
			t.Error(err)
		}
	}
	for _, name := range stack.Functions {
		out, _ := k.run("", "logs", "-n", "openshift-machine-api", "-l", "serving.knative.dev/service="+name, "-c", "user-container", "--tail=-1") // what there is
		if err := os.WriteFile(filepath.Join(k.logs, name+".log"), []byte(out), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// took reports how long something took; the report of a run consists of these lines.
func (k knative) took(what string, began time.Time) {
	k.report("%-70s %6.1f s", what, time.Since(began).Seconds())
}

// report says a line on standard error and in the file that REPORT names.
func (k knative) report(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	fmt.Fprintln(os.Stderr, "==", line)
	if path := os.Getenv("REPORT"); path != "" {
		if file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
			_, _ = fmt.Fprintln(file, line)
			_ = file.Close()
		}
	}
}

// make runs make in the repository.
func (k knative) make(t *testing.T, args ...string) {
	t.Helper()
	if err := k.command(t.Context(), "make", args...); err != nil {
		t.Fatal(err)
	}
}

// command runs a program in the repository. There is no way out of this node: what go needs it has.
func (k knative) command(ctx context.Context, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = k.repo
	c.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod", "FUNC_GO="+filepath.Join(k.repo, "test", "node", "native-go.sh"), "FUNC_REGISTRY="+os.Getenv("REGISTRY"),
		"KUBECTL="+k.ControlPlane.Binary+" kubectl")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out.Bytes())
	}
	return nil
}

// deploy deploys every function as README says, then the triggers, and waits until all of it is Ready.
func (k knative) deploy(t *testing.T) {
	began := time.Now()
	before := k.status(t)
	k.make(t, "deploy")
	if after := k.status(t); after != before {
		t.Errorf("make deploy changed files:\n%s", after)
	}
	k.took(fmt.Sprintf("make deploy: %d functions built, pushed and Ready", len(stack.Functions)), began)
	began = time.Now()
	k.must(t, "apply", "-k", filepath.Join(k.repo, "triggers"))
	k.ready(t, "broker", "trigger", "apiserversource", "pingsource", "ksvc")
	k.took("kubectl apply -k triggers: Broker, sources and Triggers Ready", began)
	for _, name := range stack.Functions {
		k.report("  %-20s %s", name, k.image(t, name))
	}
}

// status is what git says of the repository.
func (k knative) status(t *testing.T) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "status", "--porcelain")
	c.Dir = k.repo
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// ready waits until every object of these kinds is Ready.
func (k knative) ready(t *testing.T, kinds ...string) {
	t.Helper()
	for _, kind := range kinds {
		await(t, "every "+kind+" is Ready", func() string {
			if _, err := k.run("", "wait", "-n", "openshift-machine-api", "--for=condition=Ready", kind, "--all", "--timeout=10s"); err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

func (k knative) image(t *testing.T, function string) string {
	t.Helper()
	return strings.TrimSpace(k.must(t, "get", "ksvc", function, "-n", "openshift-machine-api", "-o", "jsonpath={.spec.template.spec.containers[0].image}"))
}

// revisions are the revisions of all functions: name and image.
func (k knative) revisions(t *testing.T) map[string]string {
	t.Helper()
	latest := map[string]string{}
	for line := range strings.Lines(k.must(t, "get", "ksvc", "-n", "openshift-machine-api", "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.latestReadyRevisionName}{"\n"}{end}`)) {
		name, revision, _ := strings.Cut(strings.TrimSpace(line), " ")
		latest[name] = revision
	}
	return latest
}

// walkThrough is the story of the OpenStack walk-through. Before one chapter every function's processes are killed; while
// fifty pods wait, another link-node is deployed. In the end no instance was made that the story does not need.
func (k knative) walkThrough(t *testing.T) {
	began, before := time.Now(), k.revisions(t)
	var swap sync.WaitGroup
	var swapped error
	killed := 0
	play(t.Context(), t, k.Stack, story.Story{Unhurried: true, Between: func(chapter string) error {
		switch {
		case strings.HasPrefix(chapter, "The hand-made worker"), strings.HasPrefix(chapter, "The Job is done"):
			for _, name := range stack.Functions {
				killed += kill(name)
			}
		case strings.HasPrefix(chapter, "Fifty pods"):
			swap.Go(func() { swapped = k.swap(t.Context()) })
		}
		return nil
	}})
	swap.Wait()
	if swapped != nil {
		t.Error(swapped)
	}
	k.took("the walk-through", began)
	k.report("  processes of functions killed with SIGKILL meanwhile: %d", killed)
	if killed < 2*5 {
		t.Errorf("only %d processes were killed", killed)
	}
	after := k.revisions(t)
	for name, revision := range after {
		if changed := revision != before[name]; changed != (name == "link-node") {
			t.Errorf("revision of %s: %s, was %s", name, revision, before[name])
		}
	}
	k.report("  swapped in flight: %s → %s; no other revision changed", before["link-node"], after["link-node"])
	checkHistory(t, k.Stack)
	checkQuiet(t, k.Stack)
}

// swap deploys another link-node: the same decision in a program that differs.
func (k knative) swap(ctx context.Context) error {
	began := time.Now()
	if err := k.command(ctx, "tools/func/deploy.sh", "stage", "link-node"); err != nil {
		return err
	}
	root := filepath.Join(k.repo, "build", "functions", "link-node")
	another := "package function\n\n// Release tells this build from others.\nvar Release = \"" + began.Format(time.RFC3339) + "\"\n\nfunc init() { println(\"release\", Release) }\n"
	if err := os.WriteFile(filepath.Join(root, "release.go"), []byte(another), 0o600); err != nil {
		return err
	}
	if err := k.command(ctx, "tools/func/deploy.sh", "push", "link-node"); err != nil {
		return err
	}
	k.took("another link-node deployed while fifty pods wait", began)
	return nil
}

// foreign are groups of objects that are not ours: the remediation templates of the healing story, headroom.
var foreign = []string{"example.com", "autoscaling.x-k8s.io"}

// rights reads what the API server wrote down: no function ever asked for what config/rbac does not let it, but for objects
// of somebody else's kind, which a deployment grants or does not. The calls are written to calls.txt beside the log, from
// where test/replay/testdata has them.
func (k knative) rights(t *testing.T) {
	calls, refused, err := replay.ReadAudit(filepath.Join(k.logs, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	if len(calls) < 50 {
		t.Errorf("only %d kinds of calls were recorded", len(calls))
	}
	for c := range refused {
		if !slices.ContainsFunc(foreign, func(group string) bool { return strings.Contains(c.Group, group) }) {
			t.Errorf("refused: %s", c)
		}
	}
	var lines []string
	for c := range calls {
		if slices.Contains(stack.Functions, c.Function) && !refused[c] {
			lines = append(lines, c.String())
		}
	}
	slices.Sort(lines)
	if err := os.WriteFile(filepath.Join(k.logs, "calls.txt"), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Error(err)
	}
	k.report("%d kinds of calls to the API server by functions, none refused; %d refused about kinds of others that nobody granted", len(lines), len(refused))
}

// empty takes away what a story left, so that the next one finds what it expects.
func (k knative) empty(t *testing.T) {
	t.Helper()
	y := yard{k.kubectl, k.Stack}
	for _, kinds := range []string{"clusterautoscalers", "machineautoscalers", "mhc", "legacymhc", "machinesets", "machines"} {
		y.do(t, "delete "+kinds+" --all --wait=false"+inMachines)
	}
	await(t, "every Machine is gone", func() string { return y.do(t, "get machines -o name"+inMachines) })
	y.do(t, "delete nodes --all")
	y.do(t, "delete namespace --ignore-not-found work-queue openshift-console limited")
	y.do(t, "delete configmaps -n kubemark --all")
}
