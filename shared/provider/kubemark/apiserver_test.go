// SPDX-License-Identifier: Apache-2.0

package kubemark

import (
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/machine-functions/machine-functions/shared/provider/drivertest"
	"github.com/machine-functions/machine-functions/test/local/controlplane"
)

func TestConformanceOnAPIServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Dir: t.TempDir(), Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := plane.Apply(t.Context(), "apiVersion: v1\nkind: Namespace\nmetadata: {name: kubemark}"); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	records, err := NewConfigMaps(config)
	if err != nil {
		t.Fatal(err)
	}
	testStore(t, records)
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		t.Helper()
		store := &hanging{Store: records}
		h := harness(t, store)
		h.Hang, h.Pace = store.hangs.Store, 20*time.Millisecond
		return h
	})
}
