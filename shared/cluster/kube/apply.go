// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/shared/webhook"
)

// Apply carries out one action on objects with one request, guarded by what the action saw (RELIABILITY G3). Only when
// that does not match, a second request tells a changed object from another one of the same name.
func (c *Cluster) Apply(ctx context.Context, a plan.Action) error {
	switch a := a.(type) {
	case plan.Create:
		return c.create(ctx, a.Object)
	case plan.Update:
		return c.patch(ctx, a.Old, a.New, "")
	case plan.UpdateStatus:
		return c.patch(ctx, a.Old, a.New, "status")
	case plan.Delete:
		return c.remove(ctx, a)
	case plan.Evict:
		return c.evict(ctx, a)
	case plan.Approve:
		return c.patch(ctx, a.Request, a.Approved(), "approval")
	case plan.CreateInstance, plan.DeleteInstance, plan.UpdateInstance, plan.PowerCycle:
	}
	return fmt.Errorf("%T is not an action on objects", a)
}

func (c *Cluster) create(ctx context.Context, o plan.Object) error {
	r, at, err := of(o)
	if err != nil {
		return err
	}
	body := o.DeepCopyObject()
	body.GetObjectKind().SetGroupVersionKind(r.GVK())
	at.name = ""
	err = c.write(ctx, http.MethodPost, at, typeJSON, body)
	page, isPage := errors.AsType[*pageError](err)
	if apierrors.IsNotFound(err) || isPage && page.code == http.StatusNotFound && plan.Foreign(r.Kind) {
		return &cluster.RefusedError{Err: err} // the namespace, or the kind, is not there
	}
	return classify(err)
}

// patch writes metadata and spec, or through a subresource the status.
func (c *Cluster) patch(ctx context.Context, before, after plan.Object, subresource string) error {
	_, at, err := of(before)
	if err != nil {
		return err
	}
	body, err := plan.MergePatch(before, after, subresource != "")
	if err != nil || body == nil {
		return err
	}
	at.subresource = subresource
	return classify(c.write(ctx, http.MethodPatch, at, typeMergePatch, body))
}

func (c *Cluster) remove(ctx context.Context, a plan.Delete) error {
	_, at, err := of(a.Object)
	if err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	options := deleteOptions(a.Object.GetUID())
	options.PropagationPolicy = &background
	if a.IfUnchanged {
		version := a.Object.GetResourceVersion()
		options.Preconditions.ResourceVersion = &version
	}
	return c.replaced(ctx, a.Object, classify(c.write(ctx, http.MethodDelete, at, typeJSON, options)))
}

func (c *Cluster) evict(ctx context.Context, a plan.Evict) error {
	_, at, err := of(a.Pod)
	if err != nil {
		return err
	}
	at.subresource = "eviction"
	options := deleteOptions(a.Pod.UID)
	options.GracePeriodSeconds = a.GraceSeconds
	err = c.write(ctx, http.MethodPost, at, typeJSON, &policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Namespace: a.Pod.Namespace, Name: a.Pod.Name},
		DeleteOptions: options,
	})
	if b, ok := blocked(err); ok {
		return b
	}
	return c.replaced(ctx, a.Pod, classify(err))
}

func deleteOptions(uid types.UID) *metav1.DeleteOptions {
	return &metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &uid},
	}
}

// blocked recognizes the answer of a disruption budget, which its cause names, and that of a webhook which could not be asked.
// An overloaded server answers with the code of the first.
func blocked(err error) (*cluster.BlockedError, bool) {
	if message := messageOf(err); apierrors.IsInternalError(err) && strings.Contains(message, "failed calling webhook ") {
		return &cluster.BlockedError{Message: message}, true
	}
	cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause)
	if !ok || !apierrors.IsTooManyRequests(err) {
		return nil, false
	}
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return &cluster.BlockedError{RetryAfter: time.Duration(seconds) * time.Second, Message: cause.Message}, true
}

// replaced turns a conflict on o into ErrGone if the name belongs to another object by now. To an eviction with the UID
// of another Pod the server may say nothing at all: it tries again for longer than a request may take.
func (c *Cluster) replaced(ctx context.Context, o plan.Object, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, cluster.ErrConflict) {
		return err
	}
	r, at, _ := of(o)
	found, _, failed := c.get(ctx, r, snapshot.Query{Kind: r.Kind, Namespace: at.namespace, Name: at.name})
	if failed == nil && (len(found) == 0 || found[0].GetUID() != o.GetUID()) {
		return cluster.ErrGone
	}
	return err
}

// classify gives the API server's definite answers their names. Everything else may or may not have happened.
func classify(err error) error {
	switch {
	case tooLarge(err):
		return &cluster.RefusedError{Err: err}
	case webhook.Denied(err): // also with 429, as KubeVirt's says to an eviction that it turns into a migration
		return &cluster.RefusedError{Err: err}
	case apierrors.IsAlreadyExists(err):
		return cluster.ErrExists
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", cluster.ErrConflict, err)
	case apierrors.IsNotFound(err):
		return cluster.ErrGone
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err),
		apierrors.IsMethodNotSupported(err), apierrors.IsRequestEntityTooLargeError(err):
		return &cluster.RefusedError{Err: err}
	}
	return err
}

// tooLarge recognizes what the API server says of an object that its storage does not take, as of a Machine whose spec is nearly as large: it
// hands on the words of etcd, or of its own client, with the code of an outage (kubernetes/kubernetes#112152).
func tooLarge(err error) bool {
	message := messageOf(err)
	return strings.HasPrefix(message, "etcdserver: request is too large") || strings.HasPrefix(message, "rpc error: code = ResourceExhausted desc = trying to send message larger than max")
}

// messageOf returns what the API server itself said, or "".
func messageOf(err error) string {
	if s, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return s.ErrStatus.Message
	}
	return ""
}
