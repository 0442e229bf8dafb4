// SPDX-License-Identifier: Apache-2.0

//go:build tools

package function

import (
	_ "knative.dev/func-go/http" // the runtime that kn func links
	_ "knative.dev/pkg/apis"
)
