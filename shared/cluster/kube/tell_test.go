// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// What is told again is counted once more, at the version that was read, and looked at anew where somebody else counted meanwhile. What
// nobody could be told of is an error: nobody decides in silence.
func TestEventsAreCounted(t *testing.T) {
	t.Parallel()
	exists, conflict := status(409, metav1.StatusReasonAlreadyExists, "exists"), status(409, metav1.StatusReasonConflict, "modified")
	found := reply(200, typeJSON, `{"kind":"Event","apiVersion":"v1","metadata":{"resourceVersion":"7"},"count":3}`)
	written := reply(200, typeJSON, `{"kind":"Event","apiVersion":"v1"}`)
	for name, tt := range map[string]struct {
		answers []http.HandlerFunc
		asked   string // its methods
		told    bool
	}{
		"told for the first time":      {[]http.HandlerFunc{written}, "POST", true},
		"told again":                   {[]http.HandlerFunc{exists, found, written}, "POST GET PATCH", true},
		"somebody else counted":        {[]http.HandlerFunc{exists, found, conflict, exists, found, written}, "POST GET PATCH POST GET PATCH", true},
		"nobody takes it":              {[]http.HandlerFunc{status(403, metav1.StatusReasonForbidden, "no")}, "POST", false},
		"nobody shows it":              {[]http.HandlerFunc{exists, status(403, metav1.StatusReasonForbidden, "no")}, "POST GET", false},
		"a proxy shows something else": {[]http.HandlerFunc{exists, reply(200, typeJSON, `{}`)}, "POST GET", false},
		"others count all the time": {
			[]http.HandlerFunc{exists, found, conflict, exists, found, conflict, exists, found, conflict, exists, found, conflict},
			strings.TrimSpace(strings.Repeat("POST GET PATCH ", maxTellings)), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, c := serve(t, tt.answers...)
			m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
			if err := c.Tell(t.Context(), plan.Normal(m, "Update", "done")); (err == nil) != tt.told {
				t.Errorf("error %v", err)
			}
			var asked []string
			for i, line := range f.asked {
				method, at, _ := strings.Cut(line, " ")
				asked = append(asked, method)
				path, _, _ := strings.Cut(at, "?")
				if named := strings.HasPrefix(path, "/api/v1/namespaces/ns/events/a."); named != (method != "POST") {
					t.Errorf("%s", line)
				}
				if body := f.bodies[i]; method == "PATCH" && (!strings.Contains(body, `"resourceVersion":"7"`) || !strings.Contains(body, `"count":4`)) {
					t.Errorf("%s: %s", line, body)
				}
			}
			if want := strings.Fields(tt.asked); !slices.Equal(asked, want) {
				t.Errorf("asked %q", f.asked)
			}
		})
	}
}
