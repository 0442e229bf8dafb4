// SPDX-License-Identifier: Apache-2.0

package kubemark

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/provider/kubeapi"
)

// Namespace is where the records of simulated instances are.
const Namespace = "kubemark"

// ConfigMaps is a Store of ConfigMaps in Namespace.
type ConfigMaps struct {
	api *kubeapi.Client
}

var _ Store = (*ConfigMaps)(nil)

// NewConfigMaps returns a Store in the API server that config describes, without asking it anything.
func NewConfigMaps(config *rest.Config) (*ConfigMaps, error) {
	api, err := kubeapi.New(config)
	if err != nil {
		return nil, err
	}
	return &ConfigMaps{api}, nil
}

// Create implements [Store].
func (c *ConfigMaps) Create(ctx context.Context, o Object) (Object, error) {
	return c.one(ctx, kubeapi.Request{Method: http.MethodPost, Body: configMap(o)})
}

// Get implements [Store].
func (c *ConfigMaps) Get(ctx context.Context, name string) (Object, error) {
	return c.one(ctx, kubeapi.Request{Method: http.MethodGet, Path: []string{name}})
}

// List implements [Store].
func (c *ConfigMaps) List(ctx context.Context, want map[string]string) ([]Object, error) {
	var out corev1.ConfigMapList
	query := url.Values{"labelSelector": {labels.SelectorFromValidatedSet(want).String()}}
	if err := c.call(ctx, kubeapi.Request{Method: http.MethodGet, Query: query}, &out); err != nil {
		return nil, err
	}
	var all []Object
	for _, m := range out.Items {
		all = append(all, object(m))
	}
	return all, nil
}

// Update implements [Store].
func (c *ConfigMaps) Update(ctx context.Context, o Object) (Object, error) {
	return c.one(ctx, kubeapi.Request{Method: http.MethodPut, Path: []string{o.Name}, Body: configMap(o)})
}

// Delete implements [Store].
func (c *ConfigMaps) Delete(ctx context.Context, o Object) error {
	only := metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{ResourceVersion: &o.Version},
	}
	return c.call(ctx, kubeapi.Request{Method: http.MethodDelete, Path: []string{o.Name}, Body: only}, &struct{}{})
}

func (c *ConfigMaps) one(ctx context.Context, r kubeapi.Request) (Object, error) {
	var out corev1.ConfigMap
	if err := c.call(ctx, r, &out); err != nil {
		return Object{}, err
	}
	return object(out), nil
}

func (c *ConfigMaps) call(ctx context.Context, r kubeapi.Request, out any) error {
	r.Path = append([]string{"api", "v1", "namespaces", Namespace, "configmaps"}, r.Path...)
	if err := c.api.Do(ctx, r, out); err != nil {
		return fmt.Errorf("reach records: %w", err)
	}
	return nil
}

func configMap(o Object) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: o.Name, Namespace: Namespace, ResourceVersion: o.Version, Labels: o.Labels},
		Data:       o.Data,
	}
}

func object(m corev1.ConfigMap) Object {
	return Object{Name: m.Name, Version: m.ResourceVersion, Labels: m.Labels, Data: m.Data}
}
