// SPDX-License-Identifier: Apache-2.0

package kubemark

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Namespace is where the records of simulated instances are.
const Namespace = "kubemark"

// maxAnswer bounds what is read of one answer: some 50,000 records.
const maxAnswer = 128 << 20

// ConfigMaps is a Store of ConfigMaps in Namespace.
type ConfigMaps struct {
	client *http.Client
	base   *url.URL
}

var _ Store = (*ConfigMaps)(nil)

// NewConfigMaps returns a Store in the API server that config describes, without asking it anything.
func NewConfigMaps(config *rest.Config) (*ConfigMaps, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return &ConfigMaps{client, base.JoinPath("api/v1/namespaces", Namespace, "configmaps")}, nil
}

// Create implements [Store].
func (c *ConfigMaps) Create(ctx context.Context, o Object) (Object, error) {
	return c.one(ctx, http.MethodPost, "", configMap(o))
}

// Get implements [Store].
func (c *ConfigMaps) Get(ctx context.Context, name string) (Object, error) {
	return c.one(ctx, http.MethodGet, name, nil)
}

// List implements [Store].
func (c *ConfigMaps) List(ctx context.Context, want map[string]string) ([]Object, error) {
	var out corev1.ConfigMapList
	query := url.Values{"labelSelector": {labels.SelectorFromValidatedSet(want).String()}}
	if err := c.call(ctx, http.MethodGet, "", query, nil, &out); err != nil {
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
	return c.one(ctx, http.MethodPut, o.Name, configMap(o))
}

// Delete implements [Store].
func (c *ConfigMaps) Delete(ctx context.Context, o Object) error {
	only := metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{ResourceVersion: &o.Version},
	}
	return c.call(ctx, http.MethodDelete, o.Name, nil, only, &struct{}{})
}

func (c *ConfigMaps) one(ctx context.Context, method, name string, body any) (Object, error) {
	var out corev1.ConfigMap
	if err := c.call(ctx, method, name, nil, body, &out); err != nil {
		return Object{}, err
	}
	return object(out), nil
}

// call makes one request and reads its answer to the end.
func (c *ConfigMaps) call(ctx context.Context, method, name string, query url.Values, body, out any) error {
	target := c.base.JoinPath(name)
	target.RawQuery = query.Encode()
	var content io.Reader = http.NoBody
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("write record: %w", err)
		}
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, target.String(), content)
	if err != nil {
		return fmt.Errorf("request record: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := c.client.Do(req)
	if err != nil {
		return fmt.Errorf("reach records: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // everything was read, or the error says why not
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read records: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return refusal(resp.StatusCode, method, answer)
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("read records: %w", err)
	}
	return nil
}

// refusal turns an answer of the API server into a store's or a cloud's. An answer that another than the API server
// gave proves nothing.
func refusal(code int, method string, answer []byte) error {
	var s metav1.Status
	if err := json.Unmarshal(answer, &s); err != nil || s.Kind != "Status" {
		return fmt.Errorf("reach records: HTTP status %d: %.200s", code, answer)
	}
	switch {
	case s.Reason == metav1.StatusReasonNotFound && method != http.MethodPost:
		return ErrGone
	case s.Reason == metav1.StatusReasonAlreadyExists:
		return ErrExists
	case s.Reason == metav1.StatusReasonConflict:
		return ErrConflict
	case code == http.StatusForbidden, code == http.StatusUnauthorized:
		return provider.Errorf(provider.Denied, "reach records: %s", s.Message)
	case code == http.StatusTooManyRequests && s.Details != nil:
		return provider.ErrorAfter(provider.Throttled, time.Duration(s.Details.RetryAfterSeconds)*time.Second, "reach records: %s", s.Message)
	}
	return fmt.Errorf("reach records: %s", s.Message)
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
