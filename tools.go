// SPDX-License-Identifier: Apache-2.0

//go:build tools

package machinefunctions

import (
	_ "github.com/cloudevents/sdk-go/v2"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/openshift/api/machine/v1beta1"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/tools/txtar"
	_ "k8s.io/client-go/rest"
	_ "knative.dev/func-go/http"
	_ "knative.dev/pkg/apis"
	_ "pgregory.net/rapid"
	_ "sigs.k8s.io/yaml"
)
