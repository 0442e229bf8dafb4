// SPDX-License-Identifier: Apache-2.0

// Command kn is Knative's command line client, for tests (TestKn). Module proxies serve the library alone, which is all of it but for this and
// its help.
package main

import (
	"fmt"
	"os"

	"knative.dev/client/pkg/root"
)

func main() {
	command, err := root.NewRootCommand(nil)
	if err == nil {
		err = command.Execute()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
