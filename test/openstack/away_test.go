// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	driver "github.com/machine-functions/machine-functions/shared/provider/openstack"
)

// TestCinderIsAway has Cinder's service for volumes stand still while Nova removes an instance. Nova forgets the instance;
// its volumes stay attached to it. They go with the Machine all the same, once Cinder is back.
func TestCinderIsAway(t *testing.T) { //nolint:paralleltest // no other test can have Cinder meanwhile
	if flag.Lookup("test.run").Value.String() == "" {
		t.Skip("Nova asks Cinder five times, for two minutes each: -test.run=TestCinderIsAway")
	}
	c := theCloud(t, "volumes")
	group := processGroup(t, "cinder-volume")
	a := c.account()
	a.ClusterID = "away-" + string(uuid.NewUUID()[:5])
	d, err := driver.Provider().Open(t.Context(), a)
	must(t, err)
	resolved, err := d.Resolve(t.Context(), c.spec(t, map[string]any{"rootVolume": map[string]any{"diskSize": 2}, "trunk": false}))
	must(t, err)
	uid := uuid.NewUUID()
	r := provider.Ref{UID: uid, Name: "worker-away", Token: machine.Token(uid, 1, "zone")}
	in := upTo(t, d, r, resolved)

	must(t, syscall.Kill(-group, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(-group, syscall.SIGCONT) })
	begin := time.Now()
	for rec := (record{Ref: r}); ; time.Sleep(5 * time.Second) {
		if rec.down(t, d) {
			t.Fatal("all is said to be gone while Cinder stands still")
		}
		if _, err := servers.Get(t.Context(), c.user.Compute, in.ID).Extract(); err != nil {
			break
		}
		if time.Since(begin) > 15*time.Minute {
			t.Fatal("Nova never gave the instance up")
		}
	}
	left := all(t, volumes.List(c.user.Volume, volumes.ListOpts{Metadata: map[string]string{"machine-uid": string(uid)}}), volumes.ExtractVolumes)
	for _, v := range left {
		t.Logf("Nova gave the instance up after %v; its volume is %s, attached to %d instances", time.Since(begin).Round(time.Second), v.Status, len(v.Attachments))
	}
	if len(left) != 1 || left[0].Status != "in-use" {
		t.Errorf("%d volumes are left, want one in use", len(left))
	}

	must(t, syscall.Kill(-group, syscall.SIGCONT))
	begin = time.Now()
	downTo(t, d, r)
	t.Logf("gone %v after Cinder was back", time.Since(begin).Round(100*time.Millisecond))
	if n := c.count(t, "machine-uid="+string(uid)); n != (Tally{}) {
		t.Errorf("left %+v", n)
	}
}

// processGroup returns that of a service of up.sh.
func processGroup(t *testing.T, service string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(os.Getenv(Variable)), "run", service+".pid"))
	must(t, err)
	group, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must(t, err)
	return group
}
