// SPDX-License-Identifier: Apache-2.0

package arm

import "strings"

// What is there beside instances: what an installer makes, and what Azure sells.
var installed = map[string]object{
	"Microsoft.Network/virtualNetworks/cluster-fz2xk-vnet/subnets/cluster-fz2xk-worker-subnet": {"properties": object{"addressPrefix": "10.0.128.0/17"}},
	"Microsoft.Network/virtualNetworks/cluster-fz2xk-vnet/subnets/both":                        {"properties": object{"addressPrefixes": []any{"10.0.128.0/17", "fd00:128::/64"}}},
	"Microsoft.Network/networkSecurityGroups/cluster-fz2xk-nsg":                                {},
	"Microsoft.Network/applicationSecurityGroups/web":                                          {},
	"Microsoft.Network/loadBalancers/cluster-fz2xk": {"properties": object{
		"backendAddressPools": []any{object{"id": ID("Microsoft.Network/loadBalancers", "cluster-fz2xk/backendAddressPools/cluster-fz2xk")}},
		"inboundNatRules":     []any{object{"id": ID("Microsoft.Network/loadBalancers", "cluster-fz2xk/inboundNatRules/ssh")}},
	}},
	"Microsoft.Network/loadBalancers/cluster-fz2xk-internal": {"properties": object{
		"backendAddressPools": []any{object{"id": ID("Microsoft.Network/loadBalancers", "cluster-fz2xk-internal/backendAddressPools/cluster-fz2xk")}},
	}},
	"Microsoft.Network/loadBalancers/empty":         {"properties": object{}},
	"Microsoft.Compute/availabilitySets/workers-as": {},
}

func fixed(kind, name string) (object, bool) {
	for key, body := range installed {
		if strings.EqualFold(key, kind+"/"+name) {
			o := body.clone()
			o["id"], o["name"], o["location"] = ID(kind, name), name, Location
			return o, true
		}
	}
	return nil, false
}

// offers are some sizes of instances, and what else the list has.
func offers() []object {
	size := func(name string, zones []any, restrictions []any, capabilities ...string) object {
		var all []any
		for k := 0; k < len(capabilities); k += 2 {
			all = append(all, object{"name": capabilities[k], "value": capabilities[k+1]})
		}
		return object{
			"resourceType": "virtualMachines", "name": name, "locations": []any{Location}, "locationInfo": []any{object{"location": Location, "zones": zones}},
			"capabilities": all, "restrictions": restrictions,
		}
	}
	zones := []any{"3", "1", "2"}
	return []object{
		{"resourceType": "disks", "name": "Premium_LRS", "locations": []any{Location}},
		size("Standard_D4s_v3", zones, nil, "vCPUs", "4", "MemoryGB", "16", "MaxResourceVolumeMB", "32768", "CpuArchitectureType", "x64"),
		size("Standard_D4ps_v5", zones, nil, "vCPUs", "4", "MemoryGB", "16", "CpuArchitectureType", "Arm64"),
		size("Standard_NC24ads_A100_v4", zones, []any{object{"type": "Zone", "values": []any{Location}, "restrictionInfo": object{"locations": []any{Location}, "zones": []any{"2"}}, "reasonCode": "NotAvailableForSubscription"}},
			"vCPUs", "24", "MemoryGB", "220", "GPUs", "1", "CpuArchitectureType", "x64"),
		size("Standard_NG32ads_V620_v1", nil, nil, "vCPUs", "32", "MemoryGB", "64", "GPUs", "1", "CpuArchitectureType", "x64"),
		size("Standard_M8-2ms", nil, nil, "vCPUs", "8", "vCPUsAvailable", "2", "MemoryGB", "218.75", "CpuArchitectureType", "x64"),
		size("Standard_D64_v2", zones, []any{object{"type": "Location", "values": []any{Location}, "restrictionInfo": object{"locations": []any{Location}}, "reasonCode": "NotAvailableForSubscription"}},
			"vCPUs", "64", "MemoryGB", "256"),
		size("Standard_Odd", nil, nil, "vCPUs", "many", "MemoryGB", "NaN"),
	}
}
