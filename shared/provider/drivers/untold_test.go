// SPDX-License-Identifier: Apache-2.0

package drivers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// A driver that is open tells nobody its credentials, however it is printed: fmt calls no method of what stands in its fields.
func TestDriversTellNoCredentials(t *testing.T) {
	t.Parallel()
	table, err := Table(&rest.Config{Host: "http://127.0.0.1:1"}) // which nobody asks
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"aws", "azure", "libvirt", "openstack", "ovirt", "vsphere"} {
		s := httptest.NewTLSServer(http.NotFoundHandler())
		t.Cleanup(s.Close)
		a := accountAt(t, name, s)
		for key, value := range a.Credentials {
			text := strings.Replace(string(value), "password: b", "password: canary", 1)
			if key == "aws_secret_access_key" || key == "azure_client_secret" || key == "canary" || strings.HasSuffix(key, "password") {
				text = "canary"
			}
			a.Credentials[key] = []byte(text)
		}
		d, err := table[slices.IndexFunc(table, func(p provider.Provider) bool { return p.Name == name })].Open(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(d)
		for _, told := range []string{fmt.Sprint(d), fmt.Sprintf("%+v", d), fmt.Sprintf("%#v", d), fmt.Sprint(string(text), err)} {
			for _, form := range []string{"canary", "99 97 110 97 114 121", "0x63, 0x61, 0x6e, 0x61, 0x72, 0x79", "Y2FuYXJ5"} {
				if strings.Contains(told, form) {
					t.Errorf("%s tells %s: %s", name, form, told)
				}
			}
		}
	}
}
