// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"errors"
	"io"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// What the API server does not tell of a host, or of all of them, is no absence: whoever has it removed would count it as gone (G5).
func TestHostThatCannotBeReadIsNotGone(t *testing.T) {
	t.Parallel()
	hosts := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "<html>bad gateway</html>")
	})
	d := &driver{hosts: hosts, cluster: "abi-sb5b6", namespace: "machines"}
	for name, r := range map[string]provider.Ref{
		"of a Machine": worker,
		"by its id":    {ID: "host-0/machine-uid", Name: worker.Name},
	} {
		if found, err := d.Find(t.Context(), r); provider.CodeOf(err) != provider.Unknown {
			t.Errorf("%s: Find = %+v, %v", name, found, err)
		}
		if err := d.Delete(t.Context(), r); provider.CodeOf(err) != provider.Unknown {
			t.Errorf("%s: Delete = %v", name, err)
		}
	}
}

// By its id a host is found that is of no Machine any more, and one that is gone is none.
func TestHostIsFoundByItsID(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	runs(t, s, "host-0", corev1.ObjectReference{APIVersion: consumerVersion, Kind: consumerKind, Namespace: "machines", Name: worker.Name, UID: worker.UID})
	d := open(t, s)
	for id, want := range map[string]int{"host-0/machine-uid": 1, "host-0/another-uid": 0, "host-1/machine-uid": 0} {
		if found, err := d.Find(t.Context(), provider.Ref{ID: id, Name: worker.Name}); err != nil || len(found) != want {
			t.Errorf("%s: Find = %+v, %v", id, found, err)
		}
	}
}

// A change of power that the API server does not take has not happened; one that stands already is not written again (R-S14).
func TestPowerThatIsNotChangedIsTold(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	runs(t, s, "host-0", corev1.ObjectReference{APIVersion: consumerVersion, Kind: consumerKind, Namespace: "machines", Name: worker.Name, UID: worker.UID})
	d, ok := open(t, s).(*driver)
	if !ok {
		t.Fatal("it is no driver of this package")
	}
	s.refuses = map[string]error{"host-0": errors.New("<html>bad gateway</html>")}
	if off, cycle := d.PowerOff(t.Context(), worker), d.PowerCycle(t.Context(), worker); off == nil || cycle == nil {
		t.Errorf("PowerOff = %v, PowerCycle = %v", off, cycle)
	}
	s.refuses = nil
	for n, c := range []struct {
		change func() error
		writes int
	}{
		{func() error { return d.PowerOn(t.Context(), worker) }, 0},
		{func() error { return d.PowerOff(t.Context(), worker) }, 1},
		{func() error { return d.PowerOff(t.Context(), worker) }, 1},
		{func() error { return d.PowerOn(t.Context(), worker) }, 2},
	} {
		if err := c.change(); err != nil || s.writes != c.writes || held(s.hosts["host-0"]) != (n == 1 || n == 2) {
			t.Errorf("%d: %v after %d writes, held off: %v", n, err, s.writes, held(s.hosts["host-0"]))
		}
	}
}

// Without the id of the cluster no host can be told from another cluster's.
func TestNoClusterHasNoHosts(t *testing.T) {
	t.Parallel()
	if _, err := Provider(newStock(1)).Open(t.Context(), provider.Account{Kind: Kind, Namespace: metav1.NamespaceDefault}); provider.CodeOf(err) != provider.Invalid {
		t.Errorf("Open = %v", err)
	}
}
