// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/pem"
	"net/http/httptest"
)

// Served is an engine that others reach.
type Served struct {
	URL string // of its API
	CA  []byte // of its certificate, in PEM

	server *httptest.Server
}

// Serve lets others reach e, at an address of loopback, by HTTPS.
func (e *Engine) Serve() *Served {
	s := httptest.NewTLSServer(e)
	return &Served{URL: s.URL + root, CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), server: s}
}

// Stop ends it. Who asks later reaches nobody.
func (s *Served) Stop() { s.server.Close() }
