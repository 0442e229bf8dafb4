// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/provider"
)

func TestPricesAreTheConfigMaps(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/namespaces/machines/configmaps/aws-prices":
			_, _ = fmt.Fprintf(w, `{"kind": "ConfigMap", "data": {"us-east-2": "m5.large: 0.096\nm6g.large: 0.077\n", "eu-west-1": "cheap", "eu-west-2": "a: [&a %s%s]"}}`, strings.Repeat("e", 20000), strings.Repeat(",*a", 5000))
		case "/api/v1/namespaces/none/configmaps/aws-prices":
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}`)
		default:
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, `{"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403}`)
		}
	}))
	t.Cleanup(s.Close)
	prices, err := NewPrices(&rest.Config{Host: s.URL})
	must(t, err)
	for _, tt := range []struct {
		namespace, region, names string
		want                     map[string]float64
		code                     provider.Code
	}{
		{"machines", "us-east-2", "", map[string]float64{"m5.large": 0.096, "m6g.large": 0.077}, 0},
		{"machines", "us-west-1", "", map[string]float64{}, 0},
		{"none", "us-east-2", "", nil, 0},
		{"machines", "eu-west-1", "key eu-west-1", nil, provider.Exhausted},
		{"machines", "eu-west-2", provider.ErrExpands.Error(), nil, provider.Exhausted},
		{"others", "us-east-2", "others/aws-prices", nil, provider.Denied},
	} {
		got, err := prices(t.Context(), tt.namespace, tt.region)
		if diff := cmp.Diff(tt.want, got); diff != "" || provider.CodeOf(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.names) {
			t.Errorf("%s in %s: %v, %v", tt.namespace, tt.region, got, err)
		}
	}
}
