// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// TestWalkThrough is the cloud's part of the walk-through (SPEC S9, S20-S24): a wrong network and its message, the right
// one, the instance as `openstack server list` shows it, its capacity, and its end.
func TestWalkThrough(t *testing.T) {
	t.Parallel()
	c := theCloud(t, "story")
	a := c.account()
	a.ClusterID = "ocp43-" + string(uuid.NewUUID()[:5])
	d, err := patientProvider().Open(t.Context(), a)
	must(t, err)

	_, err = d.Resolve(t.Context(), c.brokenNetwork(t))
	const want = `error creating Openstack instance: No network was found or provided: providerSpec.value.networks[0].subnets[0].filter {name: "ocp43-nowhere", tags: "openshiftClusterID=ocp43-abcde"} matches no subnet. Check the machine's configuration`
	if provider.CodeOf(err) != provider.NotFound || err.Error() != want {
		t.Errorf("Resolve = %v\nwant %s", err, want)
	}

	begin := time.Now()
	resolved, err := d.Resolve(t.Context(), c.spec(t, map[string]any{"serverGroupName": "ocp43-worker", "configDrive": true, "availabilityZone": "nova", "primarySubnet": c.subnet}))
	must(t, err)
	uid := uuid.NewUUID()
	r := provider.Ref{UID: uid, Name: "general-purpose-1a-bggcg", Token: machine.Token(uid, 1, "zone")}
	in := upTo(t, d, r, resolved)
	t.Logf("%s is %s after %v: %s in %s/%s, %v", in.Name, in.CloudState, time.Since(begin).Round(100*time.Millisecond), in.Type, in.Region, in.Zone, in.Addresses)
	if in.Name != r.Name || in.Type != "4c12g30d" || in.Region != "regionOne" || in.Zone != "nova" || in.CloudState != "ACTIVE" || in.ProviderID != "openstack:///"+in.ID {
		t.Errorf("instance %+v", in)
	}
	s, err := servers.Get(t.Context(), c.user.Compute, in.ID).Extract()
	must(t, err)
	if s.Metadata["Name"] != "ocp43-worker" || s.Metadata["openshiftClusterID"] != "ocp43-abcde" || !strings.Contains(strings.Join(*s.Tags, " "), "openshiftClusterID=ocp43-abcde") || !s.ConfigDrive {
		t.Errorf("metadata %v, tags %v, config drive %v", s.Metadata, *s.Tags, s.ConfigDrive)
	}
	if groups := s.SecurityGroups; len(groups) != 1 || groups[0]["name"] != "ocp43-worker" {
		t.Errorf("security groups %v", groups)
	}
	mark := "machine-uid=" + string(uid)
	if n := c.count(t, mark); n.Servers != 1 || n.Ports != 1 || n.Trunks != 1 || n.Volumes != 0 {
		t.Errorf("made %+v", n)
	}
	types, err := d.InstanceTypes(t.Context())
	must(t, err)
	i := slices.IndexFunc(types, func(t provider.InstanceType) bool { return t.Name == "4c12g30d" })
	if i < 0 || types[i].MilliCPU != 4000 || types[i].Memory != 12<<30 || types[i].Disk != 30<<30 {
		t.Errorf("instance types %+v", types)
	}
	begin = time.Now()
	downTo(t, d, r)
	t.Logf("gone after %v", time.Since(begin).Round(100*time.Millisecond))
	if n := c.count(t, mark); n.Servers+n.Ports+n.Trunks+n.Volumes != 0 {
		t.Errorf("left %+v", n)
	}
}

// TestLoserForThePorts: Nova takes two requests with one port. Only one of the instances ever runs, the other says why,
// and both go with the Machine.
func TestLoserForThePorts(t *testing.T) {
	t.Parallel()
	c := theCloud(t, "story")
	a := c.account()
	a.ClusterID = "loser-" + string(uuid.NewUUID()[:5])
	d, err := patientProvider().Open(t.Context(), a)
	must(t, err)
	resolved, err := d.Resolve(t.Context(), c.spec(t, nil))
	must(t, err)
	uid := uuid.NewUUID()
	r := provider.Ref{UID: uid, Name: "worker-twice", Token: machine.Token(uid, 1, "zone")}
	first := upTo(t, d, r, resolved)
	flavor, image := c.ids(t)
	port := c.portOf(t, first.ID)
	tags := []string{"machine-cluster=" + a.ClusterID, "machine-uid=" + string(uid), "machine-token=" + r.Token}
	_, err = servers.Create(t.Context(), c.user.Compute, servers.CreateOpts{
		Name: r.Name, FlavorRef: flavor, ImageRef: image, Networks: []servers.Network{{Port: port}}, Tags: tags,
	}, nil).Extract()
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second instance with the port of the first: %v", err)
	}
	again, err := d.Create(t.Context(), r, resolved)
	if err != nil || again.ID != first.ID {
		t.Errorf("Create = %s, %v, want %s", again.ID, err, first.ID)
	}
	downTo(t, d, r)
	if n := c.count(t, "machine-uid="+string(uid)); n.Servers+n.Ports+n.Trunks != 0 {
		t.Errorf("left %+v", n)
	}
}

// TestNoValidHost: Nova accepts an instance that no host has room for, and says so on it a moment later. Each time it is a
// shortage; the instance goes, the port stays for the next try (SPEC E2, E18).
func TestNoValidHost(t *testing.T) {
	t.Parallel()
	c := theCloud(t, "story")
	a := c.account()
	a.ClusterID = "full-" + string(uuid.NewUUID()[:5])
	d, err := patientProvider().Open(t.Context(), a)
	must(t, err)
	must(t, c.admin.HaveFlavor(t.Context(), "of-no-host", 4, 8000, 30))
	resolved, err := d.Resolve(t.Context(), c.spec(t, map[string]any{"flavor": "of-no-host"}))
	must(t, err)
	uid := uuid.NewUUID()
	r := provider.Ref{UID: uid, Name: "worker-huge", Token: machine.Token(uid, 1, "zone")}
	refused := 0
	for end := time.Now().Add(2 * patience); refused < 2; time.Sleep(5 * time.Second) {
		in, err := d.Create(t.Context(), r, resolved)
		if len(in.Progress) > 0 {
			r.Progress = in.Progress
		}
		switch {
		case err == nil && in.State == provider.StateIncomplete:
		case provider.CodeOf(err) == provider.Exhausted && strings.Contains(err.Error(), "No valid host was found") && strings.Contains(err.Error(), "of-no-host"):
			refused++
			t.Log(err)
		case provider.CodeOf(err) == provider.NotFound && strings.Contains(err.Error(), "is being removed"):
		default:
			t.Fatalf("Create = %+v, %v (%v)", in, err, provider.CodeOf(err))
		}
		if time.Now().After(end) {
			t.Fatalf("refused %d times only", refused)
		}
	}
	if n := c.count(t, "machine-uid="+string(uid)); n.Servers > 1 || n.Ports != 1 || n.Trunks != 1 {
		t.Errorf("made %+v", n)
	}
	downTo(t, d, r)
	if n := c.count(t, "machine-uid="+string(uid)); n.Servers+n.Ports+n.Trunks != 0 {
		t.Errorf("left %+v", n)
	}
}

func upTo(t *testing.T, d provider.Driver, r provider.Ref, resolved []byte) provider.Instance {
	t.Helper()
	rec := record{Ref: r, Resolved: resolved, Attempt: 1}
	for end := time.Now().Add(2 * patience); !rec.up(t, d); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the instance does not come to run")
		}
	}
	found, err := d.Find(t.Context(), r)
	must(t, err)
	return found[0]
}

func downTo(t *testing.T, d provider.Driver, r provider.Ref) {
	t.Helper()
	rec := record{Ref: r}
	for end := time.Now().Add(2 * patience); !rec.down(t, d); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the instance does not go")
		}
	}
}
