// SPDX-License-Identifier: Apache-2.0

package kubemark

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Settings is the name of the object that says how the cloud behaves. Its words are YAML: networks, stock, errors. It
// may be missing.
const Settings = "cloud"

// settings is what the object says.
type settings struct {
	networks []string       // that a spec may name
	stock    map[string]int // by type, or type/zone: how many instances may exist
	failures []failure
}

// failure makes calls fail while it stands.
type failure struct {
	Call       string          `json:"call"`           // Resolve, Create, Find, List, Delete, InstanceTypes
	Name       string          `json:"name,omitempty"` // of one Machine only
	After      bool            `json:"after,omitempty"`
	Code       provider.Code   `json:"code"`
	Message    string          `json:"message"`
	RetryAfter metav1.Duration `json:"retryAfter,omitempty"`
}

func readSettings(ctx context.Context, store Store) (settings, error) {
	s := settings{networks: []string{defaultNetwork}}
	o, err := store.Get(ctx, Settings)
	if errors.Is(err, ErrGone) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read the cloud's settings: %w", err)
	}
	for key, text := range o.Data {
		var err error
		switch key {
		case "networks":
			err = provider.ReadYAML(text, &s.networks)
		case "stock":
			err = provider.ReadYAML(text, &s.stock)
		case "errors":
			err = provider.ReadYAML(text, &s.failures)
		default:
			err = errors.New("unknown setting")
		}
		if err != nil {
			return s, fmt.Errorf("read the cloud's settings: %s: %w", key, err)
		}
	}
	return s, nil
}

// network refuses a network that the cloud does not have; it may be made later (SPEC S22, S24).
func (s settings) network(name string) error {
	if slices.Contains(s.networks, name) {
		return nil
	}
	return provider.Errorf(provider.NotFound,
		"providerSpec.value.network: %q: No network was found or provided: the cloud has only %s. Check the machine's configuration",
		name, strings.Join(s.networks, ", "))
}

// failure returns the error that stands against a call, or nil.
func (s settings) failure(call, name string, after bool) error {
	for _, f := range s.failures {
		if f.Call == call && f.After == after && (f.Name == "" || f.Name == name) {
			return provider.ErrorAfter(f.Code, f.RetryAfter.Duration, "%s", f.Message)
		}
	}
	return nil
}

// limit is how many instances with some labels may exist.
type limit struct {
	labels map[string]string
	most   int
}

// limits returns what an instance of a type in a zone counts against.
func (s settings) limits(instanceType, zone string) []limit {
	var all []limit
	if n, limited := s.stock[instanceType]; limited {
		all = append(all, limit{map[string]string{labelType: instanceType}, n})
	}
	if n, limited := s.stock[instanceType+"/"+zone]; limited {
		all = append(all, limit{map[string]string{labelType: instanceType, labelZone: zone}, n})
	}
	return all
}
