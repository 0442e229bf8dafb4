// SPDX-License-Identifier: Apache-2.0

// Package metal3 pins the baremetal-operator that the driver of bare metal is tested against; build.sh builds it.
package metal3
