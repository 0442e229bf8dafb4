// SPDX-License-Identifier: Apache-2.0

// Package main serves the function that FUNCTION names, as the scaffold of kn func does in a cluster.
package main

import (
	"fmt"
	"os"

	"knative.dev/func-go/http"

	function "github.com/machine-functions/machine-functions"
)

func main() {
	if err := http.Start(function.New()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
