// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Whatever a library says of a call that went wrong, its Secret's secrets are not in it; what helps to mend it is, and the
// class of the error stays (R-B35).
func TestErrorsOfCloudsTellNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "canary/5e2c"
	cloudsYAML := "clouds:\n  openstack:\n    auth:\n      auth_url: https://keystone:5000/v3\n      username: machines\n      password: \"" + secret + "\"\n"
	for name, credentials := range map[string]map[string][]byte{
		"aws":       {"aws_access_key_id": []byte("AKIAEXAMPLE"), "aws_secret_access_key": []byte(secret + "\n")},
		"vsphere":   {"vc.example.com.username": []byte("machines"), "vc.example.com.password": []byte(secret)},
		"openstack": {"clouds.yaml": []byte(cloudsYAML)},
		"a file":    {"credentials": []byte("[default]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = " + secret + "\n")},
	} {
		secrets := unspoken(credentials)
		cause := &url.Error{Op: "Post", URL: "https://machines:" + secret + "@keystone:5000/v3?password=" + url.QueryEscape(secret), Err: context.DeadlineExceeded}
		err := discreet(provider.Errorf(provider.Throttled, "create instance: %w", cause), secrets)
		if strings.Contains(err.Error(), "5e2c") || !strings.Contains(err.Error(), "machines:(secret)@keystone:5000") {
			t.Errorf("%s: %v", name, err)
		}
		if provider.CodeOf(err) != provider.Throttled || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v lost its class", name, err)
		}
		plain := provider.Errorf(provider.Exhausted, "machines of AKIAEXAMPLE, vc.example.com: no capacity")
		if got := discreet(plain, secrets); got != plain { //nolint:errorlint // the very same
			t.Errorf("%s: %v became %v", name, plain, got)
		}
	}
	if err := discreet(nil, unspoken(nil)); err != nil {
		t.Error(err)
	}
}
