// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/ec2"
)

// A cloud of EC2's protocol may leave out, without a word, a filter that it does not know. Whatever it shows then is no attempt's instance:
// it would be recorded, and removed with the Machine (R-S3).
func TestInstanceThatWasNotAskedForIsNobodys(t *testing.T) {
	t.Parallel()
	const other = `<DescribeInstancesResponse><reservationSet><item><instancesSet><item><instanceId>i-0aaaaaaaaaaaaaaaa</instanceId>` +
		`<clientToken>another</clientToken><instanceState><name>running</name></instanceState></item></instancesSet></item></reservationSet></DescribeInstancesResponse>`
	for what, progress := range map[string]string{"by the id that is recorded": `{"instance": "i-0bbbbbbbbbbbbbbbb"}`, "by the token": ""} {
		cloud := &ec2.Cloud{}
		region := serve(t, cloud)
		d, w := region.wired(t, region.account())
		resolved, err := d.Resolve(t.Context(), spec(nil))
		must(t, err)
		w.set(func(action string, next func() (*http.Response, error)) (*http.Response, error) {
			switch {
			case action == "DescribeInstances":
				return page(200, "text/xml", other)(nil)
			case action == "RunInstances" && progress == "":
				return page(400, "text/xml", errorXML(otherParameters, "Arguments on this idempotent request are inconsistent with arguments used in previous request(s)."))(nil)
			}
			return next()
		})
		i, err := d.Create(t.Context(), provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t", Progress: []byte(progress)}, resolved)
		if i.ID == "i-0aaaaaaaaaaaaaaaa" || progress == "" && provider.CodeOf(err) != provider.Exhausted {
			t.Errorf("%s: Create = %+v, %v", what, i, err)
		}
	}
}
