// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/beside"
	"github.com/machine-functions/machine-functions/test/ec2"
)

// What is asked for side by side panics where it is waited for: who called can survive it (RELIABILITY 2c).
func TestPanicSideBySideIsTheCallers(t *testing.T) {
	t.Parallel()
	cloud := &ec2.Cloud{Page: 8}
	region := serve(t, cloud)
	d, w := region.wired(t, region.account())
	for range 40 {
		cloud.Add("us-east-2b", "m5.large", map[string]string{tagUID: string(uuid.NewUUID()), d.tagCluster(): owned})
	}
	var lists atomic.Int32
	w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
		if action == "DescribeInstances" && lists.Add(1) > 3 || action == "DescribeInstanceTypeOfferings" {
			panic("poison")
		}
		return next()
	})
	for what, call := range map[string]func() error{
		"List":          func() error { _, err := d.List(t.Context()); return err },
		"InstanceTypes": func() error { _, err := d.InstanceTypes(t.Context()); return err },
	} {
		func() {
			defer func() {
				if p := beside.Caught(recover()); p.Value != "poison" || !strings.Contains(p.Stack, "provider/aws") {
					t.Errorf("%s panics with %v", what, p)
				}
			}()
			t.Errorf("%s: %v", what, call())
		}()
	}
}
