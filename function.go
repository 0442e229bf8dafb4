// SPDX-License-Identifier: Apache-2.0

// Package function is the one image that holds every function: kn func builds it from here, FUNCTION chooses.
package function

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	approvenode "github.com/machine-functions/machine-functions/functions/approve-node"
	deadletter "github.com/machine-functions/machine-functions/functions/dead-letter"
	drainnode "github.com/machine-functions/machine-functions/functions/drain-node"
	evaluateautoscale "github.com/machine-functions/machine-functions/functions/evaluate-autoscale"
	linknode "github.com/machine-functions/machine-functions/functions/link-node"
	provisionmachine "github.com/machine-functions/machine-functions/functions/provision-machine"
	"github.com/machine-functions/machine-functions/functions/remediate"
	scalemachineset "github.com/machine-functions/machine-functions/functions/scale-machineset"
	sweepinstances "github.com/machine-functions/machine-functions/functions/sweep-instances"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/provider/drivers"
	"github.com/machine-functions/machine-functions/shared/runner"
)

// Handler is what the Knative Functions runtime calls.
type Handler interface {
	// Handle answers one request.
	Handle(http.ResponseWriter, *http.Request)
}

// functions is the table of those that decide. Only the two that act on clouds get drivers, and so credentials.
var functions = map[string]struct {
	function.Function
	drivers runner.Table
}{
	scalemachineset.Function.Name:   {scalemachineset.Function, nil},
	provisionmachine.Function.Name:  {provisionmachine.Function, drivers.Table},
	drainnode.Function.Name:         {drainnode.Function, nil},
	linknode.Function.Name:          {linknode.Function, nil},
	remediate.Function.Name:         {remediate.Function, nil},
	evaluateautoscale.Function.Name: {evaluateautoscale.Function, nil},
	sweepinstances.Function.Name:    {sweepinstances.Function, drivers.Table},
	approvenode.Function.Name:       {approvenode.Function, nil}, // optional: config/overlays/approve-node
}

// New returns the function that FUNCTION names, wired as the environment says (runner.Config). The process ends with
// the reason if it cannot be.
func New() Handler {
	name := os.Getenv("FUNCTION")
	if name == deadletter.Name {
		return deadletter.New(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	}
	f, ok := functions[name]
	if !ok {
		known := slices.Sorted(maps.Keys(functions))
		return runner.Must(nil, fmt.Errorf("FUNCTION=%q: none of %s, %s", name, strings.Join(known, ", "), deadletter.Name))
	}
	return runner.Must(runner.Open(f.Function, f.drivers))
}

// Named returns the function that decides under this name.
func Named(name string) (function.Function, bool) {
	f, ok := functions[name]
	return f.Function, ok
}
