// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// Tell records n, or counts up what was recorded before. Two writes that meet are both counted.
func (c *Cluster) Tell(ctx context.Context, n plan.Note) error {
	e, err := cluster.Event(n, c.Component, c.now())
	if err != nil {
		return err
	}
	group := corev1.SchemeGroupVersion
	e.SetGroupVersionKind(group.WithKind("Event"))
	at := address{group: group, plural: "events", namespace: e.Namespace}
	named := at
	named.name = e.Name
	for range maxTellings {
		if err = classify(c.write(ctx, http.MethodPost, at, typeJSON, e)); !errors.Is(err, cluster.ErrExists) {
			break
		}
		if err = c.countUp(ctx, named, e.LastTimestamp); !errors.Is(err, cluster.ErrConflict) && !errors.Is(err, cluster.ErrGone) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("tell %s of %s: %w", n.Reason, plan.Name(n.Object.Kind, n.Object.Namespace, n.Object.Name), err)
	}
	return nil
}

// maxTellings bounds how often an Event is tried that others count up, or that expires, at the same time.
const maxTellings = 4

func (c *Cluster) countUp(ctx context.Context, at address, now metav1.Time) error {
	a, err := c.read(ctx, at, nil)
	if err != nil {
		return classify(err)
	}
	var e corev1.Event
	if err := a.object(at.group.WithKind("Event"), &e); err != nil {
		return err
	}
	return classify(c.write(ctx, http.MethodPatch, at, typeMergePatch, map[string]any{
		"metadata":      map[string]any{"resourceVersion": e.ResourceVersion},
		"count":         e.Count + 1,
		"lastTimestamp": now,
	}))
}
