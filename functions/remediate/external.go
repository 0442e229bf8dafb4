// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// external is remediation by somebody else: a request, made from a template, is an object of the template's kind
// without the word Template, named like the Machine that it is about and owned by it (SPEC B58). The zero external is
// none.
type external struct {
	template, request plan.Kind
	gvk               schema.GroupVersionKind // of the request
	name              string                  // of the template
}

func externalOf(h *machine.MachineHealthCheck) (external, error) {
	ref := h.Spec.RemediationTemplate
	if ref == nil {
		return external{}, nil
	}
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	e := external{name: ref.Name, gvk: gvk}
	var isTemplate bool
	if e.gvk.Kind, isTemplate = strings.CutSuffix(gvk.Kind, "Template"); !isTemplate {
		return external{}, fmt.Errorf("kind %q does not end with Template", ref.Kind)
	}
	e.template, _ = plan.KindFor(gvk)
	e.request, _ = plan.KindFor(e.gvk)
	switch {
	case !plan.Foreign(e.template) || !plan.Foreign(e.request):
		return external{}, fmt.Errorf("%s %s is not a kind of template", ref.APIVersion, ref.Kind)
	case ref.Name == "":
		return external{}, errors.New("no name")
	case ref.Namespace != "" && ref.Namespace != h.Namespace:
		return external{}, fmt.Errorf("namespace %q is not that of the check", ref.Namespace)
	}
	return e, nil
}

// externalReads asks for the template of a check and for all requests in its namespace.
func externalReads(h *machine.MachineHealthCheck) []snapshot.Query {
	e, err := externalOf(h)
	if err != nil || e.name == "" {
		return nil
	}
	return []snapshot.Query{snapshot.One(e.template, h.Namespace, e.name), {Kind: e.request, Namespace: h.Namespace}}
}

// request returns the request to remediate m, or nil. An object of its name that is not about m is none.
func (c *check) request(m *machine.Machine) *unstructured.Unstructured {
	if c.external.name == "" {
		return nil
	}
	r := c.ForeignObject(c.external.request, m.Namespace, m.Name)
	if r == nil || !about(r, m) {
		return nil
	}
	return r
}

// about reports whether a request is about m.
func about(r *unstructured.Unstructured, m *machine.Machine) bool {
	return slices.ContainsFunc(r.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == m.UID })
}

// form returns what a request is made from. Its error says what is wrong with the template.
func (c *check) form() (map[string]any, error) {
	t := c.ForeignObject(c.external.template, c.h.Namespace, c.external.name)
	if t == nil {
		return nil, fmt.Errorf("%s is not there, or may not be read", plan.Name(c.external.template, c.h.Namespace, c.external.name))
	}
	form, ok, err := unstructured.NestedMap(t.Object, "spec", "template") // a copy
	if err != nil || !ok {
		return nil, fmt.Errorf("%s has no spec.template", plan.NameOf(t))
	}
	return form, nil
}

// ask creates the request to remediate t's Machine.
func (c *check) ask(t *target, claim string) (plan.Action, error) {
	form, err := c.form()
	if err != nil {
		return nil, err
	}
	labels, _, _ := unstructured.NestedStringMap(form, "metadata", "labels") // what is malformed is left out
	annotations, _, _ := unstructured.NestedStringMap(form, "metadata", "annotations")
	r := &unstructured.Unstructured{Object: form}
	delete(form, "metadata")
	r.SetGroupVersionKind(c.external.gvk)
	r.SetNamespace(t.m.Namespace)
	r.SetName(t.m.Name)
	r.SetLabels(labels)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[machine.AnnotationRemediatedBy] = claim
	r.SetAnnotations(annotations)
	owner, _ := plan.ResourceOf("Machine")
	r.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: owner.Group.String(), Kind: string(owner.Kind), Name: t.m.Name, UID: t.m.UID,
	}})
	return plan.Create{Object: r, Why: t.message}, nil
}

// withdraw deletes the requests of the named check that no check wants any more: about Machines that are well again, that people do not want
// remediated, or that none of these checks looks at. Where the API server refuses that, the Machine tells: somebody else goes on remediating it.
func (d *decision) withdraw(by string) (all []plan.Sequence, left withdrawal) {
	for _, r := range d.Foreign {
		m := d.Machine(r.GetNamespace(), r.GetName())
		if claimantOf(r) != by || m == nil || !about(r, m) || r.GetDeletionTimestamp() != nil || d.wants(r, m, by) {
			continue
		}
		left.wanted = true
		a := plan.Delete{Object: r, Why: "machine/" + m.Name + " is not to be remediated any more"}
		if why, refused := d.Refused(a); refused {
			left.refused = plan.NameOf(r) + " cannot be deleted, though " + a.Why + ": " + why
			all = append(all, plan.Sequence{Notes: []plan.Note{plan.Warning(m, reasonStays, left.refused)}})
			continue
		}
		all = append(all, plan.Sequence{Do: []plan.Action{a}})
	}
	return all, left
}

// withdrawal is what is left to be withdrawn of a check's requests.
type withdrawal struct {
	wanted  bool
	refused string // why not the last of them, if that was tried
}

// reasonStays is told of a request that nobody wants any more and that is there.
const reasonStays = "ExternalRemediationRequestDeletionFailed"

// wants reports whether the named check wants its request r about m to stay, or, where that check is gone, another one that would ask the same.
func (d *decision) wants(r *unstructured.Unstructured, m *machine.Machine, by string) bool {
	gone := d.named(by) == nil
	return slices.ContainsFunc(d.checks, func(c *check) bool {
		t := c.target(m.UID)
		if t == nil || c.name() != by && !gone || c.request(m) != r {
			return false
		}
		sick := t.reason != "" && (t.excused(c.Now) == "" || machine.IsPaused(m))
		return sick || t.recovering || m.DeletionTimestamp != nil
	})
}

// bereft returns the checks that made requests and are not there any more.
func (d *decision) bereft() []string {
	gone := map[string]bool{}
	for _, r := range d.Foreign {
		if by := claimantOf(r); by != "" && d.named(by) == nil {
			gone[by] = true
		}
	}
	return slices.Sorted(maps.Keys(gone))
}

// named returns the check that claims speak of by this name, or nil.
func (d *decision) named(name string) *check {
	all := slices.Concat(d.checks, d.idle)
	if i := slices.IndexFunc(all, func(c *check) bool { return c.name() == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// claimantOf returns the check that claimed a Machine, or made a request; "" if none did.
func claimantOf(o metav1.Object) string {
	by, _, _ := strings.Cut(o.GetAnnotations()[machine.AnnotationRemediatedBy], " ")
	return by
}

// available returns the two conditions of a check that has a template (B58). Whether a request could be made, or withdrawn, is known
// only when that was tried: until then what stands there stands.
func (c *check) available() []machine.Condition {
	if c.external.name == "" {
		return nil
	}
	template := machine.True(machinev1beta1.ExternalRemediationTemplateAvailable, "", "")
	if _, err := c.form(); err != nil {
		template = machine.False(template.Type, machinev1beta1.ConditionSeverityError, machinev1beta1.ExternalRemediationTemplateNotFound, err.Error())
	}
	conditions := []machine.Condition{template}
	stood := machine.FindCondition(c.h.Status.Conditions, machinev1beta1.ExternalRemediationRequestAvailable)
	switch {
	case c.left.refused != "":
		return append(conditions, machine.True(machinev1beta1.ExternalRemediationRequestAvailable, reasonStays, c.left.refused))
	case stood == nil || stood.Reason != reasonStays:
	case c.left.wanted: // this time it may go
		return conditions
	default:
		conditions = append(conditions, machine.True(machinev1beta1.ExternalRemediationRequestAvailable, "", ""))
	}
	for _, f := range c.record.InFlight {
		t := c.target(f.UID)
		if t == nil || c.does(f, t) != stepTemplate {
			continue
		}
		request := machine.True(machinev1beta1.ExternalRemediationRequestAvailable, "", "")
		if t.requested {
			return append(conditions, request)
		}
		a, err := c.ask(t, c.claim(f, t))
		if err != nil {
			return conditions
		}
		if o, tried := c.Outcome(a); tried && o.Result != plan.Done {
			request = machine.False(request.Type, machinev1beta1.ConditionSeverityError, machinev1beta1.ExternalRemediationRequestCreationFailed, o.Message)
			return append(conditions, request)
		}
	}
	return conditions
}
