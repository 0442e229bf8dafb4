// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/test/local/stack"
)

// whole is the root of the repository as a function: all of them in one image.
const whole = "machine-functions"

// coldStart pauses the clock: functions that nothing wakes have no pods. One event wakes them all the same, and a Machine
// comes up from nothing.
func (k knative) coldStart(t *testing.T) {
	y := yard{k.kubectl, k.Stack}
	scan := filepath.Join(k.repo, "triggers", "scan.yaml")
	k.must(t, "delete", "-f", scan)
	t.Cleanup(func() {
		k.must(t, "apply", "-f", scan)
		k.ready(t, "pingsource")
	})
	began := time.Now()
	asleep := []string{"scale-machineset", "link-node", "drain-node", "sweep-instances"}
	await(t, "nothing runs of "+strings.Join(asleep, ", "), func() (running string) {
		for _, name := range asleep {
			running += y.do(t, "get pods -o name"+inMachines+" -l serving.knative.dev/service="+name)
		}
		return running
	})
	k.took("scaled to zero after the clock stopped: "+strings.Join(asleep, " "), began)
	for _, name := range []string{"evaluate-autoscale", "provision-machine", "remediate"} {
		if y.do(t, "get pods -o name"+inMachines+" -l serving.knative.dev/service="+name) == "" {
			t.Errorf("%s sleeps, its min-scale is 1", name)
		}
	}
	began = time.Now()
	y.set(t, "cold", 0, "4c12g30d", "")
	await(t, "the set is seen", func() string {
		if y.get(t, "machineset/cold", ".status.observedGeneration") != "1" {
			return "not yet"
		}
		return ""
	})
	k.took("cold: a new MachineSet has a status", began)
	await(t, "nothing runs of scale-machineset again", func() string {
		return y.do(t, "get pods -o name"+inMachines+" -l serving.knative.dev/service=scale-machineset")
	})
	began = time.Now()
	y.do(t, "scale machineset cold --replicas=1"+inMachines)
	for len(y.machines(t, "cold")) == 0 {
		if time.Since(began) > time.Minute {
			t.Fatal("no Machine after a minute")
		}
		time.Sleep(50 * time.Millisecond)
	}
	k.took("cold: kubectl scale to the Machine's creation", began)
	y.running(t, "cold", 1)
	k.took("cold: kubectl scale to Running", began)
	began = time.Now()
	y.do(t, "scale machineset cold --replicas=2"+inMachines)
	for len(y.machines(t, "cold")) < 2 {
		if time.Since(began) > time.Minute {
			t.Fatal("no second Machine after a minute")
		}
		time.Sleep(20 * time.Millisecond)
	}
	k.took("warm: kubectl scale to the Machine's creation", began)
	y.running(t, "cold", 2)
	k.took("warm: kubectl scale to Running", began)
}

// root deploys the repository itself as one function, which FUNCTION makes link-node's like. It stays so when it is deployed again,
// and nobody outside the cluster reaches it.
func (k knative) root(t *testing.T) {
	began := time.Now()
	k.make(t, "deploy", "FN=machine-functions", "ENV=FUNCTION=link-node")
	k.ready(t, "ksvc/machine-functions")
	k.took("make deploy FN=machine-functions: all functions in one image", began)
	k.make(t, "deploy", "FN=machine-functions")
	k.ready(t, "ksvc/machine-functions")
	if got := k.setting(t, whole, "FUNCTION"); got != "link-node" {
		t.Errorf("deployed again it is %s", got)
	}
	for path, want := range map[string]string{
		`.status.url`:                            "http://machine-functions.openshift-machine-api.svc.cluster.local",
		`.spec.template.spec.serviceAccountName`: "link-node",
		`.spec.template.metadata.annotations.autoscaling\.knative\.dev/max-scale`: "5",
	} {
		if got := strings.TrimSpace(k.must(t, "get", "ksvc", whole, "-n", "openshift-machine-api", "-o", "jsonpath={"+path+"}")); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	k.make(t, "undeploy", "FN="+whole)
}

// release pushes link-node's image as docs/deploying.md says for those who deploy with kubectl. What it names is what the registry has:
// the index of the images of all platforms, by its digest; from there and with the manifest's own settings the function is Ready.
func (k knative) release(t *testing.T) {
	began := time.Now()
	if err := k.command(t.Context(), "tools/func/deploy.sh", "release", "link-node"); err != nil {
		t.Fatal(err)
	}
	host, folder, _ := strings.Cut(os.Getenv("REGISTRY"), "/")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, "http://"+host+"/v2/"+folder+"/link-node/manifests/latest", nil)
	if err != nil {
		t.Fatal(err)
	}
	held, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = held.Body.Close() // of a HEAD
	kind, digest := held.Header.Get("Content-Type"), held.Header.Get("Docker-Content-Digest")
	if kind != "application/vnd.oci.image.index.v1+json" {
		t.Errorf("the registry has %s, %s", kind, held.Status)
	}
	image := os.Getenv("REGISTRY") + "/link-node@" + digest
	for manifest := range strings.SplitSeq(k.must(t, "kustomize", filepath.Join(k.repo, "build", "release")), "\n---\n") {
		if strings.Contains(manifest, "kind: Service\n") && strings.Contains(manifest, "\n  name: link-node\n") {
			k.mustGiven(t, manifest, "apply", "-f", "-")
		}
	}
	if got := k.image(t, "link-node"); got != image {
		t.Errorf("image %s, the registry has %s", got, image)
	}
	await(t, "what serves is that image", func() string {
		revision := k.revisions(t)["link-node"]
		if got := strings.TrimSpace(k.must(t, "get", "revision", revision, "-n", "openshift-machine-api", "-o", "jsonpath={.spec.containers[0].image}")); got != image {
			return revision + ": " + got
		}
		return ""
	})
	k.took("make release, and link-node applied with kubectl from there", began)
}

// senders turns Eventing's flag on and deploys with overlays/oidc, as docs/authentication.md says. Everything works as before, decisions come
// back to the Broker too; who has no token is refused, by the Broker and by a function.
func (k knative) senders(t *testing.T) {
	const overlays = "OVERLAYS=namespaces oidc"
	y := yard{k.kubectl, k.Stack}
	began := time.Now()
	k.must(t, "patch", "configmap", "config-features", "-n", "knative-eventing", "--type=merge", "-p", `{"data":{"authentication-oidc":"enabled"}}`)
	k.make(t, "manifests", overlays)
	await(t, "Eventing takes the EventPolicy", func() string {
		if _, err := k.run("", "apply", "-k", filepath.Join(k.repo, "build", "manifests")); err != nil {
			return err.Error()
		}
		return ""
	})
	k.ready(t, "broker", "trigger", "apiserversource", "pingsource", "eventpolicy")
	k.make(t, "deploy", overlays)
	k.ready(t, "ksvc", "trigger")
	k.took("authentication-oidc on, make deploy OVERLAYS='namespaces oidc': all Ready again", began)
	began = time.Now()
	y.set(t, "proven", 1, "4c12g30d", "")
	y.running(t, "proven", 1)
	k.took("with tokens: a MachineSet to Running", began)
	y.do(t, "delete machineset proven"+inMachines+" --wait=false")
	await(t, "every Machine is gone", func() string { return y.do(t, "get machines"+inMachines+" -o name") })
	for what, code := range map[string]int{
		"a function": k.event(t, "scale-machineset", "openshift-machine-api"),
		"the Broker": k.post(t, "broker-ingress", "knative-eventing", "broker-ingress.knative-eventing.svc.cluster.local", "/openshift-machine-api/machines", "openshift-machine-api"),
	} {
		if code != http.StatusUnauthorized {
			t.Errorf("without a token %s answers %d", what, code)
		}
	}
	if refused := regexp.MustCompile(`.*"knativeerrorcode":"40[13]".*`).FindAllString(y.do(t, "logs --tail=-1 -c user-container -l serving.knative.dev/service=dead-letter"+inMachines), 5); len(refused) > 0 {
		t.Errorf("events of Eventing itself were refused:\n%s", strings.Join(refused, "\n"))
	}
}

// undeploy takes all functions away, and no Machine knows.
func (k knative) undeploy(t *testing.T) { //nolint:thelper // it is the test
	y := yard{k.kubectl, k.Stack}
	y.set(t, "left", 1, "4c12g30d", "")
	y.running(t, "left", 1)
	const machines = "get machines,nodes" + inMachines + ` -o jsonpath={range.items[*]}{.metadata.name}/{.metadata.uid}/{.metadata.deletionTimestamp}/{.status.phase}/{.spec.providerID}{"\n"}{end}`
	before := y.do(t, machines)
	k.make(t, "undeploy")
	if after := y.do(t, machines); after != before {
		t.Errorf("Machines and Nodes before make undeploy:\n%s\nafter:\n%s", before, after)
	}
	if left := strings.TrimSpace(k.must(t, "get", "ksvc", "-n", "openshift-machine-api", "-o", "name")); left != "" {
		t.Errorf("left after make undeploy of %d functions: %s", len(stack.Functions), left)
	}
}

// setting is a variable of a function's Service.
func (k knative) setting(t *testing.T, function, name string) string {
	t.Helper()
	return strings.TrimSpace(k.must(t, "get", "ksvc", function, "-n", "openshift-machine-api", "-o", `jsonpath={.spec.template.spec.containers[0].env[?(@.name=="`+name+`")].value}`))
}

// secondNamespace serves Machines in two namespaces, by the overlay, as docs/deploying.md says. What lies in a third
// one is left alone, and an event about it is refused (DESIGN: MACHINE_NAMESPACES).
func (k knative) secondNamespace(t *testing.T) {
	y := yard{k.kubectl, k.Stack}
	began := time.Now()
	k.make(t, "manifests", "OVERLAYS=namespaces")
	k.must(t, "apply", "-k", filepath.Join(k.repo, "build", "manifests"))
	k.make(t, "deploy", "OVERLAYS=namespaces")
	k.ready(t, "ksvc", "apiserversource", "trigger")
	k.took("make manifests, make deploy, OVERLAYS=namespaces: all Ready again", began)
	for _, name := range stack.Functions {
		if got := k.setting(t, name, "MACHINE_NAMESPACES"); got != "openshift-machine-api,machines-b" {
			t.Errorf("MACHINE_NAMESPACES of %s: %q", name, got)
		}
	}
	began = time.Now()
	for _, namespace := range []string{"machines-b", "default"} {
		text := fmt.Sprintf(setText, "elsewhere", 1, "elsewhere", "elsewhere", "", "elsewhere", "4c12g30d")
		k.mustGiven(t, strings.Replace(text, "namespace: openshift-machine-api", "namespace: "+namespace, 1), "create", "-f", "-")
	}
	await(t, "the Machine in machines-b runs", func() string {
		if got := y.do(t, "get machines -n machines-b -o jsonpath={.items[*].status.phase}"); got != "Running" {
			return "phase " + got
		}
		return ""
	})
	k.took("MACHINE_NAMESPACES: a MachineSet in machines-b to Running", began)
	if status, machines := y.do(t, "get machineset elsewhere -n default -o jsonpath={.status}"), y.do(t, "get machines -n default -o name"); status != "" || machines != "" {
		t.Errorf("a set in a namespace that is not served has status %q, Machines %q", status, machines)
	}
	if code := k.event(t, "scale-machineset", "default"); code != http.StatusBadRequest {
		t.Errorf("an event about a namespace that is not served: %d, want 400", code)
	}
	if code := k.event(t, "scale-machineset", "machines-b"); code/100 != 2 {
		t.Errorf("an event about machines-b: %d", code)
	}
	y.do(t, "delete machinesets --all -n default")
	y.do(t, "delete machinesets --all -n machines-b --wait=false")
	await(t, "every Machine is gone", func() string { return y.do(t, "get machines -n machines-b -o name") })
}

// event posts an event about a MachineSet to a function, through Serving's ingress, as Eventing does.
func (k knative) event(t *testing.T, function, namespace string) int {
	t.Helper()
	return k.post(t, "ingress", "knative-serving", function+".openshift-machine-api.svc.cluster.local", "/", namespace)
}

// post posts an event about a MachineSet to a Kubernetes Service, and returns the answer's code. There is no DNS outside of pods.
func (k knative) post(t *testing.T, service, in, host, path, namespace string) int {
	t.Helper()
	address := strings.TrimSpace(k.must(t, "get", "service", service, "-n", in, "-o", "jsonpath={.spec.clusterIP}"))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	for name, value := range map[string]string{
		"Specversion": "1.0", "Id": "1", "Source": "/test", "Type": "dev.knative.apiserver.ref.update",
		"Apiversion": "machine.openshift.io/v1beta1", "Kind": "MachineSet", "Namespace": namespace, "Name": "elsewhere",
	} {
		r.Header.Set("Ce-"+name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Error(err)
	}
	return answer.StatusCode
}
