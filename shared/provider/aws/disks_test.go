// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"testing"

	"github.com/machine-functions/machine-functions/test/ec2"
)

// OpenShift's installer writes 0 where nobody asked for a rate, and OpenShift asks for none then: EC2 would refuse 0, and the Machine
// would fail.
func TestRateOfZeroIsNone(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{}
	region := serve(t, cloud)
	d, _ := region.wired(t, region.account())
	_, i, err := create(t, d, "worker-a", spec(map[string]any{"blockDevices": []any{
		map[string]any{"ebs": map[string]any{"volumeSize": 120, "volumeType": "gp3", "iops": 0}},
	}}))
	must(t, err)
	if form := cloud.Live()[i.ID]; form.Has("BlockDeviceMapping.1.Ebs.Iops") || form.Get("BlockDeviceMapping.1.Ebs.VolumeSize") != "120" {
		t.Errorf("the disk is asked for with %v", form)
	}
}

// A rate of operations is of some types of volume only: for any other EC2 refuses it, and OpenShift does not send it.
func TestRateIsOfSomeVolumes(t *testing.T) {
	t.Parallel()
	for kind, sent := range map[string]string{"gp2": "", "st1": "", "": "", "gp3": "4000", "io1": "4000", "io2": "4000"} {
		cloud := &ec2.Cloud{}
		region := serve(t, cloud)
		d, _ := region.wired(t, region.account())
		_, i, err := create(t, d, "worker-a", spec(map[string]any{"blockDevices": []any{map[string]any{"ebs": map[string]any{"volumeType": kind, "iops": 4000}}}}))
		if got := cloud.Live()[i.ID].Get("BlockDeviceMapping.1.Ebs.Iops"); err != nil || got != sent {
			t.Errorf("%q: %v, sent are %q, want %q", kind, err, got, sent)
		}
	}
}
