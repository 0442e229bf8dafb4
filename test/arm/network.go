// SPDX-License-Identifier: Apache-2.0

package arm

import (
	"context"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9/fake"
)

func (k *call) network() *fake.ServerFactory {
	return &fake.ServerFactory{
		InterfacesServer:                k.cards(),
		PublicIPAddressesServer:         k.addresses(),
		SubnetsServer:                   k.subnets(),
		SecurityGroupsServer:            k.groups(),
		ApplicationSecurityGroupsServer: k.appGroups(),
		LoadBalancersServer:             k.balancers(),
	}
}

func (k *call) cards() fake.InterfacesServer {
	return fake.InterfacesServer{
		Get: func(_ context.Context, _, name string, _ *armnetwork.InterfacesClientGetOptions) (
			resp whole[armnetwork.InterfacesClientGetResponse], e problem,
		) {
			found, ok := k.read(Cards, name, false)
			if !ok {
				return resp, k.no(k.refused)
			}
			resp.SetResponse(http.StatusOK, armnetwork.InterfacesClientGetResponse{Interface: as[armnetwork.Interface](found)}, nil)
			return resp, e
		},
		BeginCreateOrUpdate: func(_ context.Context, _, name string, p armnetwork.Interface, _ *armnetwork.InterfacesClientBeginCreateOrUpdateOptions) (
			resp poll[armnetwork.InterfacesClientCreateOrUpdateResponse], e problem,
		) {
			made, no := k.put(Cards, name, p)
			if no != nil {
				return resp, k.no(no)
			}
			resp.SetTerminalResponse(http.StatusCreated, armnetwork.InterfacesClientCreateOrUpdateResponse{Interface: as[armnetwork.Interface](made)}, nil)
			return resp, e
		},
		BeginDelete: func(_ context.Context, _, name string, _ *armnetwork.InterfacesClientBeginDeleteOptions) (
			resp poll[armnetwork.InterfacesClientDeleteResponse], e problem,
		) {
			status, no := k.remove(Cards, name)
			if no != nil {
				return resp, k.no(no)
			}
			resp.AddNonTerminalResponse(status, nil)
			return resp, e
		},
		NewListPager: func(string, *armnetwork.InterfacesClientListOptions) (
			resp pager[armnetwork.InterfacesClientListResponse],
		) {
			for _, page := range k.pages(Cards, false) {
				resp.AddPage(http.StatusOK, as[armnetwork.InterfacesClientListResponse](page), nil)
			}
			return resp
		},
	}
}

func (k *call) addresses() fake.PublicIPAddressesServer {
	return fake.PublicIPAddressesServer{
		Get: func(_ context.Context, _, name string, _ *armnetwork.PublicIPAddressesClientGetOptions) (
			resp whole[armnetwork.PublicIPAddressesClientGetResponse], e problem,
		) {
			found, ok := k.read(Addresses, name, false)
			if !ok {
				return resp, k.no(k.refused)
			}
			resp.SetResponse(http.StatusOK, armnetwork.PublicIPAddressesClientGetResponse{PublicIPAddress: as[armnetwork.PublicIPAddress](found)}, nil)
			return resp, e
		},
		BeginCreateOrUpdate: func(_ context.Context, _, name string, p armnetwork.PublicIPAddress, _ *armnetwork.PublicIPAddressesClientBeginCreateOrUpdateOptions) (
			resp poll[armnetwork.PublicIPAddressesClientCreateOrUpdateResponse], e problem,
		) {
			made, no := k.put(Addresses, name, p)
			if no != nil {
				return resp, k.no(no)
			}
			resp.SetTerminalResponse(http.StatusCreated, armnetwork.PublicIPAddressesClientCreateOrUpdateResponse{PublicIPAddress: as[armnetwork.PublicIPAddress](made)}, nil)
			return resp, e
		},
		BeginDelete: func(_ context.Context, _, name string, _ *armnetwork.PublicIPAddressesClientBeginDeleteOptions) (
			resp poll[armnetwork.PublicIPAddressesClientDeleteResponse], e problem,
		) {
			status, no := k.remove(Addresses, name)
			if no != nil {
				return resp, k.no(no)
			}
			resp.AddNonTerminalResponse(status, nil)
			return resp, e
		},
		NewListPager: func(string, *armnetwork.PublicIPAddressesClientListOptions) (
			resp pager[armnetwork.PublicIPAddressesClientListResponse],
		) {
			for _, page := range k.pages(Addresses, false) {
				resp.AddPage(http.StatusOK, as[armnetwork.PublicIPAddressesClientListResponse](page), nil)
			}
			return resp
		},
	}
}

func (k *call) subnets() fake.SubnetsServer {
	return fake.SubnetsServer{
		Get: func(_ context.Context, _, vnet, name string, _ *armnetwork.SubnetsClientGetOptions) (
			resp whole[armnetwork.SubnetsClientGetResponse], e problem,
		) {
			found, ok := k.fixed("Microsoft.Network/virtualNetworks/"+vnet+"/subnets", name)
			if !ok {
				return resp, k.no(k.refused)
			}
			resp.SetResponse(http.StatusOK, armnetwork.SubnetsClientGetResponse{Subnet: as[armnetwork.Subnet](found)}, nil)
			return resp, e
		},
	}
}

func (k *call) groups() fake.SecurityGroupsServer {
	return fake.SecurityGroupsServer{
		Get: func(_ context.Context, _, name string, _ *armnetwork.SecurityGroupsClientGetOptions) (
			resp whole[armnetwork.SecurityGroupsClientGetResponse], e problem,
		) {
			found, ok := k.fixed("Microsoft.Network/networkSecurityGroups", name)
			if !ok {
				return resp, k.no(k.refused)
			}
			resp.SetResponse(http.StatusOK, armnetwork.SecurityGroupsClientGetResponse{SecurityGroup: as[armnetwork.SecurityGroup](found)}, nil)
			return resp, e
		},
	}
}

func (k *call) appGroups() fake.ApplicationSecurityGroupsServer {
	return fake.ApplicationSecurityGroupsServer{
		Get: func(_ context.Context, _, name string, _ *armnetwork.ApplicationSecurityGroupsClientGetOptions) (
			resp whole[armnetwork.ApplicationSecurityGroupsClientGetResponse], e problem,
		) {
			found, ok := k.fixed("Microsoft.Network/applicationSecurityGroups", name)
			if !ok {
				return resp, k.no(k.refused)
			}
			resp.SetResponse(http.StatusOK, armnetwork.ApplicationSecurityGroupsClientGetResponse{ApplicationSecurityGroup: as[armnetwork.ApplicationSecurityGroup](found)}, nil)
			return resp, e
		},
	}
}

func (k *call) balancers() fake.LoadBalancersServer {
	return fake.LoadBalancersServer{
		Get: func(_ context.Context, _, name string, _ *armnetwork.LoadBalancersClientGetOptions) (
			resp whole[armnetwork.LoadBalancersClientGetResponse], e problem,
		) {
			found, ok := k.fixed("Microsoft.Network/loadBalancers", name)
			if !ok {
				return resp, k.no(k.refused)
			}
			resp.SetResponse(http.StatusOK, armnetwork.LoadBalancersClientGetResponse{LoadBalancer: as[armnetwork.LoadBalancer](found)}, nil)
			return resp, e
		},
	}
}

// fixed returns a resource that nobody makes or removes, or refuses.
func (k *call) fixed(kind, name string) (object, bool) {
	found, ok := fixed(kind, name)
	if !ok {
		k.refused = absent(ID(kind, name))
	}
	return found, ok
}
