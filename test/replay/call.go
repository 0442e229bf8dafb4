// SPDX-License-Identifier: Apache-2.0

// Package replay compares what functions ask of the API server with what config/rbac lets them.
package replay

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// Call is a request to the API server as RBAC sees it. The name is kept where a right may depend on it.
type Call struct {
	Function, Verb, Group, Resource, Namespace, Name string // Resource with its subresource: machines/status
}

// String is a line of a recording: function, verb, resource.group, namespace, name.
func (c Call) String() string {
	return strings.TrimRight(fmt.Sprintf("%s %s %s.%s %s %s", c.Function, c.Verb, c.Resource, c.Group, cmp.Or(c.Namespace, "-"), c.Name), " ")
}

// parse reads what String wrote.
func parse(line string) (Call, error) {
	words := strings.Fields(line)
	if len(words) < 4 || len(words) > 5 {
		return Call{}, fmt.Errorf("%q is no call", line)
	}
	resource, group, _ := strings.Cut(words[2], ".")
	c := Call{Function: words[0], Verb: words[1], Resource: resource, Group: group, Namespace: strings.Trim(words[3], "-")}
	if words[3] != "-" {
		c.Namespace = words[3]
	}
	if len(words) == 5 {
		c.Name = words[4]
	}
	return c, nil
}

// kept forgets a name that no right depends on.
func (c Call) kept() Call {
	if c.Resource == "namespaces" && c.Name == machine.NamespaceSystem {
		return c
	}
	if c.Namespace != machine.Namespace && c.Namespace != elsewhere || !slices.Contains([]string{"configmaps", "secrets"}, c.Resource) || c.Verb == "create" || c.Verb == "list" {
		c.Name = ""
	}
	return c
}

// wants is the right that a call needs.
func (c Call) wants() rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{Verbs: []string{c.Verb}, APIGroups: []string{c.Group}, Resources: []string{c.Resource}}
	if c.Name != "" {
		rule.ResourceNames = []string{c.Name}
	}
	return rule
}

// Foreign reports whether a call is about an object of somebody else's kind, which each deployment grants for itself. Secrets and
// Events are no kinds of plan.Resources, and nobody's else.
func (c Call) Foreign() bool {
	return c.Group != "metal3.io" && !slices.ContainsFunc(plan.Resources(), func(r plan.Resource) bool { return r.Group.Group == c.Group })
}

var verbs = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete", http.MethodGet: "get",
}

// callOf reads a request to the API server; false for what is no object's path.
func callOf(function string, r *http.Request) (Call, bool) {
	c := Call{Function: function, Verb: verbs[r.Method]}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		c.Group, parts = parts[1], parts[3:]
	default:
		return c, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		c.Namespace, parts = parts[1], parts[2:]
	}
	c.Resource = parts[0]
	if len(parts) > 1 {
		c.Name = parts[1]
	} else if r.Method == http.MethodGet {
		c.Verb = "list"
	}
	if len(parts) > 2 {
		c.Resource += "/" + parts[2]
	}
	return c.kept(), true
}
