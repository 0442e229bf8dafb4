// SPDX-License-Identifier: Apache-2.0

// Package metrics measures a function from what passes through it, with OpenTelemetry's instruments in Prometheus' text
// format.
//
// Functions know nothing of it: snapshots, plans and outcomes say everything (SPEC B70). The names of OpenShift are kept
// where one exists; ours are machines_<function>_<what>_<unit>. Labels that name an object are those of SPEC B70 and C79 alone;
// what a cloud or a person wrote never becomes one.
package metrics

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	"knative.dev/pkg/observability/attributekey"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// transitions is told by both functions that move Machines from phase to phase.
const transitions = "mapi_machine_phase_transition_seconds"

// maxSeries bounds the series of one metric: four times the Machines that one deployment is made for. What is beyond
// shares one series, labeled otel_metric_overflow.
const maxSeries = 20_000

// Labels.
const (
	keyName      = attributekey.String("name")
	keyNamespace = attributekey.String("namespace")
	keyPhase     = attributekey.String("phase")
	keyReason    = attributekey.String("reason")
	keyResult    = attributekey.String("result")
	keyAction    = attributekey.String("action")
	keyType      = attributekey.String("type")
	keyOp        = attributekey.String("op")
	keyCode      = attributekey.String("code")
	keyDirection = attributekey.String("direction")
	keyDeleted   = attributekey.String("deleted")
)

// Results of an invocation.
const (
	resultQuiet    = "quiet"    // nothing to do
	resultActed    = "acted"    // something was planned, nothing is left
	resultRepeated = "repeated" // it comes again: something failed that may pass
	resultPanicked = "panicked"
)

var (
	// secondsOfInvocation lie between one read of one object and the end of a request's patience.
	secondsOfInvocation = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20}
	roundsOfInvocation  = []float64{1, 2, 3, 4, 5, 6, 7, 8}
	secondsOfPhase      = []float64{5, 10, 20, 30, 60, 90, 120, 180, 240, 300, 360, 480, 600} // SPEC B70
)

// Metrics are those of one process of one function. Losing them with the process costs nothing but history. A nil
// *Metrics measures nothing; all methods may be called concurrently.
type Metrics struct {
	function string
	clock    func() time.Time
	reader   *sdk.ManualReader

	invocations, actions, events, calls, coalesced, remediated, skipped metric.Int64Counter
	duration, rounds, transition                                        metric.Float64Histogram

	scaling scaling

	mu       sync.Mutex
	views    map[string]view // by metric: what the last scans saw
	failures map[failure]tally
}

// New returns the metrics of a function. Its error is about a name that no metric may have.
func New(function string, clock func() time.Time) (*Metrics, error) {
	m := &Metrics{
		function: function, clock: clock, reader: sdk.NewManualReader(), views: map[string]view{}, failures: map[failure]tally{},
	}
	i := instruments{meter: sdk.NewMeterProvider(
		sdk.WithReader(m.reader), sdk.WithResource(resource.Empty()), sdk.WithCardinalityLimit(maxSeries),
		sdk.WithExemplarFilter(exemplar.AlwaysOffFilter),
	).Meter("machine-functions")}
	own := "machines_" + strings.ReplaceAll(function, "-", "_") + "_"
	m.invocations = i.counter(own+"invocations_total", "Invocations by result.")
	m.duration = i.histogram(own+"invocation_duration_seconds", "How long invocations took.", secondsOfInvocation)
	m.rounds = i.histogram(own+"invocation_rounds", "How often one invocation looked and decided.", roundsOfInvocation)
	m.actions = i.counter(own+"actions_total", "Planned actions by kind and result.")
	m.events = i.counter(own+"events_total", "Kubernetes Events that were recorded.")
	m.calls = i.counter(own+"cloud_calls_total", "Calls to clouds by operation and code.")
	m.coalesced = i.counter(own+"requests_coalesced_total", "Requests that shared an invocation with another.")
	for _, f := range families {
		if f.function == function {
			i.gauge(f, m.points)
		}
	}
	switch function {
	case links:
		m.transition = i.histogram(transitions, "Age of a Machine when it reached a phase.", secondsOfPhase)
	case provisions:
		m.transition = i.histogram(transitions, "Age of a Machine when it reached a phase.", secondsOfPhase)
		for reason, name := range failed {
			i.observed(name, "How often an instance could not be created, updated or deleted.", reason, m.failed)
		}
	case autoscales:
		m.openScaling(&i)
		m.skipped = i.counter("cluster_autoscaler_skipped_scale_events_count", "Scans that a limit of the cluster kept from adding Nodes.")
	case remediates:
		m.remediated = i.counter("mapi_machinehealthcheck_remediation_success_total", "Machines that were remediated.")
	}
	return m, errors.Join(i.errs...)
}

// Invocation is what one run of the function leaves behind.
type Invocation struct {
	Seen     snapshot.Snapshot // the last one
	Planned  plan.Plan         // in all rounds
	Told     []plan.Note       // the Events that were recorded: not what is told too often, or goes with what did not succeed
	Outcomes map[plan.Key]plan.Outcome
	Rounds   int
	Duration time.Duration
	Err      error
}

// Invoked counts one run of the function with everything that it did. It keeps nothing of what it is given.
func (m *Metrics) Invoked(i Invocation) {
	if m == nil {
		return
	}
	ctx := context.Background()
	result := resultQuiet
	switch {
	case i.Err != nil:
		result = resultRepeated
	case !i.Planned.Quiet():
		result = resultActed
	}
	m.invocations.Add(ctx, 1, with(keyResult.With(result)))
	m.duration.Record(ctx, i.Duration.Seconds())
	m.rounds.Record(ctx, float64(i.Rounds))
	for _, a := range i.Planned.Actions() {
		o, tried := i.Outcomes[a.Key()]
		m.actions.Add(ctx, 1, with(keyAction.With(kind(a)), keyResult.With(resultOf(o, tried))))
		if tried && o.Result == plan.Done {
			m.done(ctx, i.Seen, a)
		}
	}
	if i.Seen.Request.Scan() {
		m.look(i.Seen)
	}
	m.told(ctx, i)
}

// Panicked counts a fault of ours: it ended an invocation, the reading of a request, the decision about one object, or one call of a driver.
func (m *Metrics) Panicked() {
	if m != nil {
		m.invocations.Add(context.Background(), 1, with(keyResult.With(resultPanicked)))
	}
}

// Coalesced counts a request that joined the invocation of another.
func (m *Metrics) Coalesced() {
	if m != nil {
		m.coalesced.Add(context.Background(), 1)
	}
}

// Called counts one call to a cloud: op is the method, err its answer.
func (m *Metrics) Called(op string, err error) {
	if m == nil {
		return
	}
	code := "OK"
	if err != nil {
		code = provider.CodeOf(err).String()
	}
	m.calls.Add(context.Background(), 1, with(keyOp.With(op), keyCode.With(code)))
}

func with(labels ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(labels...)
}

// instruments makes instruments and keeps what goes wrong.
type instruments struct {
	meter metric.Meter
	errs  []error
}

func (i *instruments) counter(name, help string) metric.Int64Counter {
	c, err := i.meter.Int64Counter(name, metric.WithDescription(help))
	i.errs = append(i.errs, err)
	return c
}

func (i *instruments) histogram(name, help string, bounds []float64) metric.Float64Histogram {
	h, err := i.meter.Float64Histogram(name, metric.WithDescription(help), metric.WithExplicitBucketBoundaries(bounds...))
	i.errs = append(i.errs, err)
	return h
}

func (i *instruments) gauge(f family, points func(family) []point) {
	_, err := i.meter.Float64ObservableGauge(f.name, metric.WithDescription(f.help),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			for _, p := range points(f) {
				o.Observe(p.value, with(f.attributes(p)...))
			}
			return nil
		}))
	i.errs = append(i.errs, err)
}

func (i *instruments) observed(name, help, reason string, counts func(reason string) map[failure]int64) {
	_, err := i.meter.Int64ObservableCounter(name, metric.WithDescription(help),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for f, n := range counts(reason) {
				o.Observe(n, with(keyName.With(f.name), keyNamespace.With(f.namespace), keyReason.With(f.code)))
			}
			return nil
		}))
	i.errs = append(i.errs, err)
}
