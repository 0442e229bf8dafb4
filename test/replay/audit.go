// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// ReadAudit reads the calls of functions in an API server's audit log, and which of them were refused for want of a right.
func ReadAudit(path string) (calls, refused map[Call]bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }() // only read
	calls, refused = map[Call]bool{}, map[Call]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef *struct{ APIGroup, Resource, Subresource, Namespace, Name string }
			// What RBAC decided; other refusals, of policies for example, are no want of rights.
			Annotations map[string]string
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		account, ok := strings.CutPrefix(e.User.Username, "system:serviceaccount:"+machine.Namespace+":")
		if !ok || e.ObjectRef == nil {
			continue
		}
		c := Call{Function: account, Verb: e.Verb, Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name}
		if e.ObjectRef.Subresource != "" {
			c.Resource += "/" + e.ObjectRef.Subresource
		}
		if c.Resource == "namespaces" {
			c.Namespace = "" // the log names a namespace as its own
		}
		c = c.kept()
		calls[c] = true
		if e.Annotations["authorization.k8s.io/decision"] == "forbid" {
			refused[c] = true
		}
	}
	return calls, refused, lines.Err()
}
