// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// life is a driver, its engine, and a Machine.
type life struct {
	*driver
	wire     *wire
	ref      provider.Ref
	resolved json.RawMessage
}

// newLife opens a driver and resolves a spec with more fields.
func newLife(t *testing.T, w *wire, more string) *life {
	t.Helper()
	d, err := w.provider().Open(t.Context(), accountOf())
	must(t, err)
	l := &life{driver: d.(*driver), wire: w, ref: provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}}
	l.resolved, err = d.Resolve(t.Context(), specWith(more))
	must(t, err)
	return l
}

// proceed makes all steps of a creation, each after a second.
func proceed(t *testing.T, d provider.Driver, r provider.Ref, resolved json.RawMessage) provider.Instance {
	t.Helper()
	for range 60 {
		in, err := d.Create(t.Context(), r, resolved)
		must(t, err)
		if in.State != provider.StateIncomplete {
			return in
		}
		r.Progress = in.Progress
		time.Sleep(time.Second / 10)
	}
	t.Fatal("the creation does not end")
	return provider.Instance{}
}

// up makes the instance, and waits until it runs.
func (l *life) up(t *testing.T) provider.Instance {
	t.Helper()
	proceed(t, l, l.ref, l.resolved)
	for range 60 {
		found, err := l.Find(t.Context(), l.ref)
		must(t, err)
		if len(found) == 1 && found[0].State == provider.StateRunning {
			l.ref.ID, l.ref.ProviderID = found[0].ID, found[0].ProviderID
			return found[0]
		}
		time.Sleep(time.Second)
	}
	t.Fatal("it does not run")
	return provider.Instance{}
}

// begun is an engine at the first step of a creation.
func begun(t *testing.T) (*wire, *life, provider.Instance) {
	t.Helper()
	w := newWire()
	l := newLife(t, w, "")
	in, err := l.Create(t.Context(), l.ref, l.resolved)
	must(t, err)
	return w, l, in
}

// started is an engine with an instance that runs.
func started(t *testing.T) (*wire, *life, provider.Instance) {
	t.Helper()
	w := newWire()
	l := newLife(t, w, "")
	return w, l, l.up(t)
}

// gone calls Delete until nothing is left.
func (l *life) gone(t *testing.T) {
	t.Helper()
	for range 60 {
		err := l.Delete(t.Context(), l.ref)
		if provider.CodeOf(err) == provider.NotFound {
			return
		}
		must(t, err)
		time.Sleep(time.Second)
	}
	t.Fatal("it does not go")
}
