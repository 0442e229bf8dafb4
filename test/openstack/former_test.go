// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/trunks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// TestInstanceThatOpenShiftMade: the port that OpenShift made with an instance goes with its Machine, with its trunk; another one
// that the instance has stays (SPEC E19).
func TestInstanceThatOpenShiftMade(t *testing.T) {
	t.Parallel()
	c := theCloud(t, "story")
	name := "former-" + string(uuid.NewUUID()[:5])
	own := c.havePort(t, name+"-0", "Created by cluster-api-provider-openstack cluster openshift-machine-api-ocp43-abcde")
	must(t, trunks.Create(t.Context(), c.user.Network, trunks.CreateOpts{Name: name + "-0", PortID: own}).Err)
	theirs := c.havePort(t, name+"-backup", "")
	flavor, image := c.ids(t)
	s, err := servers.Create(t.Context(), c.user.Compute, servers.CreateOpts{
		Name: name, FlavorRef: flavor, ImageRef: image, Networks: []servers.Network{{Port: own}, {Port: theirs}},
	}, nil).Extract()
	must(t, err)
	r := provider.Ref{UID: uuid.NewUUID(), Name: name, ProviderID: "openstack:///" + s.ID}
	a := c.account()
	a.ClusterID = "former-" + string(uuid.NewUUID()[:5])
	d, err := patientProvider().Open(t.Context(), a)
	must(t, err)
	for end := time.Now().Add(2 * patience); ; time.Sleep(time.Second) {
		found, err := d.Find(t.Context(), r)
		if err == nil && len(found) == 1 && found[0].State == provider.StateRunning {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it does not come to run: %+v, %v", found, err)
		}
	}
	downTo(t, d, r)
	left := []string{}
	for _, p := range all(t, ports.List(c.user.Network, ports.ListOpts{}), ports.ExtractPorts) {
		if strings.HasPrefix(p.Name, name) {
			left = append(left, p.Name)
		}
	}
	for _, x := range all(t, trunks.List(c.user.Network, trunks.ListOpts{Name: name + "-0"}), trunks.ExtractTrunks) {
		left = append(left, "trunk "+x.Name)
	}
	if !slices.Equal(left, []string{name + "-backup"}) {
		t.Errorf("left are %v", left)
	}
}

func (c *cloud) havePort(t *testing.T, name, description string) string {
	t.Helper()
	p, err := ports.Create(t.Context(), c.user.Network, ports.CreateOpts{NetworkID: c.network, Name: name, Description: description}).Extract()
	must(t, err)
	t.Cleanup(func() { _ = ports.Delete(context.WithoutCancel(t.Context()), c.user.Network, p.ID) })
	return p.ID
}

// TestRefusalLeavesNothingUnclear: Nova's no to a request is asked for again within the minute for which its claim would stand.
func TestRefusalLeavesNothingUnclear(t *testing.T) {
	t.Parallel()
	c := theCloud(t, "story")
	a := c.account()
	a.ClusterID = "former-" + string(uuid.NewUUID()[:5])
	d, err := patientProvider().Open(t.Context(), a)
	must(t, err)
	resolved, err := d.Resolve(t.Context(), c.spec(t, map[string]any{"keyName": "nobodys-key"}))
	must(t, err)
	uid := uuid.NewUUID()
	r := provider.Ref{UID: uid, Name: "worker-refused", Token: machine.Token(uid, 1, "zone")}
	refused := []time.Time{}
	for end := time.Now().Add(2 * patience); len(refused) < 3 && time.Now().Before(end); time.Sleep(time.Second) {
		in, err := d.Create(t.Context(), r, resolved)
		if len(in.Progress) > 0 {
			r.Progress = in.Progress
		}
		switch {
		case err == nil && in.State == provider.StateIncomplete:
		case provider.CodeOf(err) == provider.Exhausted && strings.Contains(err.Error(), "key_name"):
			refused = append(refused, time.Now())
		default:
			t.Fatalf("Create = %+v, %v (%v)", in, err, provider.CodeOf(err))
		}
	}
	if len(refused) < 3 {
		t.Fatalf("refused %d times only", len(refused))
	}
	t.Logf("refused three times within %v", refused[2].Sub(refused[0]).Round(100*time.Millisecond))
	if n := c.count(t, "machine-uid="+string(uid)); n.Servers != 0 || n.Ports != 1 || n.Trunks != 1 {
		t.Errorf("made %+v", n)
	}
	downTo(t, d, r)
	if n := c.count(t, "machine-uid="+string(uid)); n.Servers+n.Ports+n.Trunks != 0 {
		t.Errorf("left %+v", n)
	}
}
