// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"cmp"
	"encoding/base64"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// longestToken is what EC2 takes (https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html).
const longestToken = 64

// zoneMark stands before the zone in a client token, and in none that others make.
const zoneMark = "."

// clientToken is the attempt's token with the zone: EC2 counts a token for the zone that the request names.
func clientToken(r provider.Ref, zone string) string {
	token := r.Token + zoneMark + zone
	return token[:min(len(token), longestToken)]
}

// attemptOf takes the zone off a token again.
func attemptOf(token string) string {
	attempt, _, _ := strings.Cut(token, zoneMark)
	return attempt
}

// run is the call that makes the instance: one, with its tags and its volumes'. The same for every call of an attempt.
func (d *driver) run(r provider.Ref, req request, data []byte) *ec2.RunInstancesInput {
	s := req.Spec
	tags := d.tags(r, req)
	in := &ec2.RunInstancesInput{
		ClientToken: aws.String(clientToken(r, req.Zone)), MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		ImageId: &s.AMI.ID, InstanceType: types.InstanceType(s.InstanceType), KeyName: optional(s.KeyName),
		NetworkInterfaces:   []types.InstanceNetworkInterfaceSpecification{card(req)},
		BlockDeviceMappings: disks(req),
		Placement:           placement(req),
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeInstance, Tags: tags}, {ResourceType: types.ResourceTypeVolume, Tags: tags},
		},
		InstanceMarketOptions: market(s),
		UserData:              optional(base64.StdEncoding.EncodeToString(data)),
	}
	if p := s.IAMInstanceProfile; p != nil && (p.ID != "" || p.ARN != "") {
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: optional(p.ID), Arn: optional(p.ARN)}
	}
	if id := s.CapacityReservationID; id != "" {
		in.CapacityReservationSpecification = &types.CapacityReservationSpecification{
			CapacityReservationTarget: &types.CapacityReservationTarget{CapacityReservationId: &id},
		}
	}
	if a := s.MetadataServiceOptions.Authentication; a != "" {
		in.MetadataOptions = &types.InstanceMetadataOptionsRequest{HttpTokens: types.HttpTokensState(strings.ToLower(a))}
	}
	if o := s.CPUOptions; o != nil {
		in.CpuOptions = &types.CpuOptionsRequest{AmdSevSnp: types.AmdSevSnpSpecificationDisabled}
		if o.ConfidentialCompute == "AMDEncryptedVirtualizationNestedPaging" {
			in.CpuOptions.AmdSevSnp = types.AmdSevSnpSpecificationEnabled
		}
	}
	return in
}

// card is the one network interface. It goes with the instance.
func card(req request) types.InstanceNetworkInterfaceSpecification {
	s := req.Spec
	n := types.InstanceNetworkInterfaceSpecification{
		DeviceIndex: aws.Int32(int32(min(s.DeviceIndex, 1<<15))), // in range
		SubnetId:    optional(req.Subnet), Groups: req.Groups,
		AssociatePublicIpAddress: s.PublicIP, DeleteOnTermination: aws.Bool(true),
	}
	if s.NetworkInterfaceType == "EFA" {
		n.InterfaceType = aws.String("efa")
	}
	return n
}

// disks are the block devices; the one without a name is the image's root disk.
func disks(req request) []types.BlockDeviceMapping {
	var all []types.BlockDeviceMapping
	for _, b := range req.Spec.BlockDevices {
		m := types.BlockDeviceMapping{DeviceName: optional(b.DeviceName), NoDevice: b.NoDevice, VirtualName: optional(b.VirtualName)}
		if m.DeviceName == nil {
			m.DeviceName = optional(req.Root)
		}
		if e := b.EBS; e != nil {
			key := e.KMSKey.ID
			if key == "" {
				key = e.KMSKey.ARN
			}
			m.Ebs = &types.EbsBlockDevice{
				DeleteOnTermination: e.DeleteOnTermination, Encrypted: e.Encrypted, KmsKeyId: optional(key),
				Iops: rate(*e), Throughput: number(e.ThroughputMib), VolumeSize: number(e.VolumeSize), VolumeType: types.VolumeType(e.VolumeType),
			}
			if m.Ebs.DeleteOnTermination == nil {
				m.Ebs.DeleteOnTermination = aws.Bool(true)
			}
		}
		all = append(all, m)
	}
	return all
}

// rate is a rate of operations, where volumes of the type have one. OpenShift's installer writes 0 where nobody asked for
// one; EC2 takes no 0.
func rate(e providerspec.AWSEBS) *int32 {
	if !e.Rated() || e.Iops != nil && *e.Iops == 0 {
		return nil
	}
	return number(e.Iops)
}

func placement(req request) *types.Placement {
	s := req.Spec
	p := &types.Placement{
		AvailabilityZone: optional(req.Zone), Tenancy: types.Tenancy(s.Placement.Tenancy), GroupName: optional(s.PlacementGroupName),
		PartitionNumber: number(s.PlacementGroupPartition),
	}
	if h := s.Placement.Host; h != nil {
		p.Affinity = aws.String("default")
		if h.Affinity == "DedicatedHost" {
			p.Affinity = aws.String("host")
		}
		if h.DedicatedHost != nil {
			p.HostId = optional(cmp.Or(h.DedicatedHost.ID, req.Host))
		}
	}
	return p
}

// market is how the capacity is bought. Spot instances are asked for once: their Machine is replaced when they end.
func market(s providerspec.AWS) *types.InstanceMarketOptionsRequest {
	switch {
	case s.MarketType == "CapacityBlock":
		return &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeCapacityBlock}
	case s.MarketType == "Spot" || s.SpotMarketOptions != nil:
		options := &types.SpotMarketOptions{
			SpotInstanceType: types.SpotInstanceTypeOneTime, InstanceInterruptionBehavior: types.InstanceInterruptionBehaviorTerminate,
		}
		if m := s.SpotMarketOptions; m != nil {
			options.MaxPrice = optional(m.MaxPrice)
		}
		return &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot, SpotOptions: options}
	}
	return nil
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func number(n *int64) *int32 {
	if n == nil {
		return nil
	}
	return aws.Int32(int32(max(-1<<31, min(*n, 1<<31-1)))) // in range
}
