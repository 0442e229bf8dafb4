// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/plan"
)

const (
	// mostObject is what etcd takes of one object, and so of one request.
	mostObject = 3 << 19
	// mostData is what a ConfigMap holds.
	mostData = 1 << 20
	// mostMessage and mostReason are what an Event of events.k8s.io holds, which every Event may be read as.
	mostMessage, mostReason = 1024, 128
)

// limits returns what an API server has against o whatever its schema says: against its metadata and its size, and against what it looks at
// by rules of its own in the kinds that are written.
func limits(o plan.Object) field.ErrorList {
	at := field.NewPath("metadata")
	m, err := meta.Accessor(o)
	if err != nil {
		return field.ErrorList{field.InternalError(at, err)}
	}
	wrong := validation.ValidateObjectMetaAccessor(m, m.GetNamespace() != "", validation.NameIsDNSSubdomain, at)
	switch o := o.(type) {
	case *corev1.ConfigMap:
		size := 0
		for key, value := range o.Data {
			for _, why := range utilvalidation.IsConfigMapKey(key) {
				wrong = append(wrong, field.Invalid(field.NewPath("data"), key, why))
			}
			size += len(value)
		}
		if size > mostData {
			wrong = append(wrong, field.TooLong(field.NewPath("data"), "", mostData))
		}
	case *corev1.Node:
		wrong = append(wrong, taints(o.Spec.Taints)...)
	case *unstructured.Unstructured:
		wrong = append(wrong, conditions(o)...)
	}
	if text, err := json.Marshal(o); err != nil || len(text) > mostObject {
		wrong = append(wrong, field.TooLong(field.NewPath(""), "", mostObject))
	}
	return wrong
}

func taints(all []corev1.Taint) (wrong field.ErrorList) {
	seen := map[string]bool{}
	for i, t := range all {
		at := field.NewPath("spec", "taints").Index(i)
		for _, why := range utilvalidation.IsQualifiedName(t.Key) {
			wrong = append(wrong, field.Invalid(at.Child("key"), t.Key, why))
		}
		for _, why := range utilvalidation.IsValidLabelValue(t.Value) {
			wrong = append(wrong, field.Invalid(at.Child("value"), t.Value, why))
		}
		switch t.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			wrong = append(wrong, field.NotSupported(at.Child("effect"), t.Effect, []string{}))
		}
		if of := t.Key + ":" + string(t.Effect); seen[of] {
			wrong = append(wrong, field.Duplicate(at, of))
		} else {
			seen[of] = true
		}
	}
	return wrong
}

// conditions looks at those of kinds that have no schema in config/crd, which are all of one form.
func conditions(u *unstructured.Unstructured) field.ErrorList {
	var in struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &in); err != nil {
		return nil
	}
	return metavalidation.ValidateConditions(in.Status.Conditions, field.NewPath("status", "conditions"))
}

// untellable returns what an API server has against the Event that tells n; nothing against a line in the log.
func untellable(n plan.Note) error {
	if n.Object.Kind == "" {
		return nil
	}
	e, err := cluster.Event(n, "a-function", time.Unix(0, 0))
	if err != nil {
		return err
	}
	wrong := limits(e)
	at := field.NewPath("")
	for name, text := range map[string]string{"reason": e.Reason, "reportingController": e.ReportingController} {
		if text == "" || len(text) > mostReason {
			wrong = append(wrong, field.Invalid(at.Child(name), text, "must be there, and not too long"))
		}
	}
	for _, why := range utilvalidation.IsQualifiedName(e.ReportingController) {
		wrong = append(wrong, field.Invalid(at.Child("reportingController"), e.ReportingController, why))
	}
	if len(e.Message) > mostMessage {
		wrong = append(wrong, field.TooLong(at.Child("message"), "", mostMessage))
	}
	if e.InvolvedObject.Namespace != "" && e.InvolvedObject.Namespace != e.Namespace {
		wrong = append(wrong, field.Invalid(at.Child("involvedObject", "namespace"), e.InvolvedObject.Namespace, "is not the Event's"))
	}
	if len(wrong) > 0 {
		return fmt.Errorf("no API server admits the Event of %.300q: %w", fmt.Sprint(n), wrong.ToAggregate())
	}
	return nil
}
