// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// What is there beside instances: three subnets, two security groups, an image, a network, two types.

// usualAccount is whose a cloud is that names nobody.
const usualAccount = "123456789012"

// whose answers as the token service does (API_GetCallerIdentity).
func (c *Cloud) whose(url.Values) (any, *refusal) {
	return struct {
		Account string
	}{cmp.Or(c.Account, usualAccount)}, nil
}

type named struct {
	id   string
	name string // its tag Name
	zone string
}

var (
	allSubnets = []named{{"subnet-a", "cluster-8trtb-rlgsx-private-us-east-2a", "us-east-2a"}, {"subnet-b", "cluster-8trtb-rlgsx-private-us-east-2b", "us-east-2b"}, {"subnet-c", "cluster-8trtb-rlgsx-private-us-east-2c", "us-east-2c"}}
	allGroups  = []named{{"sg-1", "cluster-8trtb-rlgsx-worker-sg", ""}, {"sg-2", "cluster-8trtb-rlgsx-lb", ""}}
	allImages  = []named{{"ami-0f1d83dd6ffe4c9de", "rhcos", ""}}
)

// selected returns those that all filters of a call select.
func selected(all []named, form url.Values, idFilter string) []named {
	return slices.DeleteFunc(slices.Clone(all), func(n named) bool {
		for _, f := range filtersOf(form) {
			ok := f.name == idFilter && slices.Contains(f.values, n.id) ||
				f.name == "tag:Name" && slices.ContainsFunc(f.values, func(v string) bool { return like(v, n.name) }) ||
				f.name == "availability-zone" && slices.Contains(f.values, n.zone)
			if !ok {
				return true
			}
		}
		return false
	})
}

// like matches the wildcard of filters at the end, or at the beginning.
func like(pattern, s string) bool {
	prefix, wild := strings.CutSuffix(pattern, "*")
	suffix, before := strings.CutPrefix(pattern, "*")
	return pattern == s || wild && strings.HasPrefix(s, prefix) || before && strings.HasSuffix(s, suffix)
}

func subnets(form url.Values) (any, *refusal) {
	type item struct {
		ID   string `xml:"subnetId"`
		Zone string `xml:"availabilityZone"`
	}
	var out struct {
		Items []item `xml:"subnetSet>item"`
	}
	for _, n := range selected(allSubnets, form, "subnet-id") {
		out.Items = append(out.Items, item{n.id, n.zone})
	}
	return out, nil
}

func groups(form url.Values) (any, *refusal) {
	type item struct {
		ID string `xml:"groupId"`
	}
	var out struct {
		Items []item `xml:"securityGroupInfo>item"`
	}
	for _, n := range selected(allGroups, form, "group-id") {
		out.Items = append(out.Items, item{n.id})
	}
	return out, nil
}

func images(form url.Values) (any, *refusal) {
	type item struct {
		ID    string `xml:"imageId"`
		State string `xml:"imageState"`
		Root  string `xml:"rootDeviceName"`
	}
	var out struct {
		Items []item `xml:"imagesSet>item"`
	}
	for _, n := range selected(allImages, form, "image-id") {
		out.Items = append(out.Items, item{n.id, "available", "/dev/xvda"})
	}
	return out, nil
}

func vpcs(url.Values) (any, *refusal) {
	return struct {
		ID      string `xml:"vpcSet>item>vpcId"`
		Options string `xml:"vpcSet>item>dhcpOptionsId"`
	}{"vpc-1", "dopt-1"}, nil
}

func dhcpOptions(url.Values) (any, *refusal) {
	return struct {
		ID    string `xml:"dhcpOptionsSet>item>dhcpOptionsId"`
		Key   string `xml:"dhcpOptionsSet>item>dhcpConfigurationSet>item>key"`
		Value string `xml:"dhcpOptionsSet>item>dhcpConfigurationSet>item>valueSet>item>value"`
	}{"dopt-1", "domain-name", "us-east-2.compute.internal example.com"}, nil
}

func instanceTypes(form url.Values) (any, *refusal) {
	type gpu struct {
		Maker string `xml:"manufacturer"`
		Count int    `xml:"count"`
	}
	type item struct {
		Name   string `xml:"instanceType"`
		Arch   string `xml:"processorInfo>supportedArchitectures>item"`
		CPUs   int    `xml:"vCpuInfo>defaultVCpus"`
		Memory int    `xml:"memoryInfo>sizeInMiB"`
		GPUs   []gpu  `xml:"gpuInfo>gpus>item,omitempty"`
	}
	type page struct {
		Items []item `xml:"instanceTypeSet>item"`
		Next  string `xml:"nextToken,omitempty"`
	}
	if form.Get("NextToken") == "" {
		return page{[]item{{"p3.2xlarge", "x86_64", 8, 62464, []gpu{{"NVIDIA", 1}}}, {"m5a.4xlarge", "x86_64", 16, 65536, nil}}, "2"}, nil
	}
	return page{[]item{{"m6g.large", "arm64", 2, 8192, nil}}, ""}, nil
}

func offerings(url.Values) (any, *refusal) {
	type item struct {
		Name     string `xml:"instanceType"`
		Location string `xml:"location"`
	}
	return struct {
		Items []item `xml:"instanceTypeOfferingSet>item"`
	}{[]item{{"m5a.4xlarge", "us-east-2b"}, {"m5a.4xlarge", "us-east-2a"}, {"m6g.large", "us-east-2a"}}}, nil
}

// Of load balancers: a classic one and a network one, with a target group of ids and one of addresses.
const (
	classicBalancer = "apps"
	networkBalancer = "cluster-8trtb-rlgsx-int"
)

// RemoveBalancer takes a load balancer away.
func (c *Cloud) RemoveBalancer(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.without = append(c.without, name)
}

func (c *Cloud) balancers(form url.Values) (any, *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	there := func(names []string, has string) bool {
		return len(names) == 1 && names[0] == has && !slices.Contains(c.without, has)
	}
	if classic := list(form, "LoadBalancerNames.member"); there(classic, classicBalancer) {
		return struct {
			Name string `xml:"LoadBalancerDescriptions>member>LoadBalancerName"`
		}{classic[0]}, nil
	}
	if !there(list(form, "Names.member"), networkBalancer) {
		return nil, refuse(http.StatusBadRequest, "LoadBalancerNotFound", "One or more load balancers not found")
	}
	return struct {
		ARN string `xml:"LoadBalancers>member>LoadBalancerArn"`
	}{"arn:lb/int"}, nil
}

func targetGroups(url.Values) (any, *refusal) {
	type item struct {
		ARN  string `xml:"TargetGroupArn"`
		Type string `xml:"TargetType"`
	}
	return struct {
		Items []item `xml:"TargetGroups>member"`
	}{[]item{{"arn:tg/aint", "instance"}, {"arn:tg/sint", "ip"}}}, nil
}

func (c *Cloud) register(form url.Values) (any, *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.targets == nil {
		c.targets = map[string]bool{}
	}
	if slices.Contains(c.without, form.Get("LoadBalancerName")) {
		return nil, refuse(http.StatusBadRequest, "LoadBalancerNotFound", "There is no ACTIVE Load Balancer named '%s'", form.Get("LoadBalancerName"))
	}
	for _, name := range targetsOf(form) {
		c.targets[name] = true
	}
	return struct{}{}, nil
}

func (c *Cloud) deregister(form url.Values) (any, *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range targetsOf(form) {
		delete(c.targets, name)
	}
	return struct{}{}, nil
}

func targetsOf(form url.Values) []string {
	if name := form.Get("LoadBalancerName"); name != "" {
		return []string{name + "/" + form.Get("Instances.member.1.InstanceId")}
	}
	return []string{form.Get("TargetGroupArn") + "/" + form.Get("Targets.member.1.Id")}
}
