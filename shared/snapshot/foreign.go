// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/machine-functions/machine-functions/shared/plan"
)

// ForeignObject returns the object of a kind that this module has no type for, or nil.
func (s Snapshot) ForeignObject(k plan.Kind, namespace, name string) *unstructured.Unstructured {
	i, ok := searchForeign(s.Foreign, k, namespace, name)
	if !ok {
		return nil
	}
	return s.Foreign[i]
}

// foreign is the list of objects of all foreign kinds.
type foreign struct {
	sorted[*unstructured.Unstructured]
}

func (l foreign) kind() plan.Kind { return "" }

// hold leaves it to drop and add: the list is of several kinds.
func (l foreign) hold(plan.Kind, []plan.Object) bool { return false }

// putForeign inserts o into the sorted list; an object of no foreign kind is left out.
func putForeign(all *[]*unstructured.Unstructured, o *unstructured.Unstructured) bool {
	k := plan.KindOf(o)
	if !plan.Foreign(k) {
		return false
	}
	i, ok := searchForeign(*all, k, o.GetNamespace(), o.GetName())
	if ok {
		(*all)[i] = o
	} else {
		*all = slices.Insert(*all, i, o)
	}
	return true
}

func searchForeign(all []*unstructured.Unstructured, k plan.Kind, namespace, name string) (int, bool) {
	return slices.BinarySearchFunc(all, k, func(o *unstructured.Unstructured, k plan.Kind) int {
		return cmp.Or(cmp.Compare(plan.KindOf(o), k), before(o, namespace, name))
	})
}
