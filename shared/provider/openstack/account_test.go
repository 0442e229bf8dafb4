// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Once there is an instance its spec decides nothing but which account it is in: a rule that came later, or one that OpenShift does not
// have, neither hides it nor keeps it from being removed (SPEC B72–B79 are for what is new).
func TestSpecOfWhatRunsIsNotJudged(t *testing.T) {
	t.Parallel()
	p := Provider()
	for _, more := range []string{
		`"tags": ["a` + strings.Repeat(`", "a`, 50) + `"]`, `"securityGroups": [{}]`, `"networks": [{}]`, `"rootVolume": {"diskSize": 0}`, `"userDataSecret": {}`, `"flavor": ""`,
	} {
		region, secret, err := p.Account(specWith(more))
		if err != nil || region != "openstack" || secret != "openstack-cloud-credentials" {
			t.Errorf("%s: Account = %q, %q, %v", more, region, secret, err)
		}
		if _, err := p.InstanceType(specWith(more)); err != nil {
			t.Errorf("%s: InstanceType: %v", more, err)
		}
		if _, err := (*driver)(nil).Tags(specWith(more)); err != nil {
			t.Errorf("%s: Tags: %v", more, err)
		}
	}
	for more, want := range map[string]string{`"cloudName": ""`: "cloudName", `"cloudsSecret": {}`: "cloudsSecret.name"} {
		if _, _, err := p.Account(specWith(more)); provider.CodeOf(err) != provider.Invalid || !strings.Contains(err.Error(), "providerSpec.value."+want) {
			t.Errorf("%s: Account = %v", more, err)
		}
	}
}
