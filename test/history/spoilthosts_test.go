// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
)

// onlyFree hides the hosts that somebody has from whoever lists them.
func onlyFree(next http.RoundTripper) http.RoundTripper {
	return listed(next, func(all []json.RawMessage) []json.RawMessage {
		return slices.DeleteFunc(all, func(host json.RawMessage) bool { return bytes.Contains(host, []byte(`"consumerRef"`)) })
	})
}

// allFree lists hosts as if nobody had any.
func allFree(next http.RoundTripper) http.RoundTripper {
	return listed(next, func(all []json.RawMessage) []json.RawMessage {
		for i, text := range all {
			host := &metal3v1alpha1.BareMetalHost{}
			if err := json.Unmarshal(text, host); err != nil {
				panic(err)
			}
			host.Spec.ConsumerRef, host.Spec.Image, host.Status.Provisioning.State = nil, nil, metal3v1alpha1.StateAvailable
			if all[i], _ = json.Marshal(host); all[i] == nil {
				panic("a host cannot be written")
			}
		}
		return all
	})
}

// listed changes lists of hosts.
func listed(next http.RoundTripper, change func([]json.RawMessage) []json.RawMessage) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err != nil || !strings.HasSuffix(r.URL.Path, "baremetalhosts") {
			return answer, err
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return nil, err
		}
		var list struct {
			Kind       string            `json:"kind"`
			APIVersion string            `json:"apiVersion"`
			Metadata   json.RawMessage   `json:"metadata"`
			Items      []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, err
		}
		list.Items = change(list.Items)
		if text, err = json.Marshal(list); err != nil {
			return nil, err
		}
		answer.Body = io.NopCloser(bytes.NewReader(text))
		return answer, nil
	})
}

// releasedAtOnce gives a host back before it was cleaned.
func releasedAtOnce(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		c := r.Clone(r.Context())
		c.Body = io.NopCloser(bytes.NewReader(bytes.Replace(body, []byte(`"image":null`), []byte(`"consumerRef":null,"image":null`), 1)))
		return next.RoundTrip(c)
	})
}
