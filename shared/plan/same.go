// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Same reports whether two values mean the same: quantities however they are written, times of whatever zone; what is empty is
// nothing. Most of what is compared is alike in every bit, which takes a fraction of the time to see.
func Same(a, b any) bool { return reflect.DeepEqual(a, b) || equality.Semantic.DeepEqual(a, b) }
