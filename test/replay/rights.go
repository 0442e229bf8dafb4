// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/yaml"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// Rights are what one function may do: by namespace, and everywhere under the empty one.
type Rights map[string][]rbacv1.PolicyRule

// elsewhere is the second namespace: there overlays/namespaces makes the Roles of functions once more.
const elsewhere = "machines-b"

// ReadRights reads the roles of a function from config: what is bound to the account of its name, with what the overlay for
// simulated instances adds.
func ReadRights(root, function string) (Rights, error) {
	file := filepath.Join(root, "config", "rbac", function+".yaml")
	if _, err := os.Stat(file); err != nil {
		file = filepath.Join(root, "config", "overlays", function, "rbac.yaml")
	}
	rights := Rights{}
	if err := rights.read(file, func(string) bool { return true }); err != nil {
		return nil, err
	}
	simulated := filepath.Join(root, "config", "overlays", "kubemark", "functions.yaml")
	return rights, rights.read(simulated, func(role string) bool { return role == function })
}

// read adds the roles of a file whose names are wanted.
func (r Rights) read(file string, wanted func(role string) bool) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole // has all that a Role has
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if (role.Kind == "Role" || role.Kind == "ClusterRole") && wanted(role.Name) {
			r[role.Namespace] = append(r[role.Namespace], role.Rules...)
		}
	}
	return nil
}

// Allow reports whether a call is allowed.
func (r Rights) Allow(c Call) bool {
	rules := r[""]
	namespace := c.Namespace
	if namespace == elsewhere {
		namespace = machine.Namespace
	}
	if namespace != "" {
		rules = append(rules[:len(rules):len(rules)], r[namespace]...)
	}
	ok, _ := validation.Covers(rules, []rbacv1.PolicyRule{c.wants()})
	return ok
}

// Unused returns the rights that none of the calls needs, a line each: verb resource.group namespace name.
func (r Rights) Unused(calls map[Call]bool) (unused []string) {
	for namespace, rules := range r {
		for _, rule := range rules {
			for _, right := range validation.BreakdownRule(rule) {
				if !used(right, namespace, calls) {
					name := strings.Join(right.ResourceNames, "")
					unused = append(unused, strings.TrimSpace(fmt.Sprintf("%s %s.%s %s %s", right.Verbs[0], right.Resources[0], right.APIGroups[0], namespace, name)))
				}
			}
		}
	}
	return unused
}

func used(right rbacv1.PolicyRule, namespace string, calls map[Call]bool) bool {
	for c := range calls {
		if namespace != "" && c.Namespace != namespace {
			continue
		}
		if ok, _ := validation.Covers([]rbacv1.PolicyRule{right}, []rbacv1.PolicyRule{c.wants()}); ok {
			return true
		}
	}
	return false
}
