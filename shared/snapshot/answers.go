// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// usualHorizon is what a cloud has that names none.
const usualHorizon = 24 * time.Second

// The answers of clouds and of earlier actions in YAML: durations and codes as words.
type (
	refusalText struct {
		Code       provider.Code    `json:"code,omitempty"`
		Message    string           `json:"message,omitempty"`
		RetryAfter *metav1.Duration `json:"retryAfter,omitempty"`
	}
	cloudText struct {
		Account   string                 `json:"account,omitempty"`
		Cluster   string                 `json:"cluster,omitempty"`
		Owner     string                 `json:"owner,omitempty"`
		Insecure  string                 `json:"insecure,omitempty"` // of an account
		Source    string                 `json:"source,omitempty"`
		Horizon   *metav1.Duration       `json:"horizon,omitempty"`
		Tokens    *bool                  `json:"tokens,omitempty"`
		Cycles    bool                   `json:"cycles,omitempty"`
		Tags      map[string]string      `json:"tags,omitempty"`
		Found     []provider.Instance    `json:"found,omitempty"`
		Ended     string                 `json:"ended,omitempty"`
		Later     bool                   `json:"later,omitempty"`
		Err       *refusalText           `json:"err,omitempty"`
		Resolved  json.RawMessage        `json:"resolved,omitempty"`
		Refused   *refusalText           `json:"refused,omitempty"`
		Type      *provider.InstanceType `json:"type,omitempty"`
		Stock     *provider.Stock        `json:"stock,omitempty"`
		Instances []provider.Instance    `json:"instances,omitempty"`
	}
	outcomeText struct {
		refusalText
		Result   plan.Result        `json:"result"`
		Instance *provider.Instance `json:"instance,omitempty"`
		Asked    *time.Time         `json:"asked,omitempty"`
	}
)

// DecodeClouds reads the answers to lookups, by the name of the object that they are about. A cloud gives tokens and
// has a horizon of 24 s unless it says otherwise; a field that does not exist is an error.
func DecodeClouds(text []byte) (map[string]Cloud, error) {
	return decodeMap[string](text, func(c cloudText) Cloud {
		return Cloud{
			Account: c.Account, Cluster: c.Cluster, Owner: c.Owner, Source: c.Source, Horizon: c.horizon(), Tokens: c.Tokens == nil || *c.Tokens, Cycles: c.Cycles, Tags: c.Tags,
			Found: c.Found, Ended: c.Ended, Later: c.Later, Err: c.Err.data(), Resolved: c.Resolved, Refused: c.Refused.data(), Type: c.Type, Stock: c.Stock,
		}
	})
}

// EncodeClouds writes what DecodeClouds reads.
func EncodeClouds(clouds map[string]Cloud) ([]byte, error) {
	return encodeMap(clouds, func(c Cloud) cloudText {
		return cloudText{
			Account: c.Account, Cluster: c.Cluster, Owner: c.Owner, Source: c.Source, Horizon: duration(c.Horizon), Tokens: &c.Tokens, Cycles: c.Cycles, Tags: c.Tags,
			Found: c.Found, Ended: c.Ended, Later: c.Later, Err: textOf(c.Err), Resolved: c.Resolved, Refused: textOf(c.Refused), Type: c.Type, Stock: c.Stock,
		}
	})
}

// DecodeAccounts reads the answers to bulk lists, by account key.
func DecodeAccounts(text []byte) (map[string]Account, error) {
	return decodeMap[string](text, func(c cloudText) Account {
		return Account{Owner: c.Owner, Insecure: c.Insecure, Horizon: c.horizon(), Instances: c.Instances, Err: c.Err.data(), Later: c.Later}
	})
}

// EncodeAccounts writes what DecodeAccounts reads.
func EncodeAccounts(accounts map[string]Account) ([]byte, error) {
	return encodeMap(accounts, func(a Account) cloudText {
		return cloudText{Owner: a.Owner, Insecure: a.Insecure, Horizon: duration(a.Horizon), Instances: a.Instances, Err: textOf(a.Err), Later: a.Later}
	})
}

// DecodeOutcomes reads what earlier actions answered.
func DecodeOutcomes(text []byte) (map[plan.Key]plan.Outcome, error) {
	return decodeMap[plan.Key](text, func(o outcomeText) plan.Outcome {
		r := o.data()
		out := plan.Outcome{Result: o.Result, Code: r.Code, Message: r.Message, RetryAfter: r.RetryAfter}
		if o.Instance != nil {
			out.Instance = *o.Instance
		}
		if o.Asked != nil {
			out.Asked = *o.Asked
		}
		return out
	})
}

// EncodeOutcomes writes what DecodeOutcomes reads.
func EncodeOutcomes(outcomes map[plan.Key]plan.Outcome) ([]byte, error) {
	return encodeMap(outcomes, func(o plan.Outcome) outcomeText {
		r := textOf(&Refusal{Code: o.Code, Message: o.Message, RetryAfter: o.RetryAfter})
		text := outcomeText{refusalText: *r, Result: o.Result}
		if o.Instance.ID != "" || len(o.Instance.Progress) > 0 {
			text.Instance = &o.Instance
		}
		if !o.Asked.IsZero() {
			text.Asked = &o.Asked
		}
		return text
	})
}

func decodeMap[K ~string, T, V any](text []byte, value func(T) V) (map[K]V, error) {
	var told map[K]T
	if err := yaml.UnmarshalStrict(text, &told); err != nil {
		return nil, err
	}
	out := make(map[K]V, len(told))
	for k, t := range told {
		out[k] = value(t)
	}
	return out, nil
}

func encodeMap[K ~string, T, V any](values map[K]V, text func(V) T) ([]byte, error) {
	told := make(map[K]T, len(values))
	for k, v := range values {
		told[k] = text(v)
	}
	return yaml.Marshal(told)
}

func (c cloudText) horizon() time.Duration {
	if c.Horizon == nil {
		return usualHorizon
	}
	return c.Horizon.Duration
}

func duration(d time.Duration) *metav1.Duration {
	if d == 0 {
		return nil
	}
	return &metav1.Duration{Duration: d}
}

func (r *refusalText) data() *Refusal {
	if r == nil {
		return nil
	}
	out := &Refusal{Code: r.Code, Message: r.Message}
	if r.RetryAfter != nil {
		out.RetryAfter = r.RetryAfter.Duration
	}
	return out
}

func textOf(r *Refusal) *refusalText {
	if r == nil {
		return nil
	}
	return &refusalText{Code: r.Code, Message: r.Message, RetryAfter: duration(r.RetryAfter)}
}
