// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/throttle"
	"github.com/machine-functions/machine-functions/test/ec2"
)

// create makes an instance of a spec, as often as it takes.
func create(t *testing.T, d *driver, name string, spec json.RawMessage) (provider.Ref, provider.Instance, error) {
	t.Helper()
	r := provider.Ref{UID: uuid.NewUUID(), Name: name, Token: "token-" + name}
	resolved, err := d.Resolve(t.Context(), spec)
	if err != nil {
		return r, provider.Instance{}, err
	}
	i, err := proceed(t.Context(), d, r, resolved)
	return r, i, err
}

// proceed calls Create until the instance is complete. Errors that prove nothing are tried again.
func proceed(ctx context.Context, d *driver, r provider.Ref, resolved json.RawMessage) (provider.Instance, error) {
	for try := 0; ; try++ {
		i, err := d.Create(ctx, r, resolved)
		switch {
		case try == 100, err != nil && provider.CodeOf(err) != provider.Unknown && provider.CodeOf(err) != provider.Throttled:
			return i, err
		case err == nil && i.State != provider.StateIncomplete:
			return i, nil
		case err == nil:
			r.Progress = i.Progress
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestEveryFieldArrives(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	a, data := serve(t, cloud).account(), []byte{0, 0xff, 0xfe, '{', 0x80}
	a.UserData = func(context.Context, string) (map[string][]byte, string, error) {
		return map[string][]byte{"userData": data}, "1", nil
	}
	d, _ := serve(t, cloud).wired(t, a)
	r, i, err := create(t, d, "worker-a", spec(map[string]any{
		"keyName": "ops", "publicIp": true, "deviceIndex": 0, "networkInterfaceType": "EFA", "marketType": "Spot",
		"spotMarketOptions":      map[string]any{"maxPrice": "0.5"},
		"metadataServiceOptions": map[string]any{"authentication": "Required"}, "placementGroupName": "spread", "placementGroupPartition": 2,
		"cpuOptions": map[string]any{"confidentialCompute": "AMDEncryptedVirtualizationNestedPaging"},
		"tags":       []any{map[string]any{"name": "owner", "value": "team-a"}, map[string]any{"name": "owner", "value": "team-b"}},
		"placement": map[string]any{
			"region": "us-east-2", "availabilityZone": "us-east-2b", "tenancy": "host",
			"host": map[string]any{"affinity": "DedicatedHost", "dedicatedHost": map[string]any{"id": "h-0123456789abcdef0"}},
		},
		"blockDevices": []any{
			map[string]any{"ebs": map[string]any{"volumeSize": 120, "volumeType": "gp3", "iops": 3000, "throughputMib": 250, "encrypted": true, "kmsKey": map[string]any{"arn": "arn:kms"}}},
			map[string]any{"deviceName": "/dev/xvdb", "ebs": map[string]any{"volumeSize": 10, "deleteOnTermination": false}},
		},
	}))
	must(t, err)
	form := cloud.Live()[i.ID]
	for name, want := range map[string]string{
		"ClientToken": r.Token + ".us-east-2b", "MinCount": "1", "MaxCount": "1", "ImageId": "ami-0f1d83dd6ffe4c9de", "InstanceType": "m5a.4xlarge",
		"KeyName": "ops", "IamInstanceProfile.Name": "cluster-8trtb-rlgsx-worker-profile",
		"NetworkInterface.1.SubnetId": "subnet-b", "NetworkInterface.1.SecurityGroupId.1": "sg-1", "NetworkInterface.1.SecurityGroupId.2": "sg-2",
		"NetworkInterface.1.AssociatePublicIpAddress": "true", "NetworkInterface.1.DeviceIndex": "0", "NetworkInterface.1.InterfaceType": "efa",
		"NetworkInterface.1.DeleteOnTermination": "true",
		"Placement.AvailabilityZone":             "us-east-2b", "Placement.Tenancy": "host", "Placement.Affinity": "host", "Placement.HostId": "h-0123456789abcdef0",
		"Placement.GroupName": "spread", "Placement.PartitionNumber": "2",
		"InstanceMarketOptions.MarketType": "spot", "InstanceMarketOptions.SpotOptions.MaxPrice": "0.5", "InstanceMarketOptions.SpotOptions.SpotInstanceType": "one-time",
		"MetadataOptions.HttpTokens": "required", "CpuOptions.AmdSevSnp": "enabled",
		"BlockDeviceMapping.1.DeviceName": "/dev/xvda", "BlockDeviceMapping.1.Ebs.VolumeSize": "120", "BlockDeviceMapping.1.Ebs.VolumeType": "gp3",
		"BlockDeviceMapping.1.Ebs.Iops": "3000", "BlockDeviceMapping.1.Ebs.Throughput": "250", "BlockDeviceMapping.1.Ebs.Encrypted": "true",
		"BlockDeviceMapping.1.Ebs.KmsKeyId": "arn:kms", "BlockDeviceMapping.1.Ebs.DeleteOnTermination": "true",
		"BlockDeviceMapping.2.DeviceName": "/dev/xvdb", "BlockDeviceMapping.2.Ebs.DeleteOnTermination": "false",
		"TagSpecification.1.ResourceType": "instance", "TagSpecification.2.ResourceType": "volume",
		"UserData": base64.StdEncoding.EncodeToString(data), // byte for byte, whatever it is
	} {
		if form.Get(name) != want {
			t.Errorf("%s = %q, want %q", name, form.Get(name), want)
		}
	}
	want := map[string]string{"Name": "worker-a", "kubernetes.io/cluster/cluster-8trtb-rlgsx": "owned", "machine-functions/machine-uid": string(r.UID), "owner": "team-a"}
	if diff := cmp.Diff(want, cloud.TagsOf(i.ID)); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if i.ProviderID != "aws:///us-east-2b/"+i.ID || i.Region != "us-east-2" || i.Zone != "us-east-2b" || i.Type != "m5a.4xlarge" || !i.Spot || i.Token != r.Token {
		t.Errorf("instance = %+v", i)
	}
	addresses := []corev1.NodeAddress{
		{Type: "InternalIP", Address: "2600:1f16::b001"}, {Type: "InternalIP", Address: "10.0.0.2"}, {Type: "ExternalIP", Address: "198.51.100.7"},
		{Type: "InternalDNS", Address: "ip-10-0-0-2.us-east-2.compute.internal"}, {Type: "Hostname", Address: "ip-10-0-0-2.us-east-2.compute.internal"},
		{Type: "InternalDNS", Address: "ip-10-0-0-2.example.com"}, {Type: "ExternalDNS", Address: "ec2-198-51-100-7.us-east-2.compute.amazonaws.com"},
	}
	if diff := cmp.Diff(addresses, i.Addresses); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

func TestReservationsAreUsed(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	d, _ := serve(t, cloud).wired(t, serve(t, cloud).account())
	_, i, err := create(t, d, "worker-a", spec(map[string]any{"marketType": "CapacityBlock", "capacityReservationId": "cr-0123456789abcdef0"}))
	must(t, err)
	form := cloud.Live()[i.ID]
	if id := form.Get("CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId"); id != "cr-0123456789abcdef0" || form.Get("InstanceMarketOptions.MarketType") != "capacity-block" || i.Spot {
		t.Errorf("reservation %q, market %q", id, form.Get("InstanceMarketOptions.MarketType"))
	}
}

func TestInstanceJoinsAndLeavesItsLoadBalancers(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Boot: 30 * time.Millisecond}
	d, _ := serve(t, cloud).wired(t, serve(t, cloud).account())
	r, i, err := create(t, d, "master-0", spec(map[string]any{"loadBalancers": []any{
		map[string]any{"name": "apps", "type": "classic"}, map[string]any{"name": "cluster-8trtb-rlgsx-int", "type": "network"},
	}}))
	must(t, err)
	got := cloud.Targets()
	slices.Sort(got)
	if want := []string{"apps/" + i.ID, "arn:tg/aint/" + i.ID, "arn:tg/sint/10.0.0.2"}; !slices.Equal(got, want) {
		t.Errorf("targets %v, want %v", got, want)
	}
	if i.State != provider.StateRunning {
		t.Errorf("it is %s", i.State)
	}
	must(t, d.Delete(t.Context(), r))
	if got := cloud.Targets(); !slices.Equal(got, []string{"apps/" + i.ID}) { // classic ones notice by themselves
		t.Errorf("targets %v are left", got)
	}
}

func TestInstanceThatHasYetToJoinIsNoInstance(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Boot: time.Hour}
	d, _ := serve(t, cloud).wired(t, serve(t, cloud).account())
	r := provider.Ref{UID: uuid.NewUUID(), Name: "master-0", Token: "t"}
	resolved, err := d.Resolve(t.Context(), spec(map[string]any{"loadBalancers": []any{map[string]any{"name": "apps", "type": "classic"}}}))
	must(t, err)
	i, err := d.Create(t.Context(), r, resolved)
	if err != nil || i.State != provider.StateIncomplete {
		t.Fatalf("Create = %+v, %v", i, err)
	}
	all, err := d.List(t.Context())
	if err != nil || len(all) != 1 || all[0].State != provider.StateIncomplete || all[0].UID != r.UID {
		t.Errorf("List = %+v, %v", all, err)
	}
}

// The user data changed while an answer was lost: the attempt's instance is the Machine's all the same. That it does not show
// is a refusal of this call alone: for the one before it the attempt waits as long as it may surface, and not for ever.
func TestTokenOfOtherParametersLeadsToItsInstance(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Lag: time.Hour}
	a := serve(t, cloud).account()
	d, _ := serve(t, cloud).wired(t, a)
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
	resolved, err := d.Resolve(t.Context(), spec(nil))
	must(t, err)
	first, err := d.Create(t.Context(), r, resolved)
	must(t, err)
	d.account.UserData = func(context.Context, string) (map[string][]byte, string, error) {
		return map[string][]byte{"userData": []byte("rotated")}, "2", nil
	}
	_, err = d.Create(t.Context(), r, resolved)
	if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "user data") {
		t.Fatalf("Create while reads lag = %v", err)
	}
	cloud.CatchUp()
	again, err := proceed(t.Context(), d, r, resolved)
	if err != nil || again.ID != first.ID || len(cloud.Live()) != 1 {
		t.Errorf("Create = %s, %v, want %s", again.ID, err, first.ID)
	}
	cloud.End(first.ID)
	if _, err = d.Create(t.Context(), r, resolved); provider.CodeOf(err) != provider.Exhausted {
		t.Errorf("Create after its end = %v, want a refusal", err)
	}
}

// Once RunInstances has answered, no other read decides about the attempt: its refusal would have the next one make another
// instance.
func TestReadsAfterTheLaunchRefuseNothing(t *testing.T) {
	t.Parallel()
	for action, deny := range map[string]string{"DescribeVpcs": "RequestLimitExceeded", "DescribeDhcpOptions": "UnauthorizedOperation"} {
		cloud := &ec2.Cloud{}
		region := serve(t, cloud)
		d, w := region.wired(t, region.account())
		resolved, err := d.Resolve(t.Context(), spec(nil))
		must(t, err)
		w.set(func(a string, next func() (*http.Response, error)) (*http.Response, error) {
			if a == action {
				return page(403, "text/xml", errorXML(deny, "no"))(nil)
			}
			return next()
		})
		i, err := d.Create(t.Context(), provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}, resolved)
		if err != nil || cloud.Live()[i.ID] == nil || len(i.Addresses) == 0 {
			t.Errorf("%s of %s: Create = %+v, %v", deny, action, i, err)
		}
	}
}

// Of an attempt that was made with other parameters something exists, whatever the question for it is answered.
func TestLookForAnAttemptRefusesNothing(t *testing.T) {
	t.Parallel()
	for _, deny := range []string{"RequestLimitExceeded", "UnauthorizedOperation"} {
		cloud := &ec2.Cloud{}
		region := serve(t, cloud)
		d, w := region.wired(t, region.account())
		r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
		resolved, err := d.Resolve(t.Context(), spec(nil))
		must(t, err)
		_, err = d.Create(t.Context(), r, resolved)
		must(t, err)
		d.account.UserData = func(context.Context, string) (map[string][]byte, string, error) {
			return map[string][]byte{"userData": []byte("rotated")}, "2", nil
		}
		w.set(func(a string, next func() (*http.Response, error)) (*http.Response, error) {
			if a == "DescribeInstances" {
				return page(403, "text/xml", errorXML(deny, "no"))(nil)
			}
			return next()
		})
		if _, err = d.Create(t.Context(), r, resolved); provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), deny) {
			t.Errorf("Create = %v (%v), want Unknown naming %s", err, provider.CodeOf(err), deny)
		}
	}
}

func TestTokenIsOfAZone(t *testing.T) {
	t.Parallel()
	r := provider.Ref{Token: strings.Repeat("t", 32)}
	if a, b := clientToken(r, "us-east-2a"), clientToken(r, "us-east-2b"); a == b || len(a) > longestToken || attemptOf(a) != r.Token {
		t.Errorf("tokens %q, %q", a, b)
	}
}

// The scan reads a region page by page with one list, however many instances it has.
func TestListCostsAHandfulOfCalls(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	region := serve(t, cloud)
	d, w := region.wired(t, region.account())
	add := func(n int) {
		for range n {
			cloud.Add("us-east-2b", "m5.large", map[string]string{tagUID: string(uuid.NewUUID()), d.tagCluster(): owned})
		}
	}
	list := func(want, calls int) {
		t.Helper()
		before := len(w.since(0))
		all, err := d.every(t.Context()) // without any deadline: many wait for it together with other tests
		if asked := w.since(before); err != nil || len(all) != want || len(asked) != calls {
			t.Errorf("a list of %d, %v with calls %v, want %d with %d", len(all), err, asked, want, calls)
		}
	}
	w.next.(throttle.Transport).Base.(*http.Transport).ResponseHeaderTimeout = 0
	add(1000)
	list(1000, 1)
	add(4000)
	list(5000, 1+len(parts))
}

// EC2 needs two seconds and more for a page of a thousand, and a list has ten: pages are asked for side by side.
func TestPagesAreAskedForSideBySide(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Page: 8}
	region := serve(t, cloud)
	d, w := region.wired(t, region.account())
	for range 40 {
		cloud.Add("us-east-2b", "m5.large", map[string]string{tagUID: string(uuid.NewUUID()), d.tagCluster(): owned})
	}
	var mu sync.Mutex
	now, most := map[string]int{}, map[string]int{}
	w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
		kind := action
		if strings.HasPrefix(action, "DescribeInstanceType") {
			kind = "types"
		}
		mu.Lock()
		now[kind]++
		most[kind] = max(most[kind], now[kind])
		mu.Unlock()
		time.Sleep(50 * time.Millisecond)
		mu.Lock()
		now[kind]--
		mu.Unlock()
		return next()
	})
	if all, err := d.List(t.Context()); err != nil || len(all) != 40 || most["DescribeInstances"] < 4 {
		t.Errorf("List = %d, %v, with %d calls at a time", len(all), err, most["DescribeInstances"])
	}
	if _, err := d.InstanceTypes(t.Context()); err != nil || most["types"] < 2 {
		t.Errorf("InstanceTypes: %v, with %v calls at a time", err, most)
	}
}

// A cloud that speaks EC2's protocol and knows no wildcards in ids shows nothing in any part: that is no absence (R-S12).
func TestCloudWithoutPartsIsReadPageByPage(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Page: 4}
	region := serve(t, cloud)
	d, w := region.wired(t, region.account())
	for range 10 {
		cloud.Add("us-east-2b", "m5.large", map[string]string{tagUID: string(uuid.NewUUID()), d.tagCluster(): owned})
	}
	var calls atomic.Int32
	w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
		if n := calls.Add(1); action == "DescribeInstances" && n > 1 && int(n) <= 1+len(parts) {
			return page(200, "text/xml", `<DescribeInstancesResponse><reservationSet/></DescribeInstancesResponse>`)(nil)
		}
		return next()
	})
	if all, err := d.List(t.Context()); err != nil || len(all) != 10 {
		t.Errorf("List = %d, %v", len(all), err)
	}
}

func TestTypesHaveCapacityZonesAndPrice(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	r := serve(t, cloud)
	d, _ := r.wired(t, r.account())
	d.prices = func(context.Context, string, string) (map[string]float64, error) {
		return map[string]float64{"m6g.large": 0.077}, nil
	}
	got, err := d.InstanceTypes(t.Context())
	must(t, err)
	want := []provider.InstanceType{
		{Name: "m5a.4xlarge", Arch: "amd64", MilliCPU: 16000, Memory: 64 << 30, Zones: []string{"us-east-2a", "us-east-2b"}},
		{Name: "m6g.large", Arch: "arm64", MilliCPU: 2000, Memory: 8 << 30, Zones: []string{"us-east-2a"}, PriceHour: 0.077},
		{Name: "p3.2xlarge", Arch: "amd64", MilliCPU: 8000, Memory: 61 << 30, GPU: 1, GPUType: "nvidia.com/gpu"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
}

// GPUs are offered as what the device plugin of their maker calls them; of a maker that is not known nobody says (E13).
func TestGPUsAreOfTheirMaker(t *testing.T) {
	t.Parallel()
	for maker, want := range map[string]string{"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Habana": "habana.ai/gaudi", "Another": ""} {
		it := offered(types.InstanceTypeInfo{GpuInfo: &types.GpuInfo{Gpus: []types.GpuDeviceInfo{{Manufacturer: &maker, Count: new(int32(8))}}}})
		if it.GPU != 8 || it.GPUType != want {
			t.Errorf("%s: %d of %q, want 8 of %q", maker, it.GPU, it.GPUType, want)
		}
	}
}

// A mistake in the ConfigMap of prices takes no capacity away: it is told with every type (E13).
func TestTypesHaveCapacityWithoutTheirPrice(t *testing.T) {
	t.Parallel()
	region := serve(t, &ec2.Cloud{})
	d, _ := region.wired(t, region.account())
	d.prices = func(context.Context, string, string) (map[string]float64, error) {
		return nil, provider.Errorf(provider.Exhausted, "ConfigMap machines/aws-prices: key us-east-2: not a number")
	}
	all, err := d.InstanceTypes(t.Context())
	must(t, err)
	for _, it := range all {
		if it.MilliCPU == 0 || it.PriceHour != 0 || !strings.Contains(it.Problem, "aws-prices") {
			t.Errorf("%+v", it)
		}
	}
	if len(all) == 0 {
		t.Error("no types")
	}
}

// A price of 0 is unknown here, which is told with its type, as is where it would count; other types know nothing of it (E13).
func TestPriceOfNothingIsTold(t *testing.T) {
	t.Parallel()
	region := serve(t, &ec2.Cloud{})
	d, _ := region.wired(t, region.account())
	d.prices = func(context.Context, string, string) (map[string]float64, error) {
		return map[string]float64{"m6g.large": 0}, nil
	}
	all, err := d.InstanceTypes(t.Context())
	must(t, err)
	for _, it := range all {
		told := strings.Contains(it.Problem, "aws-prices") && strings.Contains(it.Problem, machine.ConfigMapPrices)
		if it.MilliCPU == 0 || it.PriceHour != 0 || told != (it.Name == "m6g.large") {
			t.Errorf("%+v", it)
		}
	}
}

// The credentials that OpenShift makes allow to ask for types, and not where they are offered.
func TestTypesNeedNoRightToTheirZones(t *testing.T) {
	t.Parallel()
	r := serve(t, &ec2.Cloud{Deny: "DescribeInstanceTypeOfferings"})
	d, _ := r.wired(t, r.account())
	if got, err := d.InstanceTypes(t.Context()); err != nil || len(got) != 3 || got[0].MilliCPU != 16000 || got[0].Zones != nil {
		t.Errorf("types = %+v, %v", got, err)
	}
	r = serve(t, &ec2.Cloud{Deny: "DescribeInstanceTypes"})
	d, _ = r.wired(t, r.account())
	if _, err := d.InstanceTypes(t.Context()); provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "machines/aws-cloud-credentials") {
		t.Errorf("types that may not be asked for: %v", err)
	}
}
