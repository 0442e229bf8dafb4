// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// A namespace that is to be served and where the function has no rights, because its name is misspelled or it is gone, keeps a revision
// from becoming Ready: it could look at no other namespace either. Whoever was Ready once is not asked again.
func TestReadyWhereItMayListMachines(t *testing.T) {
	t.Parallel()
	forbidden, asked := true, []string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		w.Header().Set("Content-Type", typeJSON)
		if forbidden && strings.Contains(r.URL.Path, "/machines-b/") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"machines is forbidden"}`))
			return
		}
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(server.Close)
	c, err := New(&rest.Config{Host: server.URL}, Options{FieldManager: "tester", Namespaces: []string{"machines-a", "machines-b"}})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Ready(t.Context())
	if err == nil || !strings.Contains(err.Error(), "namespace machines-b of MACHINE_NAMESPACES cannot be served") {
		t.Errorf("without rights in machines-b it is ready: %v", err)
	}
	forbidden = false
	if err := c.Ready(t.Context()); err != nil {
		t.Errorf("with rights: %v", err)
	}
	forbidden, asked = true, nil
	if err := c.Ready(t.Context()); err != nil || !slices.Equal(asked, []string{versionPath}) {
		t.Errorf("later: %v, asked %q", err, asked)
	}
}
