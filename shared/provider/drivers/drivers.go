// SPDX-License-Identifier: Apache-2.0

// Package drivers is the table of clouds: the one place that knows them all.
package drivers

import (
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/aws"
	"github.com/machine-functions/machine-functions/shared/provider/azure"
	"github.com/machine-functions/machine-functions/shared/provider/kubemark"
	"github.com/machine-functions/machine-functions/shared/provider/libvirt"
	"github.com/machine-functions/machine-functions/shared/provider/metal3"
	"github.com/machine-functions/machine-functions/shared/provider/openstack"
	"github.com/machine-functions/machine-functions/shared/provider/ovirt"
	"github.com/machine-functions/machine-functions/shared/provider/vsphere"
)

// Table returns one line per cloud. The API server is where hosts and simulated instances are; nothing is asked yet.
func Table(config *rest.Config) ([]provider.Provider, error) {
	records, err := kubemark.NewConfigMaps(config)
	if err != nil {
		return nil, err
	}
	hosts, err := metal3.NewHosts(config)
	if err != nil {
		return nil, err
	}
	prices, err := aws.NewPrices(config)
	if err != nil {
		return nil, err
	}
	addresses, err := vsphere.NewAddresses(config)
	if err != nil {
		return nil, err
	}
	return []provider.Provider{aws.Provider(prices), azure.Provider(), kubemark.Provider(records), libvirt.Provider(), metal3.Provider(hosts), openstack.Provider(), ovirt.Provider(), vsphere.Provider(addresses)}, nil
}
