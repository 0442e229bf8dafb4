// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sigsjson "sigs.k8s.io/json"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// piecemeal reads a page that cannot be read as a whole, item by item. Its error names the item, since nothing may be
// left out of a list: functions decide on what is not in it (an instance without a Machine, a Node without one). A
// MachineHealthCheck alone may stay unreadable: the CRD admits durations that are none, and one mistake must not end the
// healing that all others ask for.
func (a answer) piecemeal(r plan.Resource, gvk schema.GroupVersionKind) (all []plan.Object, meta metav1.ListMeta, err error) {
	var list struct {
		metav1.TypeMeta
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(a.body, &list); err != nil {
		return nil, meta, fmt.Errorf("read %s: %w", gvk.Kind, err)
	}
	if err := expect(gvk, list.GroupVersionKind()); err != nil {
		return nil, meta, err
	}
	for i, raw := range list.Items {
		o, err := item(r, raw)
		if err != nil {
			return nil, meta, fmt.Errorf("read %s: item %d: %w", gvk.Kind, i, err)
		}
		all = append(all, o)
	}
	return all, list.Metadata, nil
}

// item reads one item of a list.
func item(r plan.Resource, raw []byte) (plan.Object, error) {
	if string(raw) == "null" {
		return nil, errors.New("no object")
	}
	o := r.New()
	err := sigsjson.UnmarshalCaseSensitivePreserveInts(raw, o)
	if err == nil {
		return o, nil
	}
	var about struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if sigsjson.UnmarshalCaseSensitivePreserveInts(raw, &about) != nil || about.Metadata.Name == "" {
		return nil, err
	}
	if _, is := o.(*machine.MachineHealthCheck); is {
		if h := withoutSpec(raw, err); h != nil {
			return h, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", plan.Name(r.Kind, about.Metadata.Namespace, about.Metadata.Name), err)
}

// withoutSpec reads a MachineHealthCheck whose spec cannot be read; an annotation, which is nowhere but in memory, says
// why. It returns nil if the rest cannot be read either.
func withoutSpec(raw []byte, why error) *machine.MachineHealthCheck {
	var rest struct {
		Metadata metav1.ObjectMeta                       `json:"metadata"`
		Status   machinev1beta1.MachineHealthCheckStatus `json:"status"`
	}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(raw, &rest); err != nil {
		return nil
	}
	h := &machine.MachineHealthCheck{ObjectMeta: rest.Metadata, Status: rest.Status}
	metav1.SetMetaDataAnnotation(&h.ObjectMeta, machine.AnnotationUnreadable, why.Error())
	return h
}
