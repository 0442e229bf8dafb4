// SPDX-License-Identifier: Apache-2.0

package plan

import "testing"

func TestGist(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, a, b string
		same       bool
	}{
		{"local port", "read tcp 10.0.0.1:43210->1.2.3.4:443: read: connection reset by peer", "read tcp 10.0.0.1:51002->1.2.3.4:443: read: connection reset by peer", true},
		{"resolver's port", "lookup ec2.eu-west-1.amazonaws.com: read udp 10.0.0.1:35462->10.96.0.10:53: i/o timeout", "lookup ec2.eu-west-1.amazonaws.com: read udp 10.0.0.1:1200->10.96.0.10:53: i/o timeout", true},
		{"id of a request", "https response error StatusCode: 403, RequestID: 0f8fad5b-d9cb-469f-a165-70867728950e", "https response error StatusCode: 403, RequestID: 7c9e6679-7425-40de-944b-e07fc1f90ae7", true},
		{"encoded message", "You are not authorized. Encoded authorization failure message: 4GIOHlTkIaWHQD0Q0m6XSnuUMCm-abcdefghijklmn", "You are not authorized. Encoded authorization failure message: Qm6XSnuUMCm4GIOHlTkIaWHQD0Q0m6XSnuUMCm-xyz", true},
		{"task", "task-48113 was canceled at 10:02:11", "task-48200 was canceled at 10:03:11", true},
		{"another host", "dial tcp 10.0.0.1:443: connection refused", "dial tcp 10.0.0.2:443: connection refused", false},
		{"another failure", "read tcp 10.0.0.1:43210->1.2.3.4:443: connection reset by peer", "read tcp 10.0.0.1:43210->1.2.3.4:443: i/o timeout", false},
		{"another type", "no capacity for m5.large", "no capacity for m6.large", false},
		{"another Secret", "secret openshift-machine-api/openstack-cloud-credentials-of-the-east is gone", "secret openshift-machine-api/openstack-cloud-credentials-of-the-west is gone", false},
		{"another Machine", "more than one machine fits: worker-1, worker-2", "more than one machine fits: worker-1, worker-3", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if a, b := Gist(tt.a), Gist(tt.b); (a == b) != tt.same {
				t.Errorf("%q and %q", a, b)
			}
		})
	}
}
