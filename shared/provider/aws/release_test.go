// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
	fake "github.com/machine-functions/machine-functions/test/ec2"
)

// hostOf allocates a host that carries tags.
func (d *driver) hostOf(t *testing.T, token string, tags map[string]string) string {
	t.Helper()
	out, err := d.ec2.AllocateHosts(t.Context(), &ec2.AllocateHostsInput{
		AvailabilityZone: aws.String("us-east-2b"), InstanceType: aws.String("m5.large"), Quantity: aws.Int32(1), ClientToken: &token,
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeDedicatedHost, Tags: pairs(tags)}},
	})
	must(t, err)
	return out.HostIds[0]
}

// What a call gives back is what it is about, and no other Machine's, no other attempt's, and no other cluster's (R-S3).
func TestWhichHostsAreGivenBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ref      provider.Ref
		progress string // the host that it names
		by       string // the host whose id is asked for
		goes     string
	}{
		"all of a Machine":                        {ref: provider.Ref{UID: "mine"}, goes: "former mine"},
		"all of a Machine, and the one it names":  {ref: provider.Ref{UID: "mine"}, progress: "mine", goes: "former mine"},
		"of one attempt the one that it names":    {ref: provider.Ref{UID: "mine", Attempt: true, Token: "t"}, progress: "mine", goes: "mine"},
		"of one attempt that names none, none":    {ref: provider.Ref{UID: "mine", Attempt: true, Token: "t"}},
		"of one attempt not another Machine's":    {ref: provider.Ref{UID: "mine", Attempt: true, Token: "t"}, progress: "theirs"},
		"a leftover by its id":                    {by: "theirs", goes: "theirs"},
		"a leftover by its id, another cluster's": {by: "foreign"},
		"what is no host":                         {ref: provider.Ref{ID: "i-0123456789abcdef0"}},
		"nothing":                                 {},
	} {
		region := serve(t, &fake.Cloud{})
		d, _ := region.wired(t, region.account())
		ours := func(uid string) map[string]string { return map[string]string{tagUID: uid, d.tagCluster(): owned} }
		all := map[string]string{
			"mine": d.hostOf(t, "1", ours("mine")), "former": d.hostOf(t, "2", ours("mine")), "theirs": d.hostOf(t, "3", ours("theirs")),
			"foreign": d.hostOf(t, "4", map[string]string{tagUID: "mine", tagCluster + "test": owned}),
		}
		r := c.ref
		r.Name, r.Began = "worker-a", time.Now().Add(-horizon)
		if c.progress != "" {
			r.Progress = []byte(`{"host":"` + all[c.progress] + `"}`)
		}
		if c.by != "" {
			r.ID = all[c.by]
		}
		err := d.Delete(t.Context(), r)
		there, left := map[string]bool{}, []string{}
		hosts, missed := d.hosts(t.Context())
		must(t, missed)
		for _, h := range hosts {
			there[aws.ToString(h.HostId)] = true
		}
		for _, of := range []string{"former", "mine", "theirs"} {
			if !there[all[of]] {
				left = append(left, of)
			}
		}
		if got := strings.Join(left, " "); got != c.goes || c.goes != "" && err != nil || c.goes == "" && provider.CodeOf(err) != provider.NotFound {
			t.Errorf("%s: Delete = %v, given back: %q, want %q", name, err, got, c.goes)
		}
	}
}

// A host that could not be looked at, or given back, is paid for: nothing is not what is left.
func TestHostWithoutAnAnswerIsNotGone(t *testing.T) {
	t.Parallel()
	for f := range faults {
		for _, c := range []struct {
			action string
			n      int
			shown  bool
		}{{"DescribeHosts", 1, true}, {"DescribeHosts", 2, false}, {"ReleaseHosts", 1, true}} {
			d, w, r, _ := allocated(t, &fake.Cloud{})
			if !c.shown { // by its id alone, as it is too new for the list
				r.UID = "unlisted"
			}
			once(w, c.action, c.n, f)
			if err := d.Delete(t.Context(), r); err == nil || provider.CodeOf(err) == provider.NotFound {
				t.Errorf("%s of %s: Delete = %v", f, c.action, err)
			}
		}
	}
}

// An attempt that could not look for hosts, give one back or allocate one has made nothing, says why, and leaves one host in the end.
func TestHostThatIsNotAllocatedIsTold(t *testing.T) {
	t.Parallel()
	for f, fault := range faults {
		for _, action := range []string{"DescribeHosts", "ReleaseHosts", "AllocateHosts"} {
			cloud := &fake.Cloud{}
			d, w, r, resolved := allocated(t, cloud)
			cloud.BreakHosts()
			r = provider.Ref{UID: r.UID, Name: r.Name, Token: "t2"}
			once(w, action, 1, f)
			if i, err := d.Create(t.Context(), r, resolved); provider.CodeOf(err) != fault.code || err == nil || len(cloud.Live()) != 0 {
				t.Errorf("%s of %s: Create = %+v, %v", f, action, i, err)
			}
			w.set(nil)
			other, _ := serve(t, cloud).wired(t, serve(t, cloud).account()) // whom nobody told to wait
			if _, err := other.Create(t.Context(), r, resolved); err != nil || len(cloud.Hosts()) != 1 {
				t.Errorf("%s of %s: then %v with %d hosts", f, action, err, len(cloud.Hosts()))
			}
		}
	}
	cloud := &fake.Cloud{}
	region := serve(t, cloud)
	d, _ := region.wired(t, region.account())
	cloud.Exhaust(true)
	if _, _, err := create(t, d, "worker-a", onHost()); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "placement.host.dedicatedHost") {
		t.Errorf("Create without room for hosts = %v", err)
	}
}

// The next attempt takes a host that it can use, as far as EC2 tells; with any other it would be refused for ever.
func TestWhichHostFits(t *testing.T) {
	t.Parallel()
	of := func(kind *string) *types.HostProperties { return &types.HostProperties{InstanceType: kind} }
	req := request{Zone: "a", Spec: providerspec.AWS{InstanceType: "m5.large"}}
	for name, c := range map[string]struct {
		host types.Host
		fits bool
	}{
		"available":             {types.Host{State: "available", AvailabilityZone: aws.String("a"), HostProperties: of(aws.String("m5.large"))}, true},
		"being allocated":       {types.Host{State: "pending", AvailabilityZone: aws.String("a"), HostProperties: of(aws.String("m5.large"))}, true},
		"of a family":           {types.Host{State: "available", AvailabilityZone: aws.String("a"), HostProperties: of(nil)}, true},
		"of which less is told": {types.Host{State: "available", AvailabilityZone: aws.String("a")}, true},
		"broken":                {types.Host{State: "permanent-failure", AvailabilityZone: aws.String("a")}, false},
		"of another zone":       {types.Host{State: "available", AvailabilityZone: aws.String("b")}, false},
		"of another type":       {types.Host{State: "available", AvailabilityZone: aws.String("a"), HostProperties: of(aws.String("m5.xlarge"))}, false},
	} {
		if got := fits(c.host, req); got != c.fits {
			t.Errorf("%s: fits %v", name, got)
		}
	}
}

// What EC2 shows as released is no host any more, and one that carries an instance is no leftover: nobody waits for the one, or gives the other
// back.
func TestHostsThatAreNoLeftovers(t *testing.T) {
	t.Parallel()
	cloud := &fake.Cloud{}
	d, w, r, resolved := allocated(t, cloud)
	id := slices.Collect(maps.Keys(cloud.Hosts()))[0]
	for state, want := range map[string]int{"available": 1, "permanent-failure": 1, "released": 0, "released-permanent-failure": 0} {
		w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
			if action == "DescribeHosts" {
				return page(200, "text/xml", `<DescribeHostsResponse><hostSet><item><hostId>`+id+`</hostId><state>`+state+`</state></item></hostSet></DescribeHostsResponse>`)(nil)
			}
			return next()
		})
		if left, err := d.List(t.Context()); err != nil || len(left) != want || want == 1 && left[0].ID != id {
			t.Errorf("%s: List = %+v, %v", state, left, err)
		}
		all, err := d.host(t.Context(), id)
		if err != nil || len(all) != 1 || released(all[0]) != (want == 0) {
			t.Errorf("%s: the host is %+v, %v", state, all, err)
		}
	}
	w.set(nil)
	i, err := proceed(t.Context(), d, r, resolved)
	must(t, err)
	if left, err := d.List(t.Context()); err != nil || len(left) != 1 || left[0].ID != i.ID {
		t.Errorf("beside the instance on its host: List = %+v, %v", left, err)
	}
}

// An answer that does not list hosts, as of something else than EC2, says nothing of any.
func TestHostsThatNothingTellsOfAreNotGone(t *testing.T) {
	t.Parallel()
	d, w, r, _ := allocated(t, &fake.Cloud{})
	w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
		if action == "DescribeHosts" {
			return page(200, "text/xml", `<DescribeHostsResponse/>`)(nil)
		}
		return next()
	})
	_, err := d.host(t.Context(), "h-0123456789abcdef0")
	if err == nil || provider.CodeOf(err) != provider.Unknown {
		t.Errorf("a host by its id: %v", err)
	}
	r.Began = time.Now().Add(-horizon)
	if err := d.Delete(t.Context(), r); err == nil || provider.CodeOf(err) != provider.Unknown {
		t.Errorf("Delete = %v", err)
	}
}
