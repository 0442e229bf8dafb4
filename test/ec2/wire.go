// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// The shapes of the API model (ec2-2016-11-15), as far as they are read.

type describeInstances struct {
	Reservations []reservationItem `xml:"reservationSet>item"`
	NextToken    string            `xml:"nextToken,omitempty"`
}

type reservationItem struct {
	ID        string         `xml:"reservationId"`
	Owner     string         `xml:"ownerId"`
	Instances []instanceItem `xml:"instancesSet>item"`
}

type instanceItem struct {
	ID         string     `xml:"instanceId"`
	Image      string     `xml:"imageId"`
	StateCode  int        `xml:"instanceState>code"`
	StateName  string     `xml:"instanceState>name"`
	PrivateDNS string     `xml:"privateDnsName"`
	PublicDNS  string     `xml:"dnsName"`
	Reason     string     `xml:"reason"`
	Cause      string     `xml:"stateReason>message,omitempty"`
	Type       string     `xml:"instanceType"`
	Launched   string     `xml:"launchTime"`
	Zone       string     `xml:"placement>availabilityZone"`
	Host       string     `xml:"placement>hostId,omitempty"`
	Subnet     string     `xml:"subnetId"`
	VPC        string     `xml:"vpcId"`
	Address    string     `xml:"privateIpAddress"`
	Token      string     `xml:"clientToken"`
	Lifecycle  string     `xml:"instanceLifecycle,omitempty"`
	Tags       []pair     `xml:"tagSet>item"`
	Cards      []cardItem `xml:"networkInterfaceSet>item"`
}

type pair struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

type cardItem struct {
	Status string        `xml:"status"`
	Six    []sixItem     `xml:"ipv6AddressesSet>item"`
	Four   []addressItem `xml:"privateIpAddressesSet>item"`
}

type sixItem struct {
	Address string `xml:"ipv6Address"`
}

type addressItem struct {
	Address string `xml:"privateIpAddress"`
	Public  string `xml:"association>publicIp,omitempty"`
}

// reservation shows one instance. The caller holds the lock.
func reservation(c *Cloud, i *instance) *reservationItem {
	code, state := i.state(c, time.Now())
	item := instanceItem{
		ID: i.id, Image: i.form.Get("ImageId"), StateCode: code, StateName: state, Type: i.form.Get("InstanceType"),
		Launched: i.created.UTC().Format("2006-01-02T15:04:05.000Z"), Zone: i.zone, Host: i.form.Get("Placement.HostId"), Subnet: i.form.Get("NetworkInterface.1.SubnetId"),
		VPC: "vpc-1", Cause: i.reason, Token: i.form.Get("ClientToken"), Lifecycle: strings.ReplaceAll(i.form.Get("InstanceMarketOptions.MarketType"), "capacity-block", ""),
	}
	for _, k := range slices.Sorted(maps.Keys(i.tags)) {
		item.Tags = append(item.Tags, pair{k, i.tags[k]})
	}
	if state != "terminated" {
		item.Address, item.PrivateDNS = i.address, "ip-"+strings.ReplaceAll(i.address, ".", "-")+".us-east-2.compute.internal"
		four := addressItem{Address: i.address}
		if i.form.Get("NetworkInterface.1.AssociatePublicIpAddress") == "true" {
			four.Public, item.PublicDNS = "198.51.100.7", "ec2-198-51-100-7.us-east-2.compute.amazonaws.com"
		}
		item.Cards = []cardItem{{"in-use", []sixItem{{"2600:1f16::" + i.id[len(i.id)-4:]}}, []addressItem{four}}, {"detaching", nil, []addressItem{{Address: "10.8.8.8"}}}}
	}
	return &reservationItem{"r-1", cmp.Or(c.Account, usualAccount), []instanceItem{item}}
}
