// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/machine-functions/machine-functions/shared/provider/metal3"
)

func (h *hosts) stored(o *metal3v1alpha1.BareMetalHost) metal {
	text := textOf(o)
	return metal{o, text, sync.OnceValue(func() metal3v1alpha1.BareMetalHost { return read(text) })}
}

func read(text []byte) (o metal3v1alpha1.BareMetalHost) {
	if err := json.Unmarshal(text, &o); err != nil {
		panic(fmt.Sprintf("the simulation cannot read a host: %v", err))
	}
	return o
}

// textOf writes a host. Of its status it leaves out what says nothing, which is most of it: hosts are read far more often than
// they change.
func textOf(o *metal3v1alpha1.BareMetalHost) []byte {
	var fields map[string]any
	text, err := json.Marshal(o)
	if err = errors.Join(err, json.Unmarshal(text, &fields)); err == nil {
		if status, ok := fields["status"].(map[string]any); ok {
			prune(status)
		}
		text, err = json.Marshal(fields)
	}
	if err != nil {
		panic(fmt.Sprintf("the simulation cannot write a host: %v", err))
	}
	return text
}

func prune(fields map[string]any) {
	maps.DeleteFunc(fields, func(_ string, v any) bool {
		inner, isObject := v.(map[string]any)
		if isObject {
			prune(inner)
		}
		return v == nil || v == "" || v == 0.0 || isObject && len(inner) == 0
	})
}

// readOnce is the hosts over HTTP, but that a list without a fault is not written and read anew: of what a list is made, and what
// the driver makes of it, is the same.
type readOnce struct {
	metal3.Hosts
	hosts *hosts
}

// List implements [metal3.Hosts]. What strikes it comes over HTTP.
func (r readOnce) List(ctx context.Context, namespace string) ([]metal3v1alpha1.BareMetalHost, error) {
	q, _ := ctx.Value(procKey{}).(*proc)
	if q == nil {
		return r.Hosts.List(ctx, namespace)
	}
	err := r.hosts.step(ctx, q, http.MethodGet, "", ofHosts, common)
	if err != nil || q.verdict != works {
		return r.Hosts.List(context.WithValue(ctx, struckKey{}, &struck{err: err}), namespace)
	}
	all := make([]metal3v1alpha1.BareMetalHost, 0, len(r.hosts.all))
	for _, name := range r.hosts.names() {
		all = append(all, r.hosts.all[name].read())
	}
	return all, nil
}
