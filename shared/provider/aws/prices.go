// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/kubeapi"
)

// Prices returns what instance types cost in a region, in dollars an hour, for the Machines of a namespace. A type that
// is not there has no known price.
type Prices func(ctx context.Context, namespace, region string) (map[string]float64, error)

// pricesName is the ConfigMap beside the Machines that an administrator keeps prices in: EC2 does not tell them, and the
// service that does is in few regions and wants rights of its own.
const pricesName = "aws-prices"

// NewPrices returns prices as the ConfigMap aws-prices tells them, in the API server that config describes: a key for
// each region, whose value has a line for each type, "m5.large: 0.096". There need not be one. Nothing is asked yet.
func NewPrices(config *rest.Config) (Prices, error) {
	api, err := kubeapi.New(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, namespace, region string) (map[string]float64, error) {
		var m corev1.ConfigMap
		err := api.Do(ctx, kubeapi.Request{Method: http.MethodGet, Path: []string{"api", "v1", "namespaces", namespace, "configmaps", pricesName}}, &m)
		if errors.Is(err, kubeapi.ErrGone) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s: %w", namespace, pricesName, err)
		}
		prices, err := parsePrices(m.Data[region])
		if err != nil {
			return nil, provider.Errorf(provider.Exhausted, "ConfigMap %s/%s: key %s: %w; write lines such as m5.large: 0.096", namespace, pricesName, region, err)
		}
		return prices, nil
	}, nil
}

// parsePrices reads the lines of one region. A type that is said twice, or that costs less than nothing, is an error.
func parsePrices(text string) (map[string]float64, error) {
	prices := map[string]float64{}
	if err := provider.ReadYAML(text, &prices); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(prices)) {
		if prices[name] < 0 {
			return nil, fmt.Errorf("%s: %v is no price", name, prices[name])
		}
	}
	return prices, nil
}
