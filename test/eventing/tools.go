// SPDX-License-Identifier: Apache-2.0

//go:build tools

package main

// The manifests that build.sh copies out of these modules.
import (
	_ "knative.dev/eventing/config/core/resources"
	_ "knative.dev/serving/config/core/300-resources"
)
