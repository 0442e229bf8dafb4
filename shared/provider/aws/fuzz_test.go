// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/ec2"
)

// Whatever the ConfigMap aws-prices says: every price is one that can be paid, or an error says where it is not.
func FuzzPrices(f *testing.F) {
	for _, text := range []string{
		"", "m5.large: 0.096\nm6g.large: 0.077\n", "cheap", "m5.large: -1", "m5.large: .nan", "m5.large: .inf", "m5.large: 1e999", "m5.large: 1\nm5.large: 2",
		"m5.large: [", "- 1", "null", "1: 2", "a: &a 1\nb: *a", "m5.large: 0x10", strings.Repeat("[", 9000), "{}{}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		prices, err := parsePrices(text)
		for name, p := range prices {
			if err != nil || p < 0 || math.IsInf(p, 0) || math.IsNaN(p) {
				t.Errorf("%q: %s costs %v, error %v", text, name, p, err)
			}
		}
	})
}

// inProcess is a cloud in the same process: with sockets an execution takes milliseconds, and what is covered is another each time.
type inProcess struct{ *ec2.Cloud }

// RoundTrip implements [http.RoundTripper].
func (c inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w.Result(), nil
}

// Whatever stands in a Machine for what was made and resolved: a step is made or refused, and an instance is the Machine's own.
func FuzzCreate(f *testing.F) {
	f.Add([]byte(nil), []byte(`{"spec":{"instanceType":"m5.large","ami":{"id":"ami-1"},"userDataSecret":{"name":"worker-user-data"}},"subnet":"subnet-1"}`))
	f.Add([]byte(`{"instance":"i-1","host":"h-1"}`), []byte(`{"spec":{"placement":{"tenancy":"host","host":{"affinity":"DedicatedHost"}}}}`))
	f.Add([]byte(`{"host":7}`), []byte(`{"spec":{"blockDevices":[{"ebs":{}},{"ebs":null}],"spotMarketOptions":{}}}`))
	f.Add([]byte(`null`), []byte(`null`))
	f.Add([]byte(`[`), []byte(`{"spec":{"loadBalancers":[{"name":"a","type":"network"}],"tags":[{"name":"machine.openshift.io/machine-uid","value":"other"}]}}`))
	account := region{&httptest.Server{URL: "http://ec2.test"}}.account()
	f.Fuzz(func(t *testing.T, progress, resolved []byte) {
		d, err := open(account, nil)
		must(t, err)
		d.http.Transport = apiOnly{inProcess{&ec2.Cloud{}}}
		began := time.Now()
		in, err := d.Create(t.Context(), provider.Ref{UID: "machine-uid", Name: "worker-a", Token: "token-1", Progress: progress}, resolved)
		switch {
		case time.Since(began) > 11*time.Second:
			t.Errorf("it took %v", time.Since(began))
		case err != nil && in.ID != "":
			t.Errorf("%v, and yet %+v", err, in)
		case err == nil && in.State == provider.StateIncomplete && !json.Valid(in.Progress):
			t.Errorf("a step whose progress is %q", in.Progress)
		case err == nil && in.State != provider.StateIncomplete && in.UID != "machine-uid":
			t.Errorf("the instance is %+v", in)
		}
	})
}
