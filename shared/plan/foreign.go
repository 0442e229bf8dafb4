// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// foreignForm is a kind of somebody else's API, by name, version and group. Groups of Kubernetes itself are not.
var foreignForm = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}\.v[0-9][a-z0-9]{0,30}(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?){2,}$`)

// KindFor returns the kind that manifests name so: one of the table, or a foreign one, whose objects are
// *unstructured.Unstructured and live in namespaces. A group that the table knows has no foreign kinds.
func KindFor(gvk schema.GroupVersionKind) (Kind, bool) {
	i := slices.IndexFunc(resources, func(r Resource) bool { return r.GVK() == gvk })
	if i >= 0 {
		return resources[i].Kind, true
	}
	k := Kind(strings.Join([]string{gvk.Kind, gvk.Version, gvk.Group}, "."))
	_, ok := foreign(k)
	return k, ok
}

// Foreign reports whether k is a kind that this module has no type for.
func Foreign(k Kind) bool {
	_, ok := foreign(k)
	return ok
}

// foreign returns the resource of a kind that is not in the table. Its plural is guessed, as kubebuilder makes it.
func foreign(k Kind) (Resource, bool) {
	if !foreignForm.MatchString(string(k)) {
		return Resource{}, false
	}
	parts := strings.SplitN(string(k), ".", 3)
	group := schema.GroupVersion{Group: parts[2], Version: parts[1]}
	own := slices.ContainsFunc(resources, func(r Resource) bool { return r.Group.Group == group.Group })
	if own || strings.HasSuffix(group.Group, ".k8s.io") && !strings.HasSuffix(group.Group, ".x-k8s.io") {
		return Resource{}, false
	}
	gvk := group.WithKind(parts[0])
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return Resource{k, group, plural.Resource, true, func() Object {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		return u
	}}, true
}
