// SPDX-License-Identifier: Apache-2.0

package sim

import "k8s.io/apimachinery/pkg/runtime"

func rawExtension(json string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(json)} }
