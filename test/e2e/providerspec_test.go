// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/machine-functions/machine-functions/shared/providerspec"
	"github.com/machine-functions/machine-functions/test/admission"
)

// TestProviderSpecs holds that the policies judge every spec of the table as the rules in Go do, with the same words
// and the same defaults, in a Machine and in the template of a MachineSet (SPEC B72–B79).
func TestProviderSpecs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	k := startCluster(t)
	k.must(t, "apply", "--server-side", "-k", crd)
	k.must(t, "apply", "-f", "../../config/namespace.yaml")
	k.must(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	k.creatable(t, dns)
	k.mustGiven(t, dns, "create", "-f", "-")
	k.creatable(t, infrastructure)
	k.mustGiven(t, infrastructure, "apply", "-f", "-")
	k.mustGiven(t, infrastructure, "apply", "--server-side", "--subresource=status", "-f", "-")
	k.must(t, "apply", "-k", policy)
	k.must(t, "apply", "-k", "../../config/overlays/openshift")
	tables := admission.Tables(t, "../../shared/providerspec/testdata")
	a := policiesInForce(t, k, tables)
	t.Run("rules", func(t *testing.T) {
		for _, table := range tables {
			for _, o := range owners {
				for _, c := range table.Cases {
					t.Run(table.Provider+"/"+o.resource+"/"+c.Name, func(t *testing.T) {
						t.Parallel()
						a.judges(t, o, c)
					})
				}
			}
		}
	})
	t.Run("wrong types", func(t *testing.T) {
		for _, table := range tables {
			t.Run(table.Provider, func(t *testing.T) {
				t.Parallel()
				a.refusesWrongTypes(t, table)
			})
		}
	})
	t.Run("private cluster", func(t *testing.T) { a.noPublicIP(t, k, tables) })
	// A spec that is all defaults would be refused for what is missing beside them.
	k.must(t, "delete", "validatingadmissionpolicybindings", "--all")
	t.Run("defaults", func(t *testing.T) {
		for _, table := range tables {
			for _, o := range owners {
				for _, d := range table.Defaults {
					t.Run(table.Provider+"/"+o.resource+"/"+d.Name, func(t *testing.T) {
						t.Parallel()
						k.eventually(t, "defaults", func() bool { return a.fills(t, o, d) == "" })
						if diff := a.fills(t, o, d); diff != "" {
							t.Error(diff)
						}
					})
				}
			}
		}
	})
}

// infrastructure is what defaults take the region from.
const infrastructure = `
apiVersion: config.openshift.io/v1
kind: Infrastructure
metadata:
  name: cluster
spec: {}
status:
  infrastructureName: cluster-a389-fmxsv
  platform: AWS
  platformStatus: {type: AWS, aws: {region: eu-west-1}}
  controlPlaneTopology: HighlyAvailable
  infrastructureTopology: HighlyAvailable
  cpuPartitioning: None
`

// dns is how OpenShift says whether a cluster publishes a zone.
const dns = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: dnses.config.openshift.io
  annotations: {api-approved.kubernetes.io: "unapproved, part of a test"}
spec:
  group: config.openshift.io
  scope: Cluster
  names: {kind: DNS, listKind: DNSList, plural: dnses, singular: dns}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

// noPublicIP: only a cluster that is known to be private refuses public addresses (SPEC B76). No other rule here needs
// an object beside the spec.
func (a api) noPublicIP(t *testing.T, k kubectl, tables []admission.Table) {
	t.Helper()
	i := slices.IndexFunc(tables, func(t admission.Table) bool { return t.Provider == "azure" })
	spec := json.RawMessage(strings.Replace(string(tables[i].Good), `"publicIP":false`, `"publicIP":true`, 1))
	body := owners[0].of(t, spec, "worker", "")
	if _, _, err := a.create(t, owners[0], body); err != nil {
		t.Fatalf("without a DNS: %v", err)
	}
	k.mustGiven(t, "{apiVersion: config.openshift.io/v1, kind: DNS, metadata: {name: cluster}, spec: {baseDomain: example.com}}", "create", "-f", "-")
	k.eventually(t, "the policy knows the DNS", func() bool {
		_, _, err := a.create(t, owners[0], body)
		return err != nil && strings.Contains(err.Error(), "spec.providerSpec.value.publicIP: Invalid value: true: must be false")
	})
	k.must(t, "patch", "dnses.config.openshift.io", "cluster", "--type=merge", "-p", `{"spec":{"publicZone":{"id":"z"}}}`)
	k.eventually(t, "the policy knows that the cluster is public", func() bool {
		_, _, err := a.create(t, owners[0], body)
		return err == nil
	})
}

// owner is an object that a spec stands in. NAME, ROLE, ARCH and SPEC are replaced.
type owner struct{ resource, path, object string }

var owners = []owner{
	{"machines", "spec.", `
apiVersion: machine.openshift.io/v1beta1
kind: Machine
metadata:
  name: worker-abcde
  namespace: openshift-machine-api
  labels: {machine.openshift.io/cluster-api-cluster: cluster-a389-fmxsv, machine.openshift.io/cluster-api-machine-role: ROLE}
spec:
  metadata: {labels: {kubernetes.io/arch: "ARCH"}}
  providerSpec: {value: SPEC}
`},
	{"machinesets", "spec.template.spec.", `
apiVersion: machine.openshift.io/v1beta1
kind: MachineSet
metadata:
  name: worker
  namespace: openshift-machine-api
spec:
  selector: {matchLabels: {machine.openshift.io/cluster-api-cluster: cluster-a389-fmxsv}}
  template:
    metadata:
      labels: {machine.openshift.io/cluster-api-cluster: cluster-a389-fmxsv, machine.openshift.io/cluster-api-machine-role: ROLE}
    spec:
      metadata: {labels: {kubernetes.io/arch: "ARCH"}}
      providerSpec: {value: SPEC}
`},
}

func (o owner) of(t *testing.T, spec json.RawMessage, role, arch string) []byte {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(strings.NewReplacer("ROLE", role, "ARCH", arch).Replace(o.object)))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.Replace(string(body), `"SPEC"`, string(spec), 1))
}

// api creates objects without keeping them, faster than kubectl.
type api struct{ client *rest.RESTClient }

func newAPI(t *testing.T, kubeconfig string) api {
	t.Helper()
	b, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(b)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = -1, 0
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.WarningHandler = rest.NoWarnings{}
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return api{client}
}

// create returns the object as it would be kept, or the refusal, with what our policies warn of.
func (a api) create(t *testing.T, o owner, body []byte) (object []byte, warnings []string, err error) {
	t.Helper()
	result := a.client.Post().AbsPath("/apis/machine.openshift.io/v1beta1/namespaces/openshift-machine-api", o.resource).
		Param("dryRun", "All").SetHeader("Content-Type", "application/json").Body(body).Do(t.Context())
	for _, w := range result.Warnings() {
		if _, text, ok := strings.Cut(w.Text, ".machine-functions': "); ok {
			warnings = append(warnings, text)
		}
	}
	object, err = result.Raw()
	if err == nil {
		return object, warnings, nil
	}
	var status metav1.Status
	if json.Unmarshal(object, &status) != nil || status.Message == "" {
		t.Fatal(err)
	}
	return nil, warnings, errors.New(status.Message)
}

// policiesInForce waits until every provider's policies answer: the API server takes notice of each in its own time.
func policiesInForce(t *testing.T, k kubectl, tables []admission.Table) api {
	t.Helper()
	a := newAPI(t, k.plane.Kubeconfig)
	for _, table := range tables {
		k.eventually(t, "policies of "+table.Provider+" are in force", func() bool { return a.inForce(t, table) })
	}
	return a
}

// inForce reports whether a provider's policies answer yet, those that refuse and those that warn.
func (a api) inForce(t *testing.T, table admission.Table) bool {
	t.Helper()
	kind := providerspec.KindOf(table.Good)
	_, warnings, err := a.create(t, owners[0], owners[0].of(t, json.RawMessage(`{"kind":"`+kind+`","metadata":5}`), "worker", ""))
	return len(warnings) > 0 && err != nil && strings.Contains(err.Error(), "metadata: Invalid value")
}

// judges holds one case against the policies. They report one error at a time, which must be one that Go finds.
func (a api) judges(t *testing.T, o owner, c admission.Case) {
	t.Helper()
	role := "worker"
	if c.ControlPlane {
		role = "master"
	}
	_, warnings, err := a.create(t, o, o.of(t, c.Spec, role, ""))
	want := make([]string, 0, len(c.Warnings))
	for _, w := range c.Warnings {
		want = append(want, o.path+w)
	}
	missing, more := admission.Match(want, warnings)
	for _, m := range missing {
		t.Errorf("does not warn %q", m)
	}
	for _, m := range more {
		t.Errorf("warns %q", m)
	}
	if len(c.Errors) == 0 {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if err == nil {
		t.Fatalf("is not refused, want %q", c.Errors)
	}
	for _, e := range c.Errors {
		if strings.Contains(err.Error(), "denied request: "+o.path+e) {
			return
		}
	}
	t.Errorf("is refused with\n%v\nwant one of %q", err, c.Errors)
}

// fills returns how the defaults that a spec gets differ from those it should get.
func (a api) fills(t *testing.T, o owner, d admission.Default) string {
	t.Helper()
	object, _, err := a.create(t, o, o.of(t, d.Spec, "worker", d.Arch))
	if err != nil {
		return err.Error()
	}
	var got struct {
		Spec struct {
			ProviderSpec struct{ Value any }
			Template     struct {
				Spec struct{ ProviderSpec struct{ Value any } }
			}
		}
	}
	var want any
	if err := errors.Join(json.Unmarshal(object, &got), json.Unmarshal(d.Want, &want)); err != nil {
		t.Fatal(err)
	}
	value := got.Spec.ProviderSpec.Value
	if value == nil {
		value = got.Spec.Template.Spec.ProviderSpec.Value
	}
	if diff := cmp.Diff(want, value); diff != "" {
		return "(-want +got):\n" + diff
	}
	return ""
}
