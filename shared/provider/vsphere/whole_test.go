// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

const (
	bare     = `<?xml version="1.0"?><Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body>%s</Body></Envelope>`
	greeting = `<RetrieveServiceContentResponse xmlns="urn:vim25"><returnval><rootFolder type="Folder">f</rootFolder>` +
		`<propertyCollector type="PropertyCollector">p</propertyCollector>%s<about></about></returnval></RetrieveServiceContentResponse>`
	managers = `<viewManager type="ViewManager">v</viewManager><sessionManager type="SessionManager">s</sessionManager><searchIndex type="SearchIndex">i</searchIndex>`
	welcome  = `<LoginResponse xmlns="urn:vim25"><returnval></returnval></LoginResponse>`
)

// What stands behind a vCenter's name may be anything that speaks its protocol: an answer with nothing in it, to any call, is an error
// in our words, and proves nothing.
func TestEmptyAnswersAreErrors(t *testing.T) {
	t.Parallel()
	whole := fmt.Sprintf(greeting, managers)
	for name, c := range map[string]struct {
		answers map[string]string // by what is in the question; what is not here gets an empty envelope
		want    string
	}{
		"nothing":          {nil, "the answer is empty"},
		"no content":       {map[string]string{"RetrieveServiceContent": `<RetrieveServiceContentResponse xmlns="urn:vim25"/>`}, "is this a vCenter"},
		"no managers":      {map[string]string{"RetrieveServiceContent": fmt.Sprintf(greeting, "")}, "is this a vCenter"},
		"no search":        {map[string]string{"RetrieveServiceContent": fmt.Sprintf(greeting, managers[:strings.Index(managers, "<searchIndex")])}, "is this a vCenter"},
		"no login":         {map[string]string{"RetrieveServiceContent": whole}, "the answer is empty"},
		"nothing after it": {map[string]string{"RetrieveServiceContent": whole, "<Login": welcome}, "the answer is empty"},
	} {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked, _ := io.ReadAll(r.Body)
			answer := ""
			for question, with := range c.answers {
				if strings.Contains(string(asked), question) {
					answer = with
				}
			}
			w.Header().Set("Content-Type", "text/xml")
			_, _ = fmt.Fprintf(w, bare, answer)
		}))
		t.Cleanup(s.Close)
		host, port, err := net.SplitHostPort(s.Listener.Addr().String())
		must(t, err)
		d, err := open(t.Context(), provider.Account{ClusterID: "c", Region: host + ":" + port, Namespace: "n", Secret: "s", Credentials: map[string][]byte{
			host + ".username": []byte("u"), host + ".password": []byte("canary"), host + ".port": []byte(port),
			host + ".ca": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
		}}, nil)
		must(t, err)
		for call, do := range map[string]func() error{
			"list": func() error { _, err := d.List(t.Context()); return err },
			"find": func() error {
				_, err := d.Find(t.Context(), provider.Ref{UID: "8d6d4b1e-3b8e-4b0e-9d0c-3f1f4f1e2a10", Name: "worker-a"})
				return err
			},
			"delete": func() error {
				return d.Delete(t.Context(), provider.Ref{UID: "8d6d4b1e-3b8e-4b0e-9d0c-3f1f4f1e2a10", Name: "worker-a", Token: "t"})
			},
		} {
			if err := do(); provider.CodeOf(err) != provider.Unknown || !strings.Contains(fmt.Sprint(err), c.want) || !strings.Contains(fmt.Sprint(err), "vCenter "+host) {
				t.Errorf("%s, %s: %v (%v), want %q", name, call, err, provider.CodeOf(err), c.want)
			}
		}
	}
}
