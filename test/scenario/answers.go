// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// The answers of clouds and of earlier actions, as scenarios write them: durations and codes as words.
type (
	refusal struct {
		Code       provider.Code   `json:"code"`
		Message    string          `json:"message"`
		RetryAfter metav1.Duration `json:"retryAfter"`
	}
	cloud struct {
		Account   string                 `json:"account"`
		Horizon   metav1.Duration        `json:"horizon"`
		Tokens    *bool                  `json:"tokens"`
		Found     []provider.Instance    `json:"found"`
		Err       *refusal               `json:"err"`
		Resolved  json.RawMessage        `json:"resolved"`
		Refused   *refusal               `json:"refused"`
		Type      *provider.InstanceType `json:"type"`
		Instances []provider.Instance    `json:"instances"`
	}
	outcome struct {
		refusal
		Result   plan.Result       `json:"result"`
		Instance provider.Instance `json:"instance"`
	}
)

func (r *refusal) data() *snapshot.Refusal {
	if r == nil {
		return nil
	}
	return &snapshot.Refusal{Code: r.Code, Message: r.Message, RetryAfter: r.RetryAfter.Duration}
}

func (c cloud) horizon() time.Duration {
	if c.Horizon.Duration == 0 {
		return 20 * time.Second
	}
	return c.Horizon.Duration
}

func clouds(text []byte) (map[string]snapshot.Cloud, error) {
	var told map[string]cloud
	if err := yaml.UnmarshalStrict(text, &told); err != nil {
		return nil, err
	}
	out := map[string]snapshot.Cloud{}
	for name, c := range told {
		out[name] = snapshot.Cloud{
			Account: c.Account, Horizon: c.horizon(), Tokens: c.Tokens == nil || *c.Tokens, Found: c.Found,
			Err: c.Err.data(), Resolved: c.Resolved, Refused: c.Refused.data(), Type: c.Type,
		}
	}
	return out, nil
}

func accounts(text []byte) (map[string]snapshot.Account, error) {
	var told map[string]cloud
	if err := yaml.UnmarshalStrict(text, &told); err != nil {
		return nil, err
	}
	out := map[string]snapshot.Account{}
	for key, a := range told {
		out[key] = snapshot.Account{Horizon: a.horizon(), Instances: a.Instances, Err: a.Err.data()}
	}
	return out, nil
}

func outcomes(text []byte) (map[plan.Key]plan.Outcome, error) {
	var told map[plan.Key]outcome
	if err := yaml.UnmarshalStrict(text, &told); err != nil {
		return nil, err
	}
	out := map[plan.Key]plan.Outcome{}
	for key, o := range told {
		out[key] = plan.Outcome{Result: o.Result, Code: o.Code, Message: o.Message, RetryAfter: o.RetryAfter.Duration, Instance: o.Instance}
	}
	return out, nil
}
