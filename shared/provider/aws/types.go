// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/machine-functions/machine-functions/shared/beside"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// InstanceTypes implements [provider.Driver], from EC2's own description of its types (SPEC E13).
func (d *driver) InstanceTypes(ctx context.Context) (all []provider.InstanceType, err error) {
	err = d.call(ctx, func(ctx context.Context) error {
		var zones map[string][]string
		g, side := beside.WithContext(ctx)
		g.Go(func() (err error) { zones, err = d.zones(side); return err }) // some five pages, beside ten of the types
		var found []types.InstanceTypeInfo
		g.Go(func() (err error) { found, err = d.typeInfos(side); return err })
		if err := g.Wait(); err != nil {
			return err
		}
		if len(found) == 0 { // which no region is without
			return provider.Errorf(provider.Unknown, "DescribeInstanceTypes was answered without a type")
		}
		prices, problem := map[string]float64{}, ""
		if d.prices != nil {
			var err error
			if prices, err = d.prices(ctx, d.account.Namespace, d.account.Region); err != nil {
				problem = fmt.Sprintf("prices are unknown: %v", err) // capacity is worth more
			}
		}
		for _, t := range found {
			it := offered(t)
			price, told := prices[it.Name]
			it.Zones, it.PriceHour, it.Problem = zones[it.Name], price, problem
			if told && price == 0 {
				it.Problem = fmt.Sprintf("ConfigMap %s/%s: key %s: %s: a price of 0, or left blank, is unknown here: say it in ConfigMap %s instead", d.account.Namespace, pricesName, d.account.Region, it.Name, machine.ConfigMapPrices)
			}
			if it.MilliCPU > 0 && it.Memory > 0 {
				all = append(all, it)
			}
		}
		slices.SortFunc(all, func(a, b provider.InstanceType) int { return cmp.Compare(a.Name, b.Name) })
		return nil
	})
	return all, err
}

func (d *driver) typeInfos(ctx context.Context) (all []types.InstanceTypeInfo, err error) {
	in := &ec2.DescribeInstanceTypesInput{MaxResults: aws.Int32(100)}
	for pages := ec2.NewDescribeInstanceTypesPaginator(d.ec2, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, page.InstanceTypes...)
	}
	return all, nil
}

// zones returns where each type is offered; nowhere known if the credentials do not allow to ask: those that OpenShift
// makes do not, and capacity is worth more.
func (d *driver) zones(ctx context.Context) (map[string][]string, error) {
	all := map[string][]string{}
	in := &ec2.DescribeInstanceTypeOfferingsInput{LocationType: types.LocationTypeAvailabilityZone, MaxResults: aws.Int32(pageSize)}
	for pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(d.ec2, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if refusal(err) == "UnauthorizedOperation" {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, o := range page.InstanceTypeOfferings {
			all[string(o.InstanceType)] = append(all[string(o.InstanceType)], aws.ToString(o.Location))
		}
	}
	for _, zones := range all {
		slices.Sort(zones)
	}
	return all, nil
}

// gpuTypes are the resources that the device plugins of EC2's makers of GPUs offer.
var gpuTypes = map[string]string{"NVIDIA": machine.ResourceGPU, "AMD": "amd.com/gpu", "Habana": "habana.ai/gaudi"}

// offered reads the capacity of a type.
func offered(t types.InstanceTypeInfo) provider.InstanceType {
	it := provider.InstanceType{Name: string(t.InstanceType), Arch: arch(t)}
	if t.VCpuInfo != nil {
		it.MilliCPU = int64(aws.ToInt32(t.VCpuInfo.DefaultVCpus)) * 1000
	}
	if t.MemoryInfo != nil {
		it.Memory = aws.ToInt64(t.MemoryInfo.SizeInMiB) << 20
	}
	if t.InstanceStorageInfo != nil {
		it.Disk = aws.ToInt64(t.InstanceStorageInfo.TotalSizeInGB) * 1e9
	}
	if t.GpuInfo != nil {
		for _, g := range t.GpuInfo.Gpus {
			it.GPU += int64(aws.ToInt32(g.Count))
			it.GPUType = cmp.Or(it.GPUType, gpuTypes[aws.ToString(g.Manufacturer)])
		}
	}
	return it
}

// arch is the architecture as Nodes say it.
func arch(t types.InstanceTypeInfo) string {
	if t.ProcessorInfo != nil {
		for _, a := range t.ProcessorInfo.SupportedArchitectures {
			if a == types.ArchitectureTypeArm64 {
				return "arm64"
			}
		}
	}
	return "amd64"
}
