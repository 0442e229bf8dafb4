// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"knative.dev/eventing/pkg/apis/feature"
	"knative.dev/pkg/apis"
	"sigs.k8s.io/yaml"

	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	eventingv1alpha1 "knative.dev/eventing/pkg/apis/eventing/v1alpha1"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"
	"knative.dev/eventing/pkg/auth"
	"knative.dev/eventing/pkg/eventfilter"
	"knative.dev/eventing/pkg/eventfilter/subscriptionsapi"
)

// triggersDir is the product's routing.
const triggersDir = "../../triggers"

func manifests(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	objects, err := readKustomization(os.DirFS(triggersDir))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// files returns the objects of files of the repository.
func files(t *testing.T, names ...string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := readFiles(os.DirFS("../.."), names)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// TestManifestsAreValid asks Knative's own types, as its webhooks do on a real cluster: no webhook runs beside the embedded one.
func TestManifestsAreValid(t *testing.T) {
	t.Parallel()
	ctx := apis.WithinCreate(feature.ToContext(t.Context(), feature.Flags{feature.DeliveryTimeout: feature.Enabled, feature.OIDCAuthentication: feature.Enabled}))
	others := files(t, "triggers/overlays/approve-node/source.yaml", "triggers/overlays/approve-node/trigger.yaml", "overlays/shadow/triggers.yaml",
		"overlays/oidc/policy.yaml", "docs/examples/tell-decisions/triggers.yaml")
	for _, o := range knative(append(manifests(t), others...)) {
		typed := map[string]interface {
			apis.Validatable
			apis.Defaultable
		}{
			"Broker":          &eventingv1.Broker{},
			"Trigger":         &eventingv1.Trigger{},
			"ApiServerSource": &sourcesv1.ApiServerSource{},
			"PingSource":      &sourcesv1.PingSource{},
			"EventPolicy":     &eventingv1alpha1.EventPolicy{},
		}[o.GetKind()]
		content, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(content, typed); err != nil {
			t.Errorf("%s: %v", describe(o), err)
			continue
		}
		typed.SetDefaults(ctx)
		if err := typed.Validate(ctx); err != nil {
			t.Errorf("%s: %v", describe(o), err)
		}
		if o.GetKind() == "Trigger" && o.GetLabels()["eventing.knative.dev/broker"] != "machines" {
			t.Errorf("%s: lacks the label that the webhook would set", describe(o))
		}
	}
}

// Where senders prove who they are, the Broker takes replies of the functions' Triggers, every one of them, and of no other account. What a
// Trigger's account is called, Eventing says: a longer name would not be part of it.
func TestOnlyTriggersReply(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, o := range ofKind(append(manifests(t), files(t, "triggers/overlays/approve-node/trigger.yaml")...), "Trigger") {
		account := auth.GetOIDCServiceAccountNameForResource(o.GroupVersionKind(), metav1.ObjectMeta{Name: o.GetName()})
		want = append(want, "system:serviceaccount:"+o.GetNamespace()+":"+account)
	}
	for _, o := range files(t, "overlays/oidc/policy.yaml") {
		from, _, err := unstructured.NestedSlice(o.Object, "spec", "from")
		if err != nil {
			t.Fatal(err)
		}
		for _, sender := range from {
			if sub, ok := sender.(map[string]any)["sub"].(string); ok {
				got = append(got, sub)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("replies are taken of\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestKustomizationIsComplete keeps a file from lying in the folder unapplied.
func TestKustomizationIsComplete(t *testing.T) {
	t.Parallel()
	all, err := readAll(os.DirFS(triggersDir))
	if err != nil {
		t.Fatal(err)
	}
	if listed := manifests(t); len(all) != len(listed)+1 { // the kustomization itself
		t.Errorf("the kustomization lists %d objects, the folder holds %d", len(listed), len(all)-1)
	}
}

func TestTriggersRoute(t *testing.T) {
	t.Parallel()
	const (
		machine    = "machine.openshift.io/v1beta1"
		autoscaler = "autoscaling.openshift.io/v1"
		autoscaled = "autoscaling.openshift.io/v1beta1"
	)
	scans := "drain-node evaluate-autoscale link-node provision-machine remediate scale-machineset"
	tests := []struct{ verb, apiVersion, kind, want string }{
		{"add", machine, "Machine", "drain-node link-node provision-machine remediate scale-machineset"},
		{"update", machine, "Machine", "drain-node link-node provision-machine remediate scale-machineset"},
		{"delete", machine, "Machine", "remediate scale-machineset"},
		{"add", machine, "MachineSet", "provision-machine scale-machineset"},
		{"update", machine, "MachineSet", "provision-machine scale-machineset"},
		{"delete", machine, "MachineSet", ""},
		{"add", machine, "MachineHealthCheck", "remediate"},
		{"update", machine, "MachineHealthCheck", "remediate"},
		{"delete", machine, "MachineHealthCheck", "remediate"},
		{"add", "v1", "Node", "link-node remediate"},
		{"update", "v1", "Node", "drain-node link-node remediate"},
		{"delete", "v1", "Node", "remediate"},
		{"add", autoscaler, "ClusterAutoscaler", "evaluate-autoscale"},
		{"update", autoscaler, "ClusterAutoscaler", "evaluate-autoscale"},
		{"delete", autoscaler, "ClusterAutoscaler", "evaluate-autoscale"},
		{"add", autoscaled, "MachineAutoscaler", "evaluate-autoscale"},
		{"update", autoscaled, "MachineAutoscaler", "evaluate-autoscale"},
		{"delete", autoscaled, "MachineAutoscaler", "evaluate-autoscale"},
		{"add", "cluster.x-k8s.io/v1beta1", "Machine", ""},
		{"fast", "", "", scans},
		{"sweep", "", "", "sweep-instances-scan"},
	}
	filters := triggerFilters(t)
	for _, tt := range tests {
		e := cloudevents.NewEvent()
		if tt.kind == "" {
			e.SetType(sourcesv1.PingSourceEventType)
			e.SetExtension("scan", tt.verb)
		} else {
			e.SetType("dev.knative.apiserver.ref." + tt.verb)
			e.SetExtension("apiversion", tt.apiVersion)
			e.SetExtension("kind", tt.kind)
		}
		var got []string
		for _, name := range slices.Sorted(maps.Keys(filters)) {
			if filters[name].Filter(t.Context(), e) == eventfilter.PassFilter {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s %s %s wakes %q, want %q", tt.verb, tt.apiVersion, tt.kind, got, tt.want)
		}
	}
}

// The Broker asks every Trigger about every event, a request each: a function has one, for objects and clock together. Questions have theirs,
// because they are not asked as often.
func TestOneTriggerEach(t *testing.T) {
	t.Parallel()
	of := map[string][]string{}
	for _, trigger := range append(triggers(t, manifests(t)), triggers(t, files(t, "triggers/overlays/approve-node/trigger.yaml"))...) {
		of[trigger.Spec.Subscriber.Ref.Name] = append(of[trigger.Spec.Subscriber.Ref.Name], trigger.Name)
	}
	for _, function := range slices.Sorted(maps.Keys(of)) {
		names := slices.DeleteFunc(of[function], func(name string) bool { return name == "evaluate-autoscale-simulate" })
		if len(names) != 1 {
			t.Errorf("%s has the Triggers %v, want one", function, names)
		}
	}
	if len(of) < 8 {
		t.Errorf("Triggers wake %d functions only", len(of))
	}
}

// triggerFilters builds every Trigger's filter as the Broker does.
func triggerFilters(t *testing.T) map[string]eventfilter.Filter {
	t.Helper()
	filters := map[string]eventfilter.Filter{}
	for _, trigger := range triggers(t, manifests(t)) {
		filters[trigger.Name] = subscriptionsapi.CreateSubscriptionsAPIFilters(zap.NewNop(), trigger.Spec.Filters)
	}
	return filters
}

// triggers returns the Triggers among objects, as Knative reads them.
func triggers(t *testing.T, objects []*unstructured.Unstructured) (all []eventingv1.Trigger) {
	t.Helper()
	for _, o := range ofKind(objects, "Trigger") {
		content, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		var trigger eventingv1.Trigger
		if err := yaml.Unmarshal(content, &trigger); err != nil {
			t.Fatal(err)
		}
		all = append(all, trigger)
	}
	return all
}
