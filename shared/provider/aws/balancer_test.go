// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/ec2"
)

func balancedBy(name, kind string) map[string]any {
	return map[string]any{"loadBalancers": []any{map[string]any{"name": name, "type": kind}}}
}

// A load balancer that is not there is refused before anything is launched for it (SPEC E5).
func TestLoadBalancerThatIsNotThereIsRefused(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"classic", "network"} {
		cloud := &ec2.Cloud{}
		region := serve(t, cloud)
		d, _ := region.wired(t, region.account())
		_, err := d.Resolve(t.Context(), spec(balancedBy("typo", kind)))
		if provider.CodeOf(err) != provider.NotFound || !strings.Contains(err.Error(), "providerSpec.value.loadBalancers[0].name") || !strings.Contains(err.Error(), `"typo"`) {
			t.Errorf("%s: Resolve = %v", kind, err)
		}
	}
}

// Credentials that may join a classic load balancer need not be allowed to look at it.
func TestClassicLoadBalancerThatMayNotBeLookedAt(t *testing.T) {
	t.Parallel()
	region := serve(t, &ec2.Cloud{})
	d, w := region.wired(t, region.account())
	w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
		if action == "DescribeLoadBalancers" {
			text := strings.Replace(errorXML("AccessDenied", "not authorized"), "<Response><Errors>", "<ErrorResponse>", 1)
			return page(403, "text/xml", strings.Replace(text, "</Errors><RequestID>5a71e8e6</RequestID></Response>", "</ErrorResponse>", 1))(nil)
		}
		return next()
	})
	if _, err := d.Resolve(t.Context(), spec(balancedBy("apps", "classic"))); err != nil {
		t.Errorf("Resolve = %v", err)
	}
}

// A load balancer that goes while the instance boots ends no attempt: the instance waits for it, and no other is launched.
func TestInstanceWaitsForItsLoadBalancer(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]string{"apps": "classic", "cluster-8trtb-rlgsx-int": "network"} {
		cloud := &ec2.Cloud{Boot: time.Millisecond}
		region := serve(t, cloud)
		d, _ := region.wired(t, region.account())
		resolved, err := d.Resolve(t.Context(), spec(balancedBy(name, kind)))
		must(t, err)
		cloud.RemoveBalancer(name)
		r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
		refusals := 0
		for range 20 {
			i, err := d.Create(t.Context(), r, resolved)
			if err == nil {
				r.Progress = i.Progress
				time.Sleep(2 * time.Millisecond)
				continue
			}
			if refusals++; provider.CodeOf(err).Definite() || !strings.Contains(err.Error(), name) {
				t.Fatalf("%s: Create = %v %v", kind, provider.CodeOf(err), err)
			}
		}
		launches := slices.DeleteFunc(cloud.Calls(), func(call string) bool { return call != "RunInstances" })
		if refusals == 0 || len(cloud.Live()) != 1 || len(launches) > 1 {
			t.Errorf("%s: %d refusals, %d instances, %d launches", kind, refusals, len(cloud.Live()), len(launches))
		}
	}
}

// EC2 shows what is new without its tags at first: to which load balancers it belongs the request says as well.
func TestInstanceThatShowsNoTagsYetJoins(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Boot: time.Millisecond}
	region := serve(t, cloud)
	d, w := region.wired(t, region.account())
	resolved, err := d.Resolve(t.Context(), spec(balancedBy("apps", "classic")))
	must(t, err)
	w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
		resp, err := next()
		if err != nil || action != "DescribeInstances" {
			return resp, err
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		return page(200, "text/xml", tagSets.ReplaceAllString(string(text), ""))(nil)
	})
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
	for range 20 {
		i, err := d.Create(t.Context(), r, resolved)
		must(t, err)
		if i.State != provider.StateIncomplete {
			if targets := cloud.Targets(); len(targets) != 1 || i.UID != r.UID || len(cloud.Live()) != 1 {
				t.Errorf("made for %q, targets %v, %d instances", i.UID, targets, len(cloud.Live()))
			}
			return
		}
		r.Progress = i.Progress
		time.Sleep(2 * time.Millisecond)
	}
	t.Error("never made")
}

var tagSets = regexp.MustCompile(`(?s)<tagSet>.*?</tagSet>`)

// Rights to tag are often bound to the launch: who may not note that an instance has joined keeps it all the same. A refusal
// of the attempt would have it removed and another one launched, time and again (2b.4).
func TestInstanceThatMayNotBeMarkedAsJoined(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Boot: time.Millisecond}
	region := serve(t, cloud)
	d, w := region.wired(t, region.account())
	resolved, err := d.Resolve(t.Context(), spec(balancedBy("apps", "classic")))
	must(t, err)
	w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
		if action == "CreateTags" {
			return page(403, "text/xml", errorXML("UnauthorizedOperation", "You are not authorized to perform this operation."))(nil)
		}
		return next()
	})
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
	refusals := 0
	for range 10 {
		i, err := d.Create(t.Context(), r, resolved)
		if err == nil {
			r.Progress = i.Progress
			time.Sleep(2 * time.Millisecond)
			continue
		}
		if refusals++; provider.CodeOf(err).Definite() || !strings.Contains(err.Error(), "UnauthorizedOperation") || !strings.Contains(err.Error(), "ec2:CreateTags") {
			t.Fatalf("Create = %v %v", provider.CodeOf(err), err)
		}
	}
	if refusals == 0 || len(cloud.Live()) != 1 {
		t.Errorf("%d refusals, %d instances", refusals, len(cloud.Live()))
	}
}

// That a load balancer went between two looks at it is no word that its instance is gone: on that word the Machine goes.
func TestLoadBalancerThatGoesIsNoAbsence(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Boot: time.Millisecond}
	region := serve(t, cloud)
	d, w := region.wired(t, region.account())
	r, _, err := create(t, d, "worker-a", spec(balancedBy("cluster-8trtb-rlgsx-int", "network")))
	must(t, err)
	w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
		if action == "DescribeTargetGroups" {
			text := strings.Replace(errorXML("LoadBalancerNotFound", "gone"), "<Response><Errors>", "<ErrorResponse>", 1)
			return page(400, "text/xml", strings.Replace(text, "</Errors><RequestID>5a71e8e6</RequestID></Response>", "</ErrorResponse>", 1))(nil)
		}
		return next()
	})
	if err := d.Delete(t.Context(), r); err == nil || provider.CodeOf(err) != provider.Unknown || len(cloud.Live()) != 1 {
		t.Errorf("Delete = %v (%v) with %d instances", err, provider.CodeOf(err), len(cloud.Live()))
	}
	w.set(nil)
	if err := d.Delete(t.Context(), r); err != nil || len(cloud.Live()) != 0 {
		t.Errorf("Delete = %v (%v) with %d instances", err, provider.CodeOf(err), len(cloud.Live()))
	}
}

// A load balancer that is gone holds no instance, and its absence is not the instance's: on that word the Machine would go.
func TestInstanceOfALoadBalancerThatIsGone(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Boot: time.Millisecond}
	region := serve(t, cloud)
	d, _ := region.wired(t, region.account())
	r, _, err := create(t, d, "worker-a", spec(balancedBy("cluster-8trtb-rlgsx-int", "network")))
	must(t, err)
	cloud.RemoveBalancer("cluster-8trtb-rlgsx-int")
	if err := d.Delete(t.Context(), r); err != nil || len(cloud.Live()) != 0 {
		t.Errorf("Delete = %v (%v) with %d instances", err, provider.CodeOf(err), len(cloud.Live()))
	}
}

// Why an instance ended before it had joined is told, though another one can be had by another attempt alone.
func TestInstanceThatEndsBeforeItHasJoinedSaysWhy(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	region := serve(t, cloud)
	d, _ := region.wired(t, region.account())
	resolved, err := d.Resolve(t.Context(), spec(balancedBy("apps", "classic")))
	must(t, err)
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
	i, err := d.Create(t.Context(), r, resolved)
	must(t, err)
	r.Progress = i.Progress
	for id := range cloud.Live() {
		cloud.Fail(id, "Client.VolumeLimitExceeded: Volume limit exceeded")
	}
	if _, err := d.Create(t.Context(), r, resolved); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "Volume limit exceeded") {
		t.Errorf("Create = %v (%v)", err, provider.CodeOf(err))
	}
}

// What OpenShift made and let join a target group by its address stays there when it goes, and whoever has the address next gets its
// requests: the tags that the Machine's spec wants name the balancer to Delete, which has no spec (SPEC E10).
func TestInstanceThatWasTakenOverLeavesItsLoadBalancers(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	region := serve(t, cloud)
	d, _ := region.wired(t, region.account())
	r := provider.Ref{UID: uuid.NewUUID(), Name: "master-0", ProviderID: cloud.Add("us-east-2b", "m5.large", map[string]string{tagName: "master-0", d.tagCluster(): owned})}
	made, err := d.named(t.Context(), r)
	must(t, err)
	made[0].Tags = pairs(map[string]string{tagBalancers: "network:cluster-8trtb-rlgsx-int"})
	must(t, d.join(t.Context(), made[0]))
	if n := len(cloud.Targets()); n != 2 {
		t.Fatalf("%d targets, want one by id and one by address", n)
	}
	want, err := d.Tags(spec(map[string]any{"loadBalancers": []any{
		map[string]any{"name": "cluster-8trtb-rlgsx-int", "type": "network"}, map[string]any{"name": "apps", "type": "classic"}, map[string]any{"name": "no name", "type": "network"},
	}}))
	must(t, err)
	must(t, d.Update(t.Context(), r, want))
	found, err := d.Find(t.Context(), r)
	must(t, err)
	if len(found) != 1 || found[0].State != provider.StateRunning || !maps.Equal(found[0].Tags, want) || len(want) != 1 {
		t.Errorf("found is %+v, want tags %v", found, want)
	}
	must(t, d.Delete(t.Context(), r))
	if targets := cloud.Targets(); len(targets) != 0 || len(cloud.Live()) != 0 {
		t.Errorf("targets %v and %d instances are left", targets, len(cloud.Live()))
	}
}

// What was made for its balancers says so already: it is given no further tags, in every scan.
func TestInstanceOfALoadBalancerLacksNoTags(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	region := serve(t, cloud)
	d, _ := region.wired(t, region.account())
	wants := spec(balancedBy("cluster-8trtb-rlgsx-int", "network"))
	_, i, err := create(t, d, "worker-a", wants)
	must(t, err)
	want, err := d.Tags(wants)
	must(t, err)
	if !maps.Equal(i.Tags, want) || len(want) != 1 {
		t.Errorf("it has the tags %v, want %v", i.Tags, want)
	}
}
